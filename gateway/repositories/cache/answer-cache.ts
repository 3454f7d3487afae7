/** Stores git's responses to clones until the repository changes. The same request then gets the stored response. */
import { createHash, randomBytes } from "node:crypto";
import { createWriteStream, type WriteStream } from "node:fs";
import { type FileHandle, mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { type CacheFiles, isCode, removeAll } from "./cache-files.ts";

/**
 * GIT_ANSWERS_BYTES_MAX limits the bytes of all stored responses on disk; packs in the cache do not count.
 * GIT_ANSWER_BYTES_MAX limits the bytes of one stored response.
 */
const GIT_ANSWERS_BYTES_MAX = 2_000_000_000;
const GIT_ANSWER_BYTES_MAX = 250_000_000;
/**
 * Responses up to GIT_ANSWER_MEMORY_BYTES are stored in memory, for example a list of a thousand refs.
 * GIT_ANSWERS_MEMORY_BYTES_MAX limits all of them.
 */
export const GIT_ANSWER_MEMORY_BYTES = 64 * 1024;
const GIT_ANSWERS_MEMORY_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Bytes of a response that may wait to be written to disk while the response is sent. If more bytes wait, the disk is
 * too slow, and the response is not stored.
 */
const GIT_ANSWER_AHEAD_BYTES = 8 * 1024 * 1024;

/** A fetch request to one version of a repository. Any change of the repository makes a new version. */
export interface AnswerKey {
  id: string;
  version: number;
  /** All parts of the request on which git's response depends. */
  question: readonly (string | Uint8Array)[];
}

export interface FoundAnswer {
  bytes: number;
  hasPack: boolean;
  /** Yields pieces that share one buffer: each piece overwrites the piece before. */
  content: AsyncIterable<Buffer>;
}

interface Kept {
  id: string;
  version: number;
  bytes: number;
  hasPack: boolean;
  /** The bytes of a small response. A larger response is in a file. */
  content?: Buffer;
}

export interface AnswerLimits {
  bytes: number;
  memoryBytes: number;
  answerBytes: number;
}

const LIMITS: AnswerLimits = {
  bytes: GIT_ANSWERS_BYTES_MAX,
  memoryBytes: GIT_ANSWERS_MEMORY_BYTES_MAX,
  answerBytes: GIT_ANSWER_BYTES_MAX,
};
const READ_BYTES = 256 * 1024;

export class AnswerCache {
  readonly #files: CacheFiles;
  readonly #limits: AnswerLimits;
  /** The folder of this process. A new process starts with no stored responses. */
  readonly #folder: string;
  /** Stored responses by name, the least recently used first. */
  readonly #entries = new Map<string, Kept>();
  readonly #ofRepos = new Map<string, Set<string>>();
  readonly #underWay = new Set<string>();
  #bytes = 0;
  #memoryBytes = 0;

  constructor(files: CacheFiles, limits: Partial<AnswerLimits> = {}) {
    this.#files = files;
    this.#limits = { ...LIMITS, ...limits };
    this.#folder = join(files.answers, `${process.pid}-${randomBytes(6).toString("hex")}`);
  }

  /** Bytes of all stored responses, on disk and in memory. */
  get bytes(): number {
    return this.#bytes + this.#memoryBytes;
  }

  async find(key: AnswerKey): Promise<FoundAnswer | undefined> {
    const name = nameOf(key);
    const entry = this.#entries.get(name);
    if (!entry) return undefined;
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const { bytes, hasPack, content } = entry;
    if (content) return { bytes, hasPack, content: once(content) };
    const file = await openWhole(join(this.#folder, name), bytes);
    if (!file) {
      await this.#drop(name);
      return undefined;
    }
    return { bytes, hasPack, content: piecesOf(file) };
  }

  /**
   * Starts to record a response. Returns undefined if the response is stored already, or another request is recording
   * it.
   */
  record(key: AnswerKey): Recording | undefined {
    const name = nameOf(key);
    if (this.#underWay.has(name) || this.#entries.has(name)) return undefined;
    const file = this.#files.temporary("answer");
    this.#underWay.add(name);
    return new Recording(file, this.#limits.answerBytes, async (recorded) => {
      try {
        if (recorded) await this.#keep(name, key, recorded);
      } finally {
        this.#underWay.delete(name);
        await removeAll(file);
      }
    });
  }

  async close(): Promise<void> {
    this.#entries.clear();
    await removeAll(this.#folder);
  }

  async #keep(name: string, { id, version }: AnswerKey, recorded: Recorded): Promise<void> {
    const { file, ...rest } = recorded;
    if (file !== undefined) {
      const path = join(this.#folder, name);
      await rename(file, path).catch(async (error: unknown) => {
        if (!isCode(error, "ENOENT")) throw error;
        await mkdir(this.#folder, { recursive: true });
        await rename(file, path);
      });
    }
    this.#entries.set(name, { id, version, ...rest });
    this.#count(rest, 1);
    const ofRepo = this.#ofRepos.get(id) ?? new Set();
    this.#ofRepos.set(id, ofRepo.add(name));
    // Responses for earlier versions of the repository are not needed any more.
    for (const other of ofRepo) {
      if ((this.#entries.get(other)?.version ?? version) < version) await this.#drop(other);
    }
    await this.#makeRoom();
  }

  /** Evicts the least recently used responses. Responses on disk and in memory have separate limits. */
  async #makeRoom(): Promise<void> {
    const { bytes, memoryBytes } = this.#limits;
    for (const [name, { content }] of this.#entries) {
      const isPast = content ? this.#memoryBytes > memoryBytes : this.#bytes > bytes;
      if (isPast) await this.#drop(name);
      else if (this.#memoryBytes <= memoryBytes && this.#bytes <= bytes) return;
    }
  }

  async #drop(name: string): Promise<void> {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    this.#count(entry, -1);
    const ofRepo = this.#ofRepos.get(entry.id);
    ofRepo?.delete(name);
    if (ofRepo?.size === 0) this.#ofRepos.delete(entry.id);
    // Readers have opened the file already, so they can still read it after its removal.
    if (!entry.content) await removeAll(join(this.#folder, name));
  }

  #count({ bytes, content }: Pick<Kept, "bytes" | "content">, change: 1 | -1): void {
    if (content) this.#memoryBytes += change * (bytes + ENTRY_BYTES);
    else this.#bytes += change * bytes;
  }
}

/** Memory of an entry without its content, including its name. */
const ENTRY_BYTES = 500;

interface Recorded {
  bytes: number;
  hasPack: boolean;
  content?: Buffer;
  file?: string;
}

/** Records a response while it is sent, without delaying it. Ends if the disk is slow or the response too large. */
export class Recording {
  readonly #path: string;
  readonly #bytesMax: number;
  readonly #end: (recorded?: Recorded) => Promise<void>;
  #small: Buffer[] = [];
  #file: WriteStream | undefined;
  #bytes = 0;
  #isOver = false;

  constructor(path: string, bytesMax: number, end: (recorded?: Recorded) => Promise<void>) {
    this.#path = path;
    this.#bytesMax = bytesMax;
    this.#end = end;
  }

  add(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#giveUp();
    else if (this.#bytes <= GIT_ANSWER_MEMORY_BYTES) this.#small.push(chunk);
    else this.#write(chunk);
  }

  /** Stores the recorded response, which is complete. */
  async keep({ hasPack }: { hasPack: boolean }): Promise<void> {
    if (this.#isOver) return;
    // From here on `add` ignores bytes, and the recording cannot be discarded.
    this.#isOver = true;
    const sizes = { bytes: this.#bytes, hasPack };
    if (!this.#file) {
      await this.#end({ ...sizes, content: Buffer.concat(this.#small) });
      return;
    }
    try {
      this.#file.end();
      await finished(this.#file);
    } catch {
      await this.#end(); // A disk that is full, say: the next one tries again.
      return;
    }
    await this.#end({ ...sizes, file: this.#path });
  }

  /** Discards the recording, because the response will never be complete. */
  drop(): void {
    this.#giveUp();
  }

  #write(chunk: Buffer): void {
    if (!this.#file) {
      this.#file = createWriteStream(this.#path, { flags: "wx" });
      this.#file.on("error", () => this.#giveUp());
      for (const earlier of this.#small) this.#file.write(earlier);
      this.#small = [];
    }
    this.#file.write(chunk);
    if (this.#file.writableLength > GIT_ANSWER_AHEAD_BYTES) this.#giveUp();
  }

  #giveUp(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#small = [];
    this.#file?.destroy();
    // If the file cannot be removed now, the sweep of the cache removes it later.
    this.#end().catch(() => {});
  }
}

function nameOf({ id, version, question }: AnswerKey): string {
  const hash = createHash("sha256").update(`${id} ${version}\n`);
  for (const words of question) hash.update(`${words.length}\n`).update(words);
  return hash.digest("hex");
}

/** Opens a file. Returns undefined if the file is missing or its size differs. */
async function openWhole(path: string, bytes: number) {
  try {
    const file = await open(path);
    const found = await file.stat().catch(() => undefined);
    if (found?.size === bytes) return file;
    await file.close();
  } catch (error) {
    if (!isCode(error, "ENOENT", "ENOTDIR")) throw error;
  }
  return undefined;
}

/**
 * Reads a file through one reused buffer. A stream would allocate a buffer for each read, which made the garbage
 * collector examine the whole heap once in every few clones.
 */
async function* piecesOf(file: FileHandle): AsyncGenerator<Buffer> {
  try {
    const piece = Buffer.allocUnsafe(READ_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(piece, 0, READ_BYTES, null);
      if (bytesRead === 0) return;
      yield piece.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function* once(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}
