/**
 * Ends app processes before they use up the memory of their host or the file system of their databases. Otherwise the
 * kernel would end a process of its choice, perhaps the host, and agents of other accounts could not write.
 */
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { readAppKey } from "../../../../schemas/apps/app-names.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { HostRoom } from "./host-rooms.ts";

/** Interval of the checks. Two fast processes fill the smallest reserve in about as much time. */
const CHECK_MS = 250;
/**
 * The memory that stays free: a tenth, but at least and at most these bytes. Of the file system, the least stays free,
 * because it may be a disk that is nearly full for other reasons.
 */
const RESERVED_SHARE = 0.1;
export const RESERVED_BYTES_MIN = 128 * 1024 ** 2;
export const RESERVED_BYTES_MAX = 1024 ** 3;

export interface GuardedProcess {
  /** The key of its app. */
  key: string;
  pid: number;
  folder: string;
  /** Nothing uses the process. */
  isIdle: boolean;
  end(reason: string): void;
}

interface MemoryGuardParts {
  clock: Clock;
  logger: Logger;
  stopped: AbortSignal;
  rooms(): Promise<readonly HostRoom[]>;
  processes(): readonly GuardedProcess[];
}

type Measured = GuardedProcess & { account: string; bytes: number };

export class MemoryGuard {
  readonly #parts: MemoryGuardParts;
  #isShort = false;

  constructor(parts: MemoryGuardParts) {
    this.#parts = parts;
    void this.#watch();
  }

  /**
   * Refuses a further process of an account while the host has little memory. An account without a process may start
   * one, so that the apps of others cannot keep it out. Throws ActorError `busy`.
   */
  admit(key: string): void {
    if (!this.#isShort) return;
    const account = accountOf(key);
    if (!this.#parts.processes().some((one) => accountOf(one.key) === account)) return;
    const text =
      "Cannot start the app: its host has little memory left, and runs other apps of its account";
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  async #watch(): Promise<void> {
    const { clock, logger, stopped } = this.#parts;
    while (!stopped.aborted) {
      await clock.wait(CHECK_MS, stopped);
      await this.#check().catch((error: unknown) => {
        logger.warn({ err: error }, "memory of app processes could not be checked");
      });
    }
  }

  async #check(): Promise<void> {
    const { processes, rooms } = this.#parts;
    if (processes().length === 0) {
      this.#isShort = false;
      return;
    }
    const short = (await rooms()).filter((room) => room.freeBytes < reservedOf(room));
    this.#isShort = short.length > 0;
    for (const room of short) await this.#makeRoom(room);
  }

  /**
   * Ends processes of the account that uses most: first those that nothing uses, then the largest. An account whose
   * processes use less than the reserve is not the cause, so it keeps the processes that are at work.
   */
  async #makeRoom(room: HostRoom): Promise<void> {
    const { logger, processes } = this.#parts;
    const measured = await Promise.all(processes().map((one) => measure(one, room)));
    const accounts = [...Map.groupBy(measured, ({ account }) => account).values()];
    const [heaviest = []] = accounts.sort((one, other) => bytesOf(other) - bytesOf(one));
    let used = bytesOf(heaviest);
    let missing = reservedOf(room) - room.freeBytes;
    const inOrder = heaviest.sort(
      (one, other) => Number(other.isIdle) - Number(one.isIdle) || other.bytes - one.bytes,
    );
    for (const { key, bytes, isIdle, end } of inOrder) {
      if (missing <= 0 || (!isIdle && used <= reservedOf(room))) return;
      if (bytes === 0) continue;
      logger.warn({ app: key, room: room.name, bytes, isIdle }, "process of an app ended for room");
      end(REASONS[room.name]);
      missing -= bytes;
      used -= bytes;
    }
  }
}

const REASONS = {
  memory: "its host had little memory left, and the apps of its account used the most",
  files: "its host had little room left for databases, and the apps of its account used the most",
} as const;

const accountOf = (key: string) => readAppKey(key).accountId;

const bytesOf = (processes: readonly Measured[]) =>
  processes.reduce((sum, { bytes }) => sum + bytes, 0);

function reservedOf({ name, totalBytes }: HostRoom): number {
  if (name === "files") return RESERVED_BYTES_MIN;
  const share = totalBytes * RESERVED_SHARE;
  return Math.max(RESERVED_BYTES_MIN, Math.min(share, RESERVED_BYTES_MAX));
}

async function measure(one: GuardedProcess, { name }: HostRoom): Promise<Measured> {
  const ofFiles = await bytesBelow(one.folder);
  const bytes = name === "files" ? ofFiles : ofFiles + (await ownBytes(one.pid));
  return { ...one, account: accountOf(one.key), bytes };
}

/** Returns the memory that ends with the process. Pages of the program are shared by all processes. */
async function ownBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const read = (name: string) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0);
  return (read("RssAnon") + read("VmSwap")) * 1024;
}

async function bytesBelow(folder: string): Promise<number> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = found.filter((entry) => entry.isFile());
  const sizes = files.map(({ parentPath, name }) =>
    stat(join(parentPath, name)).then(
      ({ blocks }) => blocks * STAT_BLOCK_BYTES,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
}

/** The unit of `blocks`, whatever the file system's own blocks are. */
const STAT_BLOCK_BYTES = 512;
