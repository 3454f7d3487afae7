/** Watches the free bytes of the data folder's disk, and reserves some of them for the bus. */
import { open, rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { DISK_POLL_MS } from "../schemas/limits.ts";
import type { Logger } from "./logger.ts";

/**
 * Size of the smallest volume that can hold every stream at its minimum size (1,048 MiB together): nats-server uses
 * three quarters of the volume.
 */
export const DISK_BYTES_MIN = 1_465_210_200;
/**
 * Below this free space, the gateway refuses writes of clients. The remaining space serves leases and deletes, which
 * need a few MB an hour, and reads, which need space for a pack.
 */
export const DISK_WRITES_STOP_BYTES = 96 * 1024 ** 2;
/**
 * Above this free space, writes are accepted again. It is higher than the limit for refusals, so that a single write
 * does not cause a refusal again.
 */
const DISK_WRITES_RESUME_BYTES = 128 * 1024 ** 2;
/** Size of a reserve file. It is deleted when other programs fill the disk, so that the bus can continue. */
const DISK_RESERVE_BYTES = 32 * 1024 ** 2;
/** Below this free space, the reserve file is deleted. */
const DISK_RESERVE_USED_BELOW_BYTES = 8 * 1024 ** 2;

const PIECE = Buffer.alloc(1024 ** 2);
const MB = 1_000_000;

export class DiskRoom {
  readonly #folder: string;
  readonly #reserve: string;
  readonly #logger: Logger;
  #free = Number.POSITIVE_INFINITY;
  #total = 0;
  #isFull = false;
  #hasReserve = false;
  #looking: Promise<void> = Promise.resolve();
  #timer: NodeJS.Timeout | undefined;

  /** Throws a one-line error if the volume is too small for the streams. */
  static async start(folder: string, logger: Logger): Promise<DiskRoom> {
    const { bsize, blocks, bavail } = await statfs(folder);
    const isNew = !(await stat(join(folder, "nats")).catch(() => undefined));
    const bytes = bsize * (isNew ? bavail : blocks);
    if (bytes < DISK_BYTES_MIN) {
      throw new Error(
        `TRUNKLINE_DATA: expected a folder on a volume with at least ${inMb(DISK_BYTES_MIN)}${isNew ? " free" : ""}, found ${inMb(bytes)} at "${folder}"`,
      );
    }
    const diskRoom = new DiskRoom(folder, logger);
    await diskRoom.look();
    diskRoom.#timer = setInterval(() => void diskRoom.look(), DISK_POLL_MS);
    diskRoom.#timer.unref();
    return diskRoom;
  }

  constructor(folder: string, logger: Logger) {
    this.#folder = folder;
    this.#reserve = join(folder, "reserve");
    this.#logger = logger;
  }

  /** Bytes that this user may still write, not counting the reserve file. */
  get freeBytes(): number {
    return this.#free;
  }

  /** Bytes of the whole volume, used or not. */
  get totalBytes(): number {
    return this.#total;
  }

  /** Describes for operators how much space is missing. Undefined while clients may write. */
  get shortage(): string | undefined {
    if (!this.#isFull) return undefined;
    const [left, needed] = [inMb(this.#free), inMb(DISK_WRITES_RESUME_BYTES)];
    return `room on the disk of TRUNKLINE_DATA (${left} left, ${needed} needed)`;
  }

  /** Reads the free bytes now. Overlapping calls run one after another. */
  look(): Promise<void> {
    this.#looking = this.#looking.then(() => this.#look()).catch(() => {});
    return this.#looking;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { bsize, bavail, blocks } = await statfs(this.#folder);
    this.#free = bsize * bavail;
    this.#total = bsize * blocks;
    if (this.#free < DISK_RESERVE_USED_BELOW_BYTES && this.#hasReserve) await this.#giveUpReserve();
    const wasFull = this.#isFull;
    this.#isFull = this.#free < (wasFull ? DISK_WRITES_RESUME_BYTES : DISK_WRITES_STOP_BYTES);
    const figures = { folder: this.#folder, freeBytes: this.#free };
    if (this.#isFull && !wasFull) this.#logger.error(figures, "disk is full, writes are refused");
    if (!this.#isFull && wasFull) this.#logger.info(figures, "disk has room, writes are accepted");
    if (!this.#isFull && !this.#hasReserve) await this.#makeReserve();
  }

  async #giveUpReserve(): Promise<void> {
    await rm(this.#reserve, { force: true });
    this.#hasReserve = false;
    this.#logger.warn({ bytes: DISK_RESERVE_BYTES }, "disk is full, reserve file deleted");
    this.#free = await freeBytesOf(this.#folder);
  }

  /** Writes real bytes, because a sparse file would reserve no disk space. */
  async #makeReserve(): Promise<void> {
    const found = await stat(this.#reserve).catch(() => undefined);
    if (found && found.blocks * 512 >= DISK_RESERVE_BYTES) {
      this.#hasReserve = true;
      return;
    }
    try {
      await using file = await open(this.#reserve, "w", 0o600);
      for (let bytes = 0; bytes < DISK_RESERVE_BYTES; bytes += PIECE.length)
        await file.write(PIECE);
      await file.sync();
      this.#hasReserve = true;
    } catch (error) {
      await rm(this.#reserve, { force: true });
      this.#logger.warn({ err: error }, "reserve file not created, will try again");
    }
  }
}

/** Returns the bytes that this user may still write on the disk of a folder. */
export async function freeBytesOf(folder: string): Promise<number> {
  const { bsize, bavail } = await statfs(folder);
  return bsize * bavail;
}

const inMb = (bytes: number) => `${Math.floor(bytes / MB)} MB`;
