/**
 * Names the files in a gateway's cache. Any file can vanish at any time, except files that a marker shows to be in
 * use.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync } from "node:fs";
import { mkdir, readdir, readFile, rm, stat, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { PackFiles } from "../packs/pack-store.ts";

/**
 * The path from a view (the folder that git reads as a repository) to its objects. The path is relative, so that it
 * stays valid when a folder above both is renamed.
 */
export const OBJECTS_FROM_VIEW = "../../objects";

/** Linux's boot id, which changes with each boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

export class CacheFiles {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /**
   * Empties the cache if it was written before the last boot, or from another store of packs. The cache does not flush
   * its files to disk, so after a power failure they may be empty. A store that was restored from a backup lacks later
   * changes, and the same versions of its repositories may get other content.
   */
  async discardUntrusted(storeCreatedAt: string): Promise<void> {
    // Systems without a boot id keep the cache when they boot.
    const boot = await readFile(BOOT_ID, "latin1").catch(() => "");
    const mark = `${boot.trim()} ${storeCreatedAt}\n`;
    const path = join(this.root, "boot");
    const found = await readFile(path, "latin1").catch(() => "");
    if (found === mark) return;
    // Versions before this one wrote only the boot id. Their packs are named by their hashes, and nothing opens their
    // views any more.
    if (boot !== "" && found === boot) return await writeFile(path, mark);
    await mkdir(this.root, { recursive: true });
    for (const name of await entriesOf(this.root)) await removeAll(join(this.root, name));
    await writeFile(path, mark);
  }

  async prepare(): Promise<void> {
    for (const folder of ["packs", "repos", "answers", "tmp", "trash"]) {
      await mkdir(join(this.root, folder), { recursive: true });
    }
  }

  /**
   * Returns the folder of an account's packs. A pack is named by its hash, and all repositories of the account share
   * it.
   */
  poolFolder(accountId: string): string {
    return join(this.root, "packs", accountId);
  }

  pooled(accountId: string, sha256: string): PackFiles {
    return filesOf(join(this.poolFolder(accountId), sha256));
  }

  repo(id: string): string {
    return join(this.root, "repos", id);
  }

  /** Returns the folder of markers: one for each current use of the repository by any process. */
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

  /** The folder of stored responses: it contains a folder for each process. */
  get answers(): string {
    return join(this.root, "answers");
  }

  /**
   * Returns an unused path in the folder `tmp`. Creates that folder first, because another process may have emptied
   * the cache since `prepare`.
   */
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

/** Returns the files of a pack in a folder of objects. Git accepts any pack name with the right suffix. */
export const linkedPack = (objects: string, sha256: string): PackFiles =>
  filesOf(join(objects, "pack", `pack-${sha256}`));

/** One index over several packs, which git finds beside them (gitformat-pack(5), "multi-pack-index"). */
export const PACKS_INDEX = "multi-pack-index";

/**
 * Deletes the index over several packs. Returns true if the index existed: a process may have read it and still look
 * for the packs that it names.
 */
export async function dropPacksIndex(packs: string): Promise<boolean> {
  try {
    await unlink(join(packs, PACKS_INDEX));
    return true;
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return false;
    throw error;
  }
}

/** Returns the version of a view with refs, from the name of its folder, or NaN. */
export const versionOfView = (name: string) => Number.parseInt(name, 10);

export const versionOfUse = (name: string) => Number(name.split("-").at(-1));

export const filesOf = (path: string): PackFiles => ({
  pack: `${path}.pack`,
  index: `${path}.idx`,
});

export const isCode = (error: unknown, ...codes: string[]) =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

/** Returns the error that a file system reports for a removed file. */
export const gone = (what: string) =>
  Object.assign(new Error(`Cannot use ${what}: it is not whole`), { code: "ENOENT" });

/** True if a file or folder is missing. `mkdir` fails with ENOTDIR while another process removes a folder above. */
export const isGone = (error: unknown) => isCode(error, "ENOENT", "ENOTDIR");

/** Returns the entries of a folder; an empty list if the folder does not exist. */
export async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Returns the status of a file, or undefined if the file does not exist. */
export async function statOf(path: string) {
  return stat(path).catch((error: unknown) => {
    if (isGone(error)) return undefined;
    throw error;
  });
}

export const removeAll = (path: string) => rm(path, { recursive: true, force: true });
