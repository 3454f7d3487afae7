/**
 * Keeps a gateway's cache below its limit: evicts the least recently used repositories, and then packs that no other
 * repository needs.
 */
import { rename, statfs } from "node:fs/promises";
import { join } from "node:path";
import { GIT_CACHE_GRACE_MS } from "../../../schemas/repositories/limits.ts";
import { type CacheFiles, entriesOf, isCode, removeAll, statOf } from "./cache-files.ts";

/** The part of a smaller disk that the cache leaves free. */
export const GIT_CACHE_FREE_SHARE = 0.1;

/** Part of the repositories that go before the bytes are counted again. */
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

/** Several processes may do this to one folder at a time. */
export async function sweepCache(
  files: CacheFiles,
  { now, roomOf = roomOn, ...asked }: { bytesMax: number; now: number; roomOf?: RoomOf },
): Promise<void> {
  await removeLeftovers(files, now);
  let bytes = (await pooledPacks(files)).reduce((sum, pack) => sum + pack.bytes, 0);
  const { free, all } = await roomOf(files.root);
  // The bus, and all else that stores, needs some of the disk too.
  const left = Math.max(0, bytes + free - GIT_CACHE_FREE_SHARE * all);
  const bytesMax = Math.min(asked.bytesMax, left);
  if (bytes <= bytesMax) return;
  bytes = await removeUnlinked(files, bytesMax);
  const ids = await byLastUse(files);
  const some = Math.ceil(ids.length * EVICTED_SHARE);
  for (let from = 0; from < ids.length && bytes > bytesMax; from += some) {
    for (const id of ids.slice(from, from + some)) await evict(files, id, now);
    bytes = await removeUnlinked(files, bytesMax);
  }
}

/** Removes files that killed processes left behind. */
async function removeLeftovers({ root, answers }: CacheFiles, now: number): Promise<void> {
  for (const folder of [join(root, "tmp"), answers]) {
    for (const name of await entriesOf(folder)) {
      const path = join(folder, name);
      const stats = await statOf(path);
      if (stats && now - stats.mtimeMs > GIT_CACHE_GRACE_MS) await removeAll(path);
    }
  }
  for (const name of await entriesOf(join(root, "trash"))) {
    const path = join(root, "trash", name);
    if (!(await isUsed(join(path, "uses"), now))) await removeAll(path);
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
 * Renames the folder first. A request that comes now makes it again, and one that came just before keeps its open
 * files.
 */
async function evict(files: CacheFiles, id: string, now: number): Promise<void> {
  if (await isUsed(files.uses(id), now)) return;
  const trash = files.trash(id);
  try {
    await rename(files.repo(id), trash);
  } catch (error) {
    if (isCode(error, "ENOENT")) return;
    throw error;
  }
  if (!(await isUsed(join(trash, "uses"), now))) await removeAll(trash);
}

/** A marker past any process's time is that of one that was killed. */
async function isUsed(uses: string, now: number): Promise<boolean> {
  for (const name of await entriesOf(uses)) {
    const stats = await statOf(join(uses, name));
    if (stats && now - stats.mtimeMs <= GIT_CACHE_GRACE_MS) return true;
  }
  return false;
}

/** Removes packs without a repository, the oldest first, and returns the bytes of all that stay. */
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
