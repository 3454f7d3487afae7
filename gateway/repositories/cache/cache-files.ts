/**
 * The places of files in a gateway's cache. Everything may vanish at any time, except files that a marker shows to be
 * in use.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PackFiles } from "../packs/pack-store.ts";

/** From a view to the objects it shows, whatever the folders above them are called. */
export const OBJECTS_FROM_VIEW = "../../objects";

/** Linux's boot id, which changes with each boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

export class CacheFiles {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /** Empties a cache of an earlier boot. Nothing here waits for the disk, so after a power cut files may be empty. */
  async discardOfEarlierBoot(): Promise<void> {
    // On systems without a boot id the cache stays.
    const boot = await readFile(BOOT_ID, "latin1").catch(() => undefined);
    const path = join(this.root, "boot");
    if (boot === undefined || (await readFile(path, "latin1").catch(() => "")) === boot) return;
    await mkdir(this.root, { recursive: true });
    for (const name of await entriesOf(this.root)) await removeAll(join(this.root, name));
    await writeFile(path, boot);
  }

  async prepare(): Promise<void> {
    for (const folder of ["packs", "repos", "answers", "tmp", "trash"]) {
      await mkdir(join(this.root, folder), { recursive: true });
    }
  }

  /** Packs by their hash, whatever repositories of the account use them. */
  poolFolder(accountId: string): string {
    return join(this.root, "packs", accountId);
  }

  pooled(accountId: string, sha256: string): PackFiles {
    return filesOf(join(this.poolFolder(accountId), sha256));
  }

  repo(id: string): string {
    return join(this.root, "repos", id);
  }

  /** Holds a folder for each use of the repository, by any process. */
  uses(id: string): string {
    return join(this.repo(id), "uses");
  }

  /** Returns a new marker of use. Its name states the repository's version. */
  use(id: string, version: number): string {
    return join(this.uses(id), `${randomBytes(9).toString("hex")}-${version}`);
  }

  objects(id: string, generation: number): string {
    return join(this.repo(id), `${generation}`, "objects");
  }

  views(id: string, generation: number): string {
    return join(this.repo(id), `${generation}`, "views");
  }

  /** Holds a folder for each process. */
  get answers(): string {
    return join(this.root, "answers");
  }

  /** A name that nobody else has, in a folder that is there: somebody may have emptied the cache since `prepare`. */
  temporary(purpose: string): string {
    const folder = join(this.root, "tmp");
    try {
      mkdirSync(folder, { recursive: true });
    } catch (error) {
      // Another process is emptying the cache now. The next write fails with ENOENT and is repeated.
      if (!isGone(error)) throw error;
    }
    return join(folder, `${purpose}-${randomBytes(9).toString("hex")}`);
  }

  trash(id: string): string {
    return join(this.root, "trash", `${id}-${randomBytes(6).toString("hex")}`);
  }
}

/** Git accepts any pack name with the right suffix. */
export const linkedPack = (objects: string, sha256: string): PackFiles =>
  filesOf(join(objects, "pack", `pack-${sha256}`));

/** One index over several packs, which git finds beside them (gitformat-pack(5), "multi-pack-index"). */
export const PACKS_INDEX = "multi-pack-index";

/** True where there was one: who came before may have read it, and now looks for the packs it names. */
export async function dropPacksIndex(packs: string): Promise<boolean> {
  try {
    await unlink(join(packs, PACKS_INDEX));
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

export const versionOfUse = (name: string) => Number(name.split("-").at(-1));

export const filesOf = (path: string): PackFiles => ({
  pack: `${path}.pack`,
  index: `${path}.idx`,
});

export const isCode = (error: unknown, ...codes: string[]) =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

/** The error of a file system for a file that somebody has removed. */
export const gone = (what: string) =>
  Object.assign(new Error(`Cannot use ${what}: it is not whole`), { code: "ENOENT" });

/** `mkdir` says ENOTDIR where a folder above is being removed. */
export const isGone = (error: unknown) => isCode(error, "ENOENT", "ENOTDIR");

/** Entries of a folder; none where there is no such folder. */
export async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Undefined where there is no such file. */
export async function statOf(path: string) {
  return stat(path).catch((error: unknown) => {
    if (isGone(error)) return undefined;
    throw error;
  });
}

export const removeAll = (path: string) => rm(path, { recursive: true, force: true });
