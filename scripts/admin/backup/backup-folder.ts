/**
 * A folder of backups. Messages are stored in parts: files that are written only one time and that several backups
 * share. A backup is one more file, which names its parts. The backup file is written last, so an interrupted backup
 * leaves no backup file.
 */
import { createHash } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { z } from "zod";
import { BackupMark } from "./backup-mark.ts";

/** The version of the file layout in a backup folder. */
const LAYOUT = 1;
const BACKUPS = "backups";
const PARTS = "parts";
const UNFINISHED = ".unfinished";
/** The fastest compression level, because most messages are small or compressed already. */
const LEVEL = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** A file of the folder. `file` is its path in the folder, and `sha256` is the hash of the file on disk. */
const StoredFile = z.object({
  file: z.string().regex(/^parts\/[\w-]+\/[\w-]+\.zst$/),
  sha256: z.string(),
  bytes: z.int(),
});
export type StoredFile = z.output<typeof StoredFile>;

/** A part of a stream: a file of messages in ascending order of their sequences. */
const Part = StoredFile.extend({ messages: z.int(), first: z.int(), last: z.int() });
export type Part = z.output<typeof Part>;

const StoredStream = z.object({
  name: z.string(),
  /**
   * When the stream was created on its bus. A stream with the same name but another creation time is a different
   * stream.
   */
  created: z.string(),
  config: z.looseObject({ name: z.string() }),
  /** The highest sequence that the stream has assigned. */
  lastSequence: z.int(),
  /**
   * `messages` is the number of messages of the stream in the backup. `counted` is the number that the bus reported
   * at the moment of the backup.
   */
  messages: z.int(),
  counted: z.int(),
  parts: z.array(Part),
  /**
   * The file with the sequences of the messages that belong to the backup. Parts also contain messages that were
   * removed later.
   */
  present: StoredFile,
});
export type StoredStream = z.output<typeof StoredStream>;

const Backup = z.object({
  layout: z.literal(LAYOUT),
  /**
   * The moment of the backup by the clock of its machine. The backup contains all changes that the bus acknowledged
   * before it. If the clock was not after the newest backup of the folder, it is 1 ms after that one.
   */
  moment: z.iso.datetime(),
  /** The version of Trunkline that made the backup. `format` is the format of the data. */
  version: z.string(),
  format: z.int(),
  natsServer: z.string(),
  /** Shows whether a bus still follows this backup. Backups of older versions have none. */
  mark: BackupMark.optional(),
  streams: z.array(StoredStream),
});
export type Backup = z.output<typeof Backup>;

const Envelope = z.object({ sha256: z.string(), backup: z.unknown() });

/** The content of a backup's own file is damaged, so the backup can neither be restored nor continued. */
export class DamagedBackup extends Error {}

export class BackupFolder {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Creates the folder if it is missing, and locks it until the process ends, so that no other backup writes to it.
   */
  async prepare(): Promise<Disposable> {
    try {
      await mkdir(join(this.path, BACKUPS), { recursive: true, mode: 0o700 });
      await mkdir(join(this.path, PARTS), { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw this.#failure("write", cause);
    }
    const database = new DatabaseSync(join(this.path, "lock"), { timeout: 0 });
    try {
      database.exec("BEGIN EXCLUSIVE");
    } catch (cause) {
      database.close();
      throw new Error(`Cannot use "${this.path}": another command writes to it`, { cause });
    }
    try {
      await this.#removeUnfinished();
    } catch (cause) {
      database.close();
      throw this.#failure("write", cause);
    }
    return { [Symbol.dispose]: () => database.close() };
  }

  /** Returns the moments of all backups, in the order in which they were made. */
  async moments(): Promise<string[]> {
    const names = await readdir(join(this.path, BACKUPS)).catch((cause: unknown) => {
      throw new Error(`Cannot read "${this.path}": it is not a folder of backups`, { cause });
    });
    return names
      .filter((name) => name.endsWith(".json"))
      .map((name) => momentOf(name.slice(0, -".json".length)))
      .sort();
  }

  /** Returns the path of the file of a backup. */
  pathOf(moment: string): string {
    return join(this.path, BACKUPS, fileOf(moment));
  }

  /** Reads the file of a backup. Throws if this file is missing or damaged. Does not check the parts. */
  async read(moment: string): Promise<Backup> {
    const path = this.pathOf(moment);
    let text: string;
    try {
      text = await readFile(path, "utf8");
    } catch (cause) {
      throw new Error(`Cannot read the backup of ${moment}: ${textOf(cause)}`, { cause });
    }
    const { sha256, backup } = parseEnvelope(path, text);
    if (sha256 !== sha256Of(JSON.stringify(backup)))
      throw new DamagedBackup(
        `Cannot use ${path}: it is damaged; its content does not have its SHA-256`,
      );
    const { layout } = z.looseObject({ layout: z.int() }).parse(backup);
    if (layout > LAYOUT)
      throw new Error(
        `Cannot use ${path}: a newer version of Trunkline wrote it (layout ${layout}, this version reads ${LAYOUT}); restore it with that version`,
      );
    return Backup.parse(backup);
  }

  async write(backup: Omit<Backup, "layout">): Promise<void> {
    const content = { layout: LAYOUT, ...backup };
    const text = JSON.stringify({ sha256: sha256Of(JSON.stringify(content)), backup: content });
    await this.#writeFile(join(BACKUPS, fileOf(backup.moment)), Buffer.from(text));
  }

  /**
   * Compresses and stores bytes in a file. The file's name contains a hash of the bytes, so equal bytes are stored
   * only one time.
   */
  async store(stream: string, label: string, bytes: Uint8Array): Promise<StoredFile> {
    const stored = await compress(bytes, LEVEL);
    const sha256 = sha256Of(stored);
    const file = `${PARTS}/${stream}/${label}-${sha256.slice(0, 16)}.zst`;
    // Replaces a file that is there but damaged.
    if ((await this.problemOf({ file, sha256, bytes: stored.length })) !== undefined) {
      try {
        await mkdir(join(this.path, PARTS, stream), { recursive: true, mode: 0o700 });
      } catch (cause) {
        throw this.#failure("write", cause);
      }
      await this.#writeFile(file, stored);
    }
    return { file, sha256, bytes: stored.length };
  }

  /** Reads a whole file. Throws if the file is missing, truncated or changed. */
  async load(stored: StoredFile): Promise<Buffer> {
    return await decompress(await this.#checked(stored));
  }

  /**
   * Describes the first file that is missing or does not have its size. Returns undefined if all sizes are right. Does
   * not read the content of the files.
   */
  async sizeProblemOf(files: readonly StoredFile[]): Promise<string | undefined> {
    for (const { file, bytes } of files) {
      const path = join(this.path, file);
      const found = await stat(path).catch(() => undefined);
      if (found?.size !== bytes) return `${path} is missing or does not have its ${bytes} bytes`;
    }
    return undefined;
  }

  /** Reads every file of a backup and compares it with its SHA-256. */
  async verify(backup: Backup): Promise<void> {
    for (const { parts, present } of backup.streams) {
      for (const file of [...parts, present]) await this.#checked(file);
    }
  }

  /** Reads a file and describes why it cannot be used. Returns undefined if it is whole. */
  async problemOf(file: StoredFile): Promise<string | undefined> {
    const found = await this.#read(file);
    return typeof found === "string" ? found : undefined;
  }

  /**
   * Keeps the `newest` newest backups. Removes all older backups, and files that no kept backup needs. Returns the
   * moments of the removed backups. Throws and removes nothing if the file of a kept backup is damaged, because nobody
   * knows which files that backup needs.
   */
  async keep(newest: number): Promise<string[]> {
    const moments = await this.moments();
    const removed = moments.slice(0, Math.max(0, moments.length - newest));
    const needed = new Set<string>();
    for (const moment of moments.slice(removed.length)) {
      const { streams } = await this.read(moment);
      for (const { parts, present } of streams) {
        for (const { file } of [...parts, present]) needed.add(file);
      }
    }
    for (const moment of removed) await rm(this.pathOf(moment));
    for (const file of await this.#parts()) {
      if (!needed.has(file)) await rm(join(this.path, file));
    }
    return removed;
  }

  async #checked(file: StoredFile): Promise<Buffer> {
    const found = await this.#read(file);
    if (typeof found === "string") throw new Error(`Cannot use the backup: ${found}`);
    return found;
  }

  /** Returns the content of a file, or a text that describes why it cannot be used. */
  async #read({ file, sha256, bytes }: StoredFile): Promise<Buffer | string> {
    const path = join(this.path, file);
    let content: Buffer;
    try {
      content = await readFile(path);
    } catch (cause) {
      return `${path} is missing (${textOf(cause)})`;
    }
    if (content.length < bytes) return `${path} is truncated: ${content.length} of ${bytes} bytes`;
    if (sha256Of(content) !== sha256) return `${path} is damaged; it does not have its SHA-256`;
    return content;
  }

  /** Writes a file atomically: after a crash or power cut, the file is complete or does not exist. */
  async #writeFile(name: string, content: Uint8Array): Promise<void> {
    const path = join(this.path, name);
    const unfinished = `${path}${UNFINISHED}`;
    try {
      await using file = await open(unfinished, "w", 0o600);
      await file.writeFile(content);
      await file.sync();
      await rename(unfinished, path);
      await syncFolder(dirname(path));
    } catch (cause) {
      await rm(unfinished, { force: true }).catch(() => {}); // The next backup removes it.
      throw this.#failure("write", cause);
    }
  }

  async #removeUnfinished(): Promise<void> {
    const names = await readdir(this.path, { recursive: true });
    for (const name of names) {
      if (name.endsWith(UNFINISHED)) await rm(join(this.path, name), { force: true });
    }
  }

  async #parts(): Promise<string[]> {
    const names = await readdir(join(this.path, PARTS), { recursive: true });
    return names.filter((name) => name.endsWith(".zst")).map((name) => `${PARTS}/${name}`);
  }

  #failure(act: string, cause: unknown): Error {
    const hint = isFull(cause) ? "; the disk is full, and nothing counts of this backup" : "";
    return new Error(`Cannot ${act} to "${this.path}": ${textOf(cause)}${hint}`, { cause });
  }
}

/** Flushes the folder's entries to disk. Without this, a renamed file may be missing after a power cut. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

function parseEnvelope(path: string, text: string): z.output<typeof Envelope> {
  try {
    return Envelope.parse(JSON.parse(text));
  } catch (cause) {
    throw new DamagedBackup(`Cannot use ${path}: it is damaged; expected JSON of a backup`, {
      cause,
    });
  }
}

const sha256Of = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");
/** Colons are replaced, because some systems do not allow them in file names. */
const fileOf = (moment: string) => `${moment.replaceAll(":", "-")}.json`;
const momentOf = (name: string) => name.replace(/T(\d\d)-(\d\d)-/, "T$1:$2:");
const textOf = (cause: unknown) => (cause instanceof Error ? cause.message : String(cause));
const isFull = (cause: unknown) =>
  cause instanceof Error && "code" in cause && cause.code === "ENOSPC";
