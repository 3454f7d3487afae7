/** Forks a repository: a new one that shares the origin's packs, or has one of its own with nothing but a branch. */
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { FORK_REFS_BYTES_MAX } from "../../schemas/artifacts-limits.ts";
import { ActorError } from "../../schemas/errors.ts";
import { SWAP_PACKS_MAX } from "../../schemas/git-limits.ts";
import { ZERO_ID } from "../../schemas/git-names.ts";
import { type HeldPack, type RepoAddress, repo as repoContract } from "../../schemas/repo.ts";
import { filesOf, removeAll } from "./cache-files.ts";
import { commitPush } from "./commit-push.ts";
import type { OpenedRepo } from "./git-parts.ts";
import { runGit } from "./git-process.ts";
import type { CreatedRepo, NewRepo, Repositories } from "./repositories.ts";

export interface ForkRequest extends Pick<NewRepo, "description" | "readOnly"> {
  /** In the origin's namespace. */
  name: string;
  /** Nothing of other branches and tags is in it, not even for those who know its id. */
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
  const [{ repo, held }, entry] = await Promise.all([
    holdOrigin(repositories, origin, signal),
    repositories.get(origin, signal),
  ]);
  if (entry.status === "importing") throw busy("import_in_progress", "imported");
  if (entry.status === "forking") throw busy("fork_in_progress", "forked");
  const { manifest } = repo;
  const tip = manifest.refs.get(manifest.head);
  const refs: [string, string][] = defaultBranchOnly
    ? tip === undefined
      ? []
      : [[manifest.head, tip]]
    : [...manifest.refs];
  const shared = [...manifest.packs.values()].map((pack) => ({ ...pack, until: held }));
  const packs =
    defaultBranchOnly || shared.length > SWAP_PACKS_MAX
      ? await packRefs(repositories, repo, refs, signal)
      : shared;
  const address = { ...origin, namespace: entry.namespace, name };
  const settings = {
    description: given.description === undefined ? entry.description : given.description,
    defaultBranch: entry.defaultBranch,
    readOnly: given.readOnly,
  };
  const source = `artifacts:${entry.namespace}/${entry.name}`;
  const objects = packs.reduce((sum, pack) => sum + objectsIn(pack), 0);
  if (Buffer.byteLength(JSON.stringify(refs)) <= FORK_REFS_BYTES_MAX) {
    const content = { refs, packs };
    const made = await repositories.make(address, settings, { source, status: "ready", content });
    return { ...made, objects };
  }
  return {
    ...(await forkInParts(repositories, address, settings, { source, refs, packs })),
    objects,
  };
}

/** The origin with its packs, which the sweep leaves for as long as `held` even where it drops them now. */
async function holdOrigin(
  repositories: Repositories,
  origin: RepoAddress,
  signal: AbortSignal,
): Promise<{ repo: OpenedRepo; held: number }> {
  let repo = await repositories.open(origin, signal);
  for (;;) {
    const { packs } = repo.manifest;
    const store = repositories.parts.packs;
    const held = await store.hold(origin.accountId, [...packs.keys()], signal);
    // What it still names after that has not been removed before.
    const later = await repositories.open(origin, signal);
    if ([...packs.keys()].every((sha256) => later.manifest.packs.has(sha256))) {
      return { repo, held };
    }
    repo = later;
  }
}

/** Too many refs for one message: they come as in a push, and until they are there it says that it is being forked. */
async function forkInParts(
  repositories: Repositories,
  address: RepoAddress,
  settings: NewRepo,
  { source, refs, packs }: { source: string; refs: [string, string][]; packs: readonly HeldPack[] },
): Promise<CreatedRepo> {
  const { actors } = repositories.parts;
  const open = { ...settings, readOnly: false };
  const made = await repositories.make(address, open, { source, status: "forking" });
  const faults = await commitPush(actors, made.id, {
    commands: refs.map(([ref, value]) => ({ old: ZERO_ID, value, ref })),
    atomic: true,
    generation: 0,
    forward: [],
    packs,
  });
  const fault = faults.find((text) => text !== undefined);
  if (fault !== undefined) throw new Error(`Cannot fork: ${fault}`);
  if (settings.readOnly) await actors.call(repoContract, made.id, "configure", { readOnly: true });
  const ready = { status: "ready" as const, failure: null };
  const entry = await actors.call(repoContract, made.id, "setStatus", ready);
  return { ...made, ...entry };
}

/** A pack with all that these refs lead to, and nothing else. */
async function packRefs(
  repositories: Repositories,
  repo: OpenedRepo,
  refs: readonly [string, string][],
  signal: AbortSignal,
): Promise<HeldPack[]> {
  if (refs.length === 0) return [];
  const { slots, cache, readers, packs } = repositories.parts;
  const leave = await slots.enter(repo.id, signal);
  const folder = resolve(cache.files.temporary("fork"));
  try {
    using view = await readers.view(repo, signal);
    await mkdir(folder, { recursive: true });
    const { code, stdout, stderr } = await runGit(
      ["pack-objects", "--revs", "--delta-base-offset", "-q", join(folder, "pack")],
      {
        cwd: view.cwd,
        environment: view.environment,
        input: `${[...new Set(refs.map(([, id]) => id))].join("\n")}\n`,
        signal,
      },
    );
    const name = stdout.toString("latin1").trim();
    if (code !== 0 || !/^[0-9a-f]{40}$/.test(name)) throw new Error(`Cannot fork: ${stderr}`);
    const files = filesOf(join(folder, `pack-${name}`));
    const pack = await packs.put(repo.accountId, files, signal);
    await cache.adopt(repo.accountId, pack, files).catch(() => {});
    return [pack];
  } finally {
    await removeAll(folder);
    leave();
  }
}

/** By the size of its index: a head, then an id, a sum and an offset for each (gitformat-pack(5), "Version 2"). */
const INDEX_FIXED_BYTES = 8 + 256 * 4 + 2 * 20;
const INDEX_BYTES_EACH = 20 + 4 + 4;
const objectsIn = ({ indexBytes }: HeldPack) =>
  Math.max(0, Math.floor((indexBytes - INDEX_FIXED_BYTES) / INDEX_BYTES_EACH));

const busy = (code: "import_in_progress" | "fork_in_progress", done: string) =>
  new ActorError(code, `Cannot fork: the repository is being ${done}`, { retryAfterS: 5 });
