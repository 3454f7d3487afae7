/**
 * Joins the packs of a repository in a temporary folder, and lets the repository replace the old packs by the new
 * ones.
 */
import { link, mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as others } from "node:timers/promises";
import type { TaskContext } from "../../../actors/runtime/workers/define-worker.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { accountFull } from "../../../schemas/repositories/git-storage.ts";
import { PUSH_TREES_MAX, SWAP_PACKS_MAX } from "../../../schemas/repositories/limits.ts";
import { type RepoAddress, repo } from "../../../schemas/repositories/repo.ts";
import { UPKEEP_SMALL_BYTES } from "../../../schemas/store-limits.ts";
import { entriesOf, linkedPack, removeAll } from "../cache/cache-files.ts";
import { packedRefs } from "../cache/view-files.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { UPKEEP_BYTES_FACTOR } from "../packs/account-storage.ts";
import { PackIndex } from "../packs/pack-file.ts";
import { heldNow, type KeptPack } from "../packs/pack-store.ts";
import { measureWholeDepth } from "../packs/tree-depth.ts";
import { runGit, startGit } from "../process/git-process.ts";
import { GEOMETRIC_FACTOR, joinedPacks } from "./joined-packs.ts";

/** Assumed depth past which a compaction measures the real depth again. */
const TREE_DEPTH_MEASURED = 128;
/**
 * Attempts of a prune. An attempt fails if a push changes the repository meanwhile. After the last attempt the prune
 * is retried later.
 */
export const PRUNE_TRIES_MAX = 5;
/** Object ids that are compared before the event loop does other work: a few milliseconds. */
const COMPARED_IDS = 20_000;

interface Repacked {
  /** The SHA-256 hashes of the replaced packs. */
  replaced: string[];
  packs: KeptPack[];
  /** Packs that stay. They hold objects of the replaced packs that the new packs omit. */
  kept: string[];
  /** Depth of the whole directory tree, if it was measured again. */
  treeDepth?: number;
}

const PACKED = /^pack-([0-9a-f]+)\.idx$/;
/**
 * Joins small packs until each pack is at least twice as large as all smaller packs together. Keeps every object,
 * even if no ref reaches it.
 */
const ROLL_UP = ["repack", "-q", "-n", "-d", `--geometric=${GEOMETRIC_FACTOR}`];
/** Makes one pack of the objects that refs reach, and drops all other objects. */
const DROP = ["repack", "-q", "-n", "-a", "-d"];

/**
 * Compacts the packs of a repository. A repetition does no harm. Rejects with ActorError if the compaction should be
 * retried later.
 */
export async function compactPacks(
  parts: GitParts,
  address: RepoAddress,
  { prune }: { prune: boolean },
  { key: id, signal, call }: Pick<TaskContext, "key" | "signal" | "call">,
): Promise<void> {
  const { accountId } = address;
  for (let attempt = 1; ; attempt++) {
    const manifest = await parts.manifests.read(id, address, signal);
    const opened = { id, accountId, address, manifest };
    const { version, generation, packs } = manifest;
    // A prune must name all packs in one message. If there are more than SWAP_PACKS_MAX, the packs are joined without
    // a prune first.
    const dropping = prune && packs.size <= SWAP_PACKS_MAX;
    if (packs.size === 0) return;
    await checkRoom(parts, opened, dropping, signal);
    const made = await repack(parts, opened, dropping, signal);
    try {
      for (let from = 0; from < made.replaced.length; from += SWAP_PACKS_MAX) {
        const replaced = made.replaced.slice(from, from + SWAP_PACKS_MAX);
        const { treeDepth } = made;
        const measured = from === 0 && treeDepth !== undefined && { treeDepth };
        const result = {
          version,
          generation,
          replaced,
          packs: made.packs.map(heldNow),
          kept: made.kept,
          prune: dropping,
        };
        const input = { ...result, ...measured };
        await call(repo, id, "compact", input);
      }
    } catch (error) {
      const isLate = error instanceof ActorError && error.code === "conflict";
      if (!isLate || !prune || attempt >= PRUNE_TRIES_MAX) throw error;
      continue;
    }
    if (prune === dropping) return;
  }
}

/**
 * Refuses with `storage_full` if the account has no room for the joined packs. The store refuses the new pack anyway,
 * but only after git has made it. The estimate is a little too large: packs may have objects in common.
 */
async function checkRoom(
  { storage }: Pick<GitParts, "storage">,
  { accountId, manifest }: OpenedRepo,
  dropping: boolean,
  signal: AbortSignal,
): Promise<void> {
  const { bytesMax } = storage;
  // Nobody knows how much a prune leaves. It may be what makes room for an account past its limit.
  if (bytesMax === 0 || dropping) return;
  const packs = joinedPacks(manifest.packs.values());
  const needed = packs.reduce((sum, { bytes, indexBytes }) => sum + bytes + indexBytes, 0);
  if (needed < UPKEEP_SMALL_BYTES) return;
  const stored = await storage.get(accountId, signal);
  const room = UPKEEP_BYTES_FACTOR * bytesMax - stored.bytes - stored.heldBytes;
  if (needed > room) throw accountFull(stored, bytesMax);
}

async function repack(
  { slots, cache, packs: store }: GitParts,
  opened: OpenedRepo,
  dropping: boolean,
  signal: AbortSignal,
): Promise<Repacked> {
  const { id, accountId, manifest } = opened;
  const leave = await slots.enter(opened, signal);
  const scratch = resolve(cache.files.temporary("compact"));
  const objects = join(scratch, "objects");
  try {
    await using _view = await cache.open(opened, manifest, signal);
    await mkdir(join(objects, "pack"), { recursive: true });
    await mkdir(join(scratch, "refs"));
    await writeFile(join(scratch, "HEAD"), `ref: ${manifest.head}\n`);
    // The refs are those of the manifest, not those of a file in the cache: a prune deletes what they do not reach.
    await writeFile(join(scratch, "packed-refs"), packedRefs(manifest.refs));
    if (manifest.shallow.length > 0) {
      await writeFile(join(scratch, "shallow"), `${manifest.shallow.join("\n")}\n`);
    }
    const before = [...manifest.packs.keys()];
    for (const sha256 of before) {
      const from = linkedPack(cache.files.objects(id, manifest.generation), sha256);
      const to = linkedPack(objects, sha256);
      await link(from.pack, to.pack);
      await link(from.index, to.index);
    }
    const { code, stderr } = await runGit(dropping ? DROP : ROLL_UP, {
      cwd: scratch,
      environment: { GIT_DIR: "." },
      config: { "repack.writeBitmaps": "false" },
      signal,
    });
    if (code !== 0) throw new Error(`Cannot compact: ${stderr}`);
    const after = (await entriesOf(join(objects, "pack"))).flatMap((name) => {
      return PACKED.exec(name)?.[1] ?? [];
    });
    const replaced = before.filter((sha256) => !after.includes(sha256));
    const made = after.filter((name) => !manifest.packs.has(name));
    const views = cache.files.objects(id, manifest.generation);
    const staying = before.filter((sha256) => after.includes(sha256));
    if (dropping) await checkRefsThere(manifest.refs, objects, after);
    const kept = dropping
      ? []
      : await checkAllThere({ objects: views, names: replaced }, { objects, made, staying });
    const treeDepth = await depthAnew(manifest, scratch, signal);
    const packs: KeptPack[] = [];
    for (const name of made) {
      const files = linkedPack(objects, name);
      const pack = await store.put(accountId, files, signal, { isUpkeep: true });
      await cache.adopt(accountId, pack.sha256, files);
      packs.push(pack);
    }
    return { replaced, packs, kept, ...(treeDepth !== undefined && { treeDepth }) };
  } finally {
    await removeAll(scratch);
    leave();
  }
}

/**
 * Measures the depth of the directory tree if the assumed depth is large. The assumed depth is a sum over pushes and
 * exceeds the real depth. Without a new measurement pushes would be refused.
 */
async function depthAnew(
  { treeDepth }: OpenedRepo["manifest"],
  scratch: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  if (treeDepth <= TREE_DEPTH_MEASURED) return undefined;
  const place = { cwd: scratch, environment: { GIT_DIR: "." } };
  const format = "--batch-check=%(objecttype) %(objectname)";
  const listing = startGit(["cat-file", "--batch-all-objects", "--unordered", format], {
    ...place,
    signal,
  });
  listing.stdin.end();
  const trees: string[] = [];
  for await (const line of createInterface({ input: listing.stdout })) {
    if (line.startsWith("tree ") && trees.length <= PUSH_TREES_MAX) trees.push(line.slice(5));
  }
  const { code, stderr } = await listing.exit;
  if (code !== 0) throw new Error(`Cannot list directories: ${stderr}`);
  return await measureWholeDepth(trees, place, signal);
}

/** Checks, independently of git, that a prune keeps the object of every ref. */
async function checkRefsThere(
  refs: ReadonlyMap<string, string>,
  objects: string,
  packs: readonly string[],
): Promise<void> {
  const indexes: PackIndex[] = [];
  for (const name of packs) indexes.push(await indexOf(objects, name));
  let compared = 0;
  for (const [ref, value] of refs) {
    const id = Buffer.from(value, "hex");
    if (!indexes.some((index) => index.find(id) >= 0)) {
      throw new Error(`Cannot prune: the object of ${ref} is in no pack that stays`);
    }
    compared += 1;
    if (compared % COMPARED_IDS === 0) await others();
  }
}

/**
 * Checks, independently of git, that every object of the replaced packs is in another pack. Git omits an object from
 * the new packs if a pack that stays has it. This happens after a thin push, because its stored pack contains copies
 * of delta bases. Returns the staying packs that hold such objects.
 */
async function checkAllThere(
  replaced: { objects: string; names: readonly string[] },
  { objects, made, staying }: { objects: string; made: string[]; staying: string[] },
): Promise<string[]> {
  const indexes: { name: string; index: PackIndex }[] = [];
  for (const name of [...made, ...staying]) {
    indexes.push({ name, index: await indexOf(objects, name) });
  }
  const used = new Set<string>();
  for (const name of replaced.names) {
    const old = await indexOf(replaced.objects, name);
    for (let at = 0; at < old.count; at++) {
      const id = Buffer.from(old.id(at), "hex");
      const holder = indexes.find(({ index }) => index.find(id) >= 0);
      if (!holder) {
        throw new Error(`Cannot compact: ${id.toString("hex")} is in no pack that stays`);
      }
      used.add(holder.name);
      if (at % COMPARED_IDS === 0) await others();
    }
  }
  return staying.filter((name) => used.has(name));
}

async function indexOf(objects: string, name: string): Promise<PackIndex> {
  return new PackIndex(await readFile(linkedPack(objects, name).index));
}
