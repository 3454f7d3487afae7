/**
 * Keeps a gateway's cache below its limit: deletes packs that no repository uses. If that is not enough, evicts the
 * least recently used repositories, and deletes their packs.
 */
import { rename, statfs } from "node:fs/promises";
import { join } from "node:path";
import { type CacheFiles, entriesOf, isCode, removeAll, statOf } from "./cache-files.ts";
import type { FileAges } from "./file-ages.ts";

/** The share of the disk that the cache leaves free, even if its limit allows more bytes. */
export const GIT_CACHE_FREE_SHARE = 0.1;

/** The share of the repositories that is evicted before the bytes are counted again. */
const EVICTED_SHARE = 0.1;

interface PooledPack {
  path: string;
  bytes: number;
  usedMs: number;
}

type RoomOf = (folder: string) => Promise<{ free: number; all: number }>;

const roomOn: RoomOf = async (folder) => {
  const { bsize, bavail, blocks } = await statfs(folder);
  return { free: bsize * bavail, all: bsize * blocks };
};

/** Brings the cache below its limit. Several processes may sweep one folder at the same time. */
export async function sweepCache(
  files: CacheFiles,
  { ages, roomOf = roomOn, ...asked }: { bytesMax: number; ages: FileAges; roomOf?: RoomOf },
): Promise<void> {
  await removeLeftovers(files, ages);
  let bytes = (await pooledPacks(files)).reduce((sum, pack) => sum + pack.bytes, 0);
  const { free, all } = await roomOf(files.root);
  // The bus and other programs also need part of the disk.
  const left = Math.max(0, bytes + free - GIT_CACHE_FREE_SHARE * all);
  const bytesMax = Math.min(asked.bytesMax, left);
  if (bytes <= bytesMax) return;
  bytes = await removeUnlinked(files, bytesMax);
  const ids = await byLastUse(files);
  const some = Math.ceil(ids.length * EVICTED_SHARE);
  for (let from = 0; from < ids.length && bytes > bytesMax; from += some) {
    for (const id of ids.slice(from, from + some)) await evict(files, id, ages);
    bytes = await removeUnlinked(files, bytesMax);
  }
}

/** Removes old files that nobody uses: those of killed processes, and evicted repositories that were in use before. */
async function removeLeftovers({ root, answers }: CacheFiles, ages: FileAges): Promise<void> {
  for (const folder of [join(root, "tmp"), answers]) {
    for (const name of await entriesOf(folder)) {
      const path = join(folder, name);
      const stats = await statOf(path);
      if (stats && ages.isPastGrace(stats.mtimeMs)) await removeAll(path);
    }
  }
  for (const name of await entriesOf(join(root, "trash"))) {
    const path = join(root, "trash", name);
    if (!(await isUsed(join(path, "uses"), ages))) await removeAll(path);
  }
}

async function byLastUse(files: CacheFiles): Promise<string[]> {
  const ids = await entriesOf(join(files.root, "repos"));
  const used = await Promise.all(
    ids.map(async (id) => ({ id, usedMs: (await statOf(files.uses(id)))?.mtimeMs ?? 0 })),
  );
  return used.sort((one, other) => one.usedMs - other.usedMs).map(({ id }) => id);
}

/**
 * Evicts a repository, unless a process uses it. The folder is renamed first: a later request creates it again, and a
 * request that began just before keeps its open files.
 */
async function evict(files: CacheFiles, id: string, ages: FileAges): Promise<void> {
  if (await isUsed(files.uses(id), ages)) return;
  const trash = files.trash(id);
  try {
    await rename(files.repo(id), trash);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  if (!(await isUsed(join(trash, "uses"), ages))) await removeAll(trash);
}

/**
 * Returns whether a process uses the repository. A marker that is older than any process can be belongs to a killed
 * process.
 */
async function isUsed(uses: string, ages: FileAges): Promise<boolean> {
  for (const name of await entriesOf(uses)) {
    const stats = await statOf(join(uses, name));
    if (stats && !ages.isPastGrace(stats.mtimeMs)) return true;
  }
  return false;
}

/**
 * Removes packs that no repository uses, the least recently used first, until the cache is below its limit. Returns
 * the bytes of all packs that stay.
 */
async function removeUnlinked(files: CacheFiles, bytesMax: number): Promise<number> {
  const packs = await pooledPacks(files);
  let bytes = packs.reduce((sum, pack) => sum + pack.bytes, 0);
  const unlinked = packs
    .filter(({ links }) => links === 1)
    .sort((one, other) => one.usedMs - other.usedMs);
  for (const pack of unlinked) {
    if (bytes <= bytesMax) break;
    await removeAll(pack.path);
    bytes -= pack.bytes;
  }
  return bytes;
}

async function pooledPacks({ root }: CacheFiles): Promise<(PooledPack & { links: number })[]> {
  const packs: (PooledPack & { links: number })[] = [];
  for (const account of await entriesOf(join(root, "packs"))) {
    for (const name of await entriesOf(join(root, "packs", account))) {
      const path = join(root, "packs", account, name);
      const stats = await statOf(path);
      if (stats) packs.push({ path, bytes: stats.size, usedMs: stats.mtimeMs, links: stats.nlink });
    }
  }
  return packs;
}
