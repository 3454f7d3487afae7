/** Archives of all files of a commit. Git makes an archive once, and the archive stays on disk for later requests. */
import { mkdir, open, rename, stat } from "node:fs/promises";
import { join } from "node:path";
import { ActorError } from "../../../schemas/errors.ts";
import {
  ARCHIVE_BYTES_MAX,
  ARCHIVE_FILES_MAX,
  ARCHIVE_PATH_BYTES_MAX,
  PATH_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { entriesOf, isCode, removeAll } from "../cache/cache-files.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { startGit } from "../process/git-process.ts";
import type { HeldView, ObjectReaders } from "./read-objects.ts";

const ARCHIVE_MS_MAX = 120_000;
/** Bytes of the archives that a gateway keeps. Past this limit the least recently used archives are removed. */
const ARCHIVES_KEPT_BYTES_MAX = 4_000_000_000;
/** Bytes of the file of an archive. Headers make it larger than its files if these cannot be compressed. */
const ARCHIVE_WRITTEN_BYTES_MAX = 1.1 * ARCHIVE_BYTES_MAX;

/**
 * Names the rules by which archives are made. A change of the rules needs another version, so that neither the cache
 * nor a client takes an archive of the former rules for that of a commit.
 */
export const ARCHIVE_VERSION = "v2";

export const ARCHIVE_FORMATS = { "tar.gz": "application/gzip", zip: "application/zip" } as const;
export type ArchiveFormat = keyof typeof ARCHIVE_FORMATS;

/** An archive that stays readable until it is disposed of, also when the cache is emptied. */
interface Archive extends AsyncDisposable {
  path: string;
  bytes: number;
  /** Yields the bytes from `start` to `end`, both included. */
  read(start: number, end: number): AsyncIterable<Uint8Array>;
}

type ArchiveParts = Pick<GitParts, "slots" | "cache"> & { readers: ObjectReaders };

interface ArchiveOptions {
  now: () => number;
  keptBytesMax?: number;
  msMax?: number;
  writtenBytesMax?: number;
  pathBytesMax?: number;
}

export class Archives {
  readonly #parts: ArchiveParts;
  readonly #now: () => number;
  readonly #keptBytesMax: number;
  readonly #msMax: number;
  readonly #writtenBytesMax: number;
  readonly #pathBytesMax: number;
  readonly #making = new Map<string, Promise<void>>();

  constructor(
    parts: ArchiveParts,
    {
      now,
      keptBytesMax = ARCHIVES_KEPT_BYTES_MAX,
      msMax = ARCHIVE_MS_MAX,
      writtenBytesMax = ARCHIVE_WRITTEN_BYTES_MAX,
      pathBytesMax = ARCHIVE_PATH_BYTES_MAX,
    }: ArchiveOptions,
  ) {
    this.#parts = parts;
    this.#now = now;
    this.#keptBytesMax = keptBytesMax;
    this.#msMax = msMax;
    this.#writtenBytesMax = writtenBytesMax;
    this.#pathBytesMax = pathBytesMax;
  }

  get #folder(): string {
    return join(this.#parts.cache.files.root, "archives");
  }

  async get(
    repo: OpenedRepo,
    { commit, format }: { commit: string; format: ArchiveFormat },
  ): Promise<Archive> {
    // The name contains the repository's id, so that nobody learns whether another repository has this commit.
    const path = join(this.#folder, `${repo.id}-${commit}-${ARCHIVE_VERSION}.${format}`);
    const known = await this.#find(path);
    if (known) return known;
    const making = this.#making.get(path) ?? this.#make(repo, path, { commit, format });
    this.#making.set(path, making);
    try {
      await making;
    } finally {
      if (this.#making.get(path) === making) this.#making.delete(path);
    }
    const made = await this.#find(path);
    if (made) return made;
    const text = "Cannot make archive: it was removed from the cache at once; try again";
    throw new ActorError("unavailable", text, { retryAfterS: 1 });
  }

  async #find(path: string): Promise<Archive | undefined> {
    const file = await open(path).catch((error: unknown) => {
      if (isCode(error, "ENOENT")) return undefined;
      throw error;
    });
    if (!file) return undefined;
    try {
      const used = this.#now() / 1_000;
      await file.utimes(used, used);
      return {
        path,
        bytes: (await file.stat()).size,
        read: (start, end) => file.createReadStream({ start, end, autoClose: false }),
        [Symbol.asyncDispose]: () => file.close(),
      };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #make(
    repo: OpenedRepo,
    path: string,
    { commit, format }: { commit: string; format: ArchiveFormat },
  ): Promise<void> {
    // Other callers may wait for the same archive, so the work continues when one caller leaves.
    const lateness = new AbortController();
    const timer = setTimeout(() => lateness.abort(tooLong()), this.#msMax);
    const late = lateness.signal;
    let leave = () => {};
    try {
      leave = await this.#parts.slots.enter(repo, late);
      const prefix = `${repo.address.name}-${commit.slice(0, 12)}/`;
      const parameters = ["archive", `--format=${format}`, `--prefix=${prefix}`, commit];
      await this.#parts.readers.inView(repo, late, async (view) => {
        await checkFiles(view, commit, { signal: late, pathBytesMax: this.#pathBytesMax });
        await this.#write(view, path, parameters, late);
      });
      await this.#removeOldest();
    } finally {
      clearTimeout(timer);
      leave();
    }
  }

  async #write(
    view: HeldView,
    path: string,
    parameters: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    const temporary = this.#parts.cache.files.temporary("archive");
    try {
      const bytesMax = this.#writtenBytesMax;
      await toFile(view, parameters, { path: temporary, bytesMax, signal });
      await mkdir(this.#folder, { recursive: true });
      await rename(temporary, path);
    } finally {
      await removeAll(temporary);
    }
  }

  async #removeOldest(): Promise<void> {
    const names = await entriesOf(this.#folder);
    const kept = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#folder, name);
        const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: 0 }));
        return { path, size, mtimeMs };
      }),
    );
    let bytes = kept.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of kept.sort((one, other) => one.mtimeMs - other.mtimeMs)) {
      if (bytes <= this.#keptBytesMax) return;
      await removeAll(path);
      bytes -= size;
    }
  }
}

/**
 * Checks the files and directories of a commit before the archive is written. They are counted, because a few bytes in
 * a repository can expand to any number of files, of directories without a file, or of bytes of their paths. Paths are
 * checked, because programs that unpack an archive trust them. Pushes with harmful paths are refused already; this is a
 * second check.
 */
async function checkFiles(
  view: HeldView,
  commit: string,
  { signal, pathBytesMax }: { signal: AbortSignal; pathBytesMax: number },
): Promise<void> {
  const enough = new AbortController();
  const { cwd, environment } = view;
  const format = "--format=%(objecttype) %(objectsize) %(path)";
  const git = startGit(["ls-tree", "-r", "-t", "-z", format, commit], {
    cwd,
    environment,
    signal: AbortSignal.any([signal, enough.signal]),
  });
  git.stdin.end();
  const paths = new ArchivePaths();
  let [files, directories, bytes, pathBytes] = [0, 0, 0, 0];
  let fault: ActorError | undefined;
  for await (const entry of entriesIn(git.stdout)) {
    // Git is being killed, so its remaining output is ignored.
    if (fault) continue;
    const [type, size] = entry.split(" ", 2);
    const path = entry.slice(`${type} ${size} `.length);
    const isDirectory = type === "tree";
    if (isDirectory) directories += 1;
    else files += 1;
    // Entries that are not files have no size.
    bytes += Number(size) || 0;
    pathBytes += path.length;
    if (Math.max(files, directories) > ARCHIVE_FILES_MAX || bytes > ARCHIVE_BYTES_MAX) {
      fault = tooLarge();
    } else if (path.length > PATH_BYTES_MAX) {
      const text = `Cannot make archive: a path in it has more than ${PATH_BYTES_MAX} bytes`;
      fault = new ActorError("object_too_large", text);
    } else if (pathBytes > pathBytesMax) {
      const text = `Cannot make archive: its paths have more than ${pathBytesMax} bytes`;
      fault = new ActorError("object_too_large", text);
    } else if (!(isDirectory ? paths.addDirectory(path) : paths.addFile(path))) {
      fault = new ActorError("conflict", "Cannot make archive: a path leads out of the archive");
    }
    if (fault) enough.abort();
  }
  const { code, stderr } = await git.exit;
  if (fault) throw fault;
  checkEnd(code, stderr, signal);
}

/**
 * Yields the entries, which end with a zero byte, with one character for each byte. If an entry is longer than any
 * path, yields its beginning without waiting for its end.
 */
async function* entriesIn(source: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = "";
  for await (const chunk of source) {
    const entries = `${rest}${chunk.toString("latin1")}`.split("\0");
    rest = entries.pop() ?? "";
    yield* entries;
    if (rest.length > 2 * PATH_BYTES_MAX) yield rest;
  }
}

/** The paths in an archive. Each path may occur once, and none may lead through a file. */
class ArchivePaths {
  readonly #known = new Map<string, "file" | "directory">();

  /** Adds a directory. Returns false if its path is not allowed in an archive. */
  addDirectory(path: string): boolean {
    return this.#add(path, "directory");
  }

  /** Adds a file, also a symbolic link. Returns false if its path is not allowed in an archive. */
  addFile(path: string): boolean {
    return this.#add(path, "file");
  }

  #add(path: string, what: "file" | "directory"): boolean {
    const steps = path.split("/");
    if (steps.some((step) => /^(?:|\.|\.\.|\.git)$/i.test(step))) return false;
    if (this.#known.has(path)) return false;
    this.#known.set(path, what);
    for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
      const known = this.#known.get(path.slice(0, end));
      if (known === "file") return false;
      if (known === "directory") break;
      this.#known.set(path.slice(0, end), "directory");
    }
    return true;
  }
}

async function toFile(
  { cwd, environment }: HeldView,
  parameters: readonly string[],
  { path, bytesMax, signal }: { path: string; bytesMax: number; signal: AbortSignal },
): Promise<void> {
  await using file = await open(path, "wx");
  // Git starts only when the file is open, because unread output is lost when the process ends.
  const enough = new AbortController();
  const git = startGit(parameters, {
    cwd,
    environment,
    signal: AbortSignal.any([signal, enough.signal]),
  });
  git.stdin.end();
  let bytes = 0;
  for await (const chunk of git.stdout) {
    bytes += chunk.length;
    if (bytes <= bytesMax) await file.writeFile(chunk);
    // Git is being killed, so its remaining output is ignored.
    else enough.abort();
  }
  const { code, stderr } = await git.exit;
  if (bytes > bytesMax) throw tooLarge();
  checkEnd(code, stderr, signal);
}

function checkEnd(code: number | null, stderr: string, signal: AbortSignal): void {
  if (signal.aborted) throw tooLong();
  if (code !== 0) throw new Error(`Cannot make archive: ${stderr}`);
}

const tooLarge = () =>
  new ActorError(
    "object_too_large",
    `Cannot make archive: it has more than ${ARCHIVE_FILES_MAX} files, more than ${ARCHIVE_FILES_MAX} directories, or more than ${ARCHIVE_BYTES_MAX} bytes`,
  );

const tooLong = () => new ActorError("deadline_exceeded", "Cannot make archive: it takes too long");
