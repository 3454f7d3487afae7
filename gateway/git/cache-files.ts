/** Where things lie in the cache of a gateway. All of it may vanish at any time but what a marker says is in use. */
import { randomBytes } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { PackFiles } from "./pack-store.ts";

/** From a view to the objects it shows, whatever the folders above them are called. */
export const OBJECTS_FROM_VIEW = "../../objects";

export class CacheFiles {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  async prepare(): Promise<void> {
    for (const folder of ["packs", "repos", "tmp", "trash"]) {
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

  /** Holds a file for each use of the repository, by any process. */
  uses(id: string): string {
    return join(this.repo(id), "uses");
  }

  objects(id: string, generation: number): string {
    return join(this.repo(id), `${generation}`, "objects");
  }

  views(id: string, generation: number): string {
    return join(this.repo(id), `${generation}`, "views");
  }

  /** A name that nobody else has. */
  temporary(purpose: string): string {
    return join(this.root, "tmp", `${purpose}-${randomBytes(9).toString("hex")}`);
  }

  trash(id: string): string {
    return join(this.root, "trash", `${id}-${randomBytes(6).toString("hex")}`);
  }
}

/** Git does not mind what a pack is called, as long as it ends like one. */
export const linkedPack = (objects: string, sha256: string): PackFiles =>
  filesOf(join(objects, "pack", `pack-${sha256}`));

export const filesOf = (path: string): PackFiles => ({
  pack: `${path}.pack`,
  index: `${path}.idx`,
});

export const isCode = (error: unknown, ...codes: string[]) =>
  error instanceof Error && "code" in error && codes.includes(String(error.code));

/** Entries of a folder; none where there is no such folder. */
export async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isCode(error, "ENOENT", "ENOTDIR")) return [];
    throw error;
  }
}

/** Undefined where there is no such file. */
export async function statOf(path: string) {
  return stat(path).catch((error: unknown) => {
    if (isCode(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  });
}

export const removeAll = (path: string) => rm(path, { recursive: true, force: true });
