/**
 * Forks a repository. The fork shares the origin's packs, or has one new pack: with only the default branch, or in
 * place of too many packs.
 */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import type { LfsObject } from "../../../schemas/repositories/lfs.ts";
import {
  LFS_NAMED_MAX,
  REPO_BYTES_SETTING_MAX,
  SWAP_PACKS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type RepoAddress, repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { filesOf, gone, removeAll, statOf } from "../cache/cache-files.ts";
import type { Manifest } from "../cache/manifest-reader.ts";
import { objectsIn } from "../count-objects.ts";
import { lfsPointers } from "../lfs/lfs-pointers.ts";
import type { KeptLfsObject } from "../lfs/lfs-store.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { commitPush, reasonOf } from "../packs/commit-push.ts";
import { heldNow, type KeptPack, type PackFiles } from "../packs/pack-store.ts";
import { runGit } from "../process/git-process.ts";
import type { HeldView } from "../read/read-objects.ts";
import type { CreatedRepo, NewRepo, Repositories } from "../repositories.ts";

/** Bytes of a fork's refs in one message, as JSON. More refs are sent in parts. */
export const FORK_REFS_BYTES_MAX = 200_000;

interface ForkRequest extends Pick<NewRepo, "description" | "readOnly" | "bounds"> {
  /** The name of the fork, in the origin's namespace. */
  name: string;
  /** True if the fork must contain no object of other branches and tags, not even for clients that know its id. */
  defaultBranchOnly?: boolean | undefined;
}

export interface ForkedRepo extends CreatedRepo {
  objects: number;
}

export async function forkRepo(
  repositories: Repositories,
  origin: RepoAddress,
  { name, defaultBranchOnly = false, ...given }: ForkRequest,
  signal: AbortSignal,
): Promise<ForkedRepo> {
  const { repo, entry, files } = await lookAt(repositories, origin, signal);
  if (entry.status === "importing") throw busy("import_in_progress", "imported");
  if (entry.status === "forking") throw busy("fork_in_progress", "forked");
  const { refs, head } = repo.manifest;
  if (defaultBranchOnly && refs.size > 0 && !refs.has(head)) {
    const text = `Cannot fork: "${entry.name}" has no branch "${entry.defaultBranch}", its default branch`;
    throw new ActorError("conflict", `${text}; fork it without default_branch_only`);
  }
  const target = {
    address: { ...origin, namespace: entry.namespace, name },
    settings: {
      description: given.description === undefined ? entry.description : given.description,
      defaultBranch: entry.defaultBranch,
      readOnly: given.readOnly,
      bounds: given.bounds,
    },
    source: `artifacts:${entry.namespace}/${entry.name}`,
  };
  if (defaultBranchOnly || files.length > 0 || !fitsMessage(repo)) {
    return forkInSteps(repositories, repo, { ...target, defaultBranchOnly, signal });
  }
  let objects = 0;
  const made = await repositories.make(target.address, target.settings, {
    source: target.source,
    status: "ready",
    shallow: repo.manifest.shallow,
    isListed: true,
    // Runs while the name is being claimed.
    content: async () => {
      const { manifest, packs } = await holdOrigin(repositories, repo, signal);
      if (manifest !== repo.manifest) await checkStillSimple(repositories, origin, signal);
      objects = countObjects(packs);
      return { refs: [...manifest.refs], packs, treeDepth: manifest.treeDepth };
    },
  });
  return { ...made, objects };
}

/** Reads the list of large files after the refs, so that every large file that a ref reaches is included. */
function lookAt({ parts }: Repositories, address: RepoAddress, signal: AbortSignal) {
  const { accountId } = address;
  return parts.finder.with(address, signal, async (id) => {
    const [manifest, entry] = await Promise.all([
      parts.manifests.read(id, address, signal),
      parts.actors.call(repoContract, id, "get", address, { signal }),
    ]);
    // If the list was read at the same time as the refs, it could lack the large files of a push whose refs were
    // read.
    const files = await listLfsObjects(parts.actors, id, signal);
    return { repo: { id, accountId, address, manifest }, entry, files };
  });
}

/**
 * Checks again whether the fork fits one message, because a compaction has replaced the packs of the origin
 * meanwhile.
 */
async function checkStillSimple(
  repositories: Repositories,
  origin: RepoAddress,
  signal: AbortSignal,
): Promise<void> {
  const { repo, files } = await lookAt(repositories, origin, signal);
  if (files.length === 0 && fitsMessage(repo)) return;
  const text = "Cannot fork: the repository changed meanwhile; try again";
  throw new ActorError("unavailable", text, { retryAfterS: 1 });
}

const fitsMessage = ({ manifest: { refs, packs } }: OpenedRepo) =>
  packs.size <= SWAP_PACKS_MAX &&
  Buffer.byteLength(JSON.stringify([...refs])) <= FORK_REFS_BYTES_MAX;

interface ForkTarget {
  address: RepoAddress;
  settings: NewRepo;
  source: string;
}

/**
 * Forks in several steps, if a pack must be built first, the origin has large files, or the refs do not fit one
 * message.
 */
async function forkInSteps(
  repositories: Repositories,
  origin: OpenedRepo,
  {
    address,
    settings,
    source,
    defaultBranchOnly,
    signal,
  }: ForkTarget & { defaultBranchOnly: boolean; signal: AbortSignal },
): Promise<ForkedRepo> {
  const { manifest, packs: shared } = await holdOrigin(repositories, origin, signal);
  const repo = { ...origin, manifest };
  const { shallow, treeDepth } = manifest;
  const tip = manifest.refs.get(manifest.head);
  // The default branch may have been deleted meanwhile.
  const own: [string, string][] = tip === undefined ? [] : [[manifest.head, tip]];
  const refs = defaultBranchOnly ? own : [...manifest.refs];
  const packs =
    defaultBranchOnly || shared.length > SWAP_PACKS_MAX
      ? await packRefs(repositories, repo, refs, signal)
      : shared;
  const objects = countObjects(packs);
  const files = await holdLfsObjects(repositories, repo, { refs, defaultBranchOnly, signal });
  const isSmall = Buffer.byteLength(JSON.stringify(refs)) <= FORK_REFS_BYTES_MAX;
  if (files.length === 0 && isSmall) {
    const content = async () => ({ refs, packs, treeDepth });
    const ready = { source, status: "ready" as const, shallow, content };
    return { ...(await repositories.make(address, settings, ready)), objects };
  }
  const parts = { source, refs, packs, shallow, treeDepth, files };
  return { ...(await forkInParts(repositories, address, settings, parts)), objects };
}

/**
 * Returns the origin's manifest and its packs. The packs are held: the sweep keeps them for a while, even if the
 * origin drops them now.
 */
async function holdOrigin(
  { parts }: Repositories,
  { id, address, ...origin }: OpenedRepo,
  signal: AbortSignal,
): Promise<{ manifest: Manifest; packs: KeptPack[] }> {
  let { manifest } = origin;
  for (;;) {
    const { packs } = manifest;
    const until = await parts.packs.hold(address.accountId, [...packs.keys()], signal);
    // Blobs that the origin still names now were not removed before.
    const later = await parts.manifests.read(id, address, signal);
    if ([...packs.keys()].every((sha256) => later.packs.has(sha256))) {
      return { manifest, packs: Array.from(packs.values(), (pack) => ({ ...pack, until })) };
    }
    manifest = later;
  }
}

/**
 * Creates a fork whose content is too large for one message. The content is sent like a push. Until all of it has
 * arrived, the fork has the status `forking`.
 */
async function forkInParts(
  repositories: Repositories,
  address: RepoAddress,
  settings: NewRepo,
  {
    source,
    refs,
    packs,
    shallow,
    treeDepth,
    files,
  }: {
    source: string;
    shallow: readonly string[];
    treeDepth: number;
    refs: [string, string][];
    packs: readonly KeptPack[];
    files: readonly KeptLfsObject[];
  },
): Promise<CreatedRepo> {
  const { actors } = repositories.parts;
  const open = { ...settings, readOnly: false };
  const begun = { source, status: "forking" as const, shallow };
  const made = await repositories.make(address, open, begun);
  const faults = await commitPush(actors, made.id, {
    commands: refs.map(([ref, value]) => ({ old: ZERO_ID, value, ref })),
    atomic: true,
    generation: 0,
    forward: [],
    packs,
    // A fork may be as large as its origin, even if the operator has lowered the limit since.
    bytes: 0,
    bytesMax: REPO_BYTES_SETTING_MAX,
    treeDepth,
  });
  const fault = reasonOf(faults);
  if (fault) throw new ActorError("conflict", `Cannot fork: ${fault.text}`);
  for (let from = 0; from < files.length; from += LFS_NAMED_MAX) {
    const objects = files.slice(from, from + LFS_NAMED_MAX).map(heldNow);
    await actors.call(repoContract, made.id, "nameLfsObjects", {
      address,
      objects,
      bytesMax: REPO_BYTES_SETTING_MAX,
    });
  }
  if (settings.readOnly) await actors.call(repoContract, made.id, "configure", { readOnly: true });
  const ready = { status: "ready" as const, failure: null };
  const entry = await actors.call(repoContract, made.id, "setStatus", ready);
  return { ...made, ...entry };
}

/**
 * Holds the origin's large files, so that the sweep keeps them. With `defaultBranchOnly`, holds only the large files
 * that this branch points at.
 */
async function holdLfsObjects(
  { parts }: Repositories,
  repo: OpenedRepo,
  {
    refs,
    defaultBranchOnly,
    signal,
  }: { refs: readonly [string, string][]; defaultBranchOnly: boolean; signal: AbortSignal },
): Promise<KeptLfsObject[]> {
  const { actors, packs } = parts;
  let known = await listLfsObjects(actors, repo.id, signal);
  if (known.length > 0 && defaultBranchOnly) {
    const tips = refs.map(([, id]) => id);
    const pointedAt = await lfsPointers(parts, repo, tips, signal);
    known = known.filter(({ oid }) => pointedAt.has(oid));
  }
  if (known.length === 0) return [];
  const oids = known.map(({ oid }) => oid);
  const until = await packs.hold(repo.accountId, oids, signal, "lfs");
  // Blobs that the origin still names now were not removed before.
  const later = new Set((await listLfsObjects(actors, repo.id, signal)).map(({ oid }) => oid));
  return known.filter(({ oid }) => later.has(oid)).map((object) => ({ ...object, until }));
}

async function listLfsObjects(
  actors: ActorClient,
  id: string,
  signal: AbortSignal,
): Promise<LfsObject[]> {
  const all: LfsObject[] = [];
  for (;;) {
    const after = all.at(-1)?.oid;
    const input = after === undefined ? {} : { after };
    const { objects, more } = await actors.call(repoContract, id, "listLfsObjects", input, {
      signal,
    });
    all.push(...objects);
    if (!more) return all;
  }
}

/** Stores a new pack with exactly the objects that these refs reach. */
async function packRefs(
  repositories: Repositories,
  repo: OpenedRepo,
  refs: readonly [string, string][],
  signal: AbortSignal,
): Promise<KeptPack[]> {
  if (refs.length === 0) return [];
  const { slots, cache, readers, packs } = repositories.parts;
  const leave = await slots.enter(repo, signal);
  try {
    return await readers.inView(repo, signal, async (view) => {
      const folder = resolve(cache.files.temporary("fork"));
      try {
        const files = await packInto(folder, view, refs, signal);
        const pack = await packs.put(repo.accountId, files, signal);
        await cache.adopt(repo.accountId, pack.sha256, files).catch(() => {});
        return [pack];
      } finally {
        await removeAll(folder);
      }
    });
  } finally {
    leave();
  }
}

async function packInto(
  folder: string,
  { cwd, environment }: HeldView,
  refs: readonly [string, string][],
  signal: AbortSignal,
): Promise<PackFiles> {
  await mkdir(folder, { recursive: true });
  const parameters = ["pack-objects", "--revs", "--delta-base-offset", "-q", join(folder, "pack")];
  const input = `${[...new Set(refs.map(([, id]) => id))].join("\n")}\n`;
  const packing = { cwd, environment, input, signal };
  const { code, stdout, stderr } = await runGit(parameters, packing);
  if (!(await statOf(folder))) throw gone(folder);
  const name = stdout.toString("latin1").trim();
  if (code !== 0 || !/^[0-9a-f]{40}$/.test(name)) throw new Error(`Cannot fork: ${stderr}`);
  return filesOf(join(folder, `pack-${name}`));
}

const countObjects = (packs: readonly KeptPack[]) =>
  packs.reduce((sum, pack) => sum + objectsIn(pack), 0);

const busy = (code: "import_in_progress" | "fork_in_progress", done: string) =>
  new ActorError(code, `Cannot fork: the repository is being ${done}`, { retryAfterS: 5 });
