/**
 * Imports a public repository. Git fetches it from one checked address, and its content is then checked and stored
 * like a push.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { BranchName, ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { GIT_SIZE_SETTINGS } from "../../../schemas/repositories/git-sizes.ts";
import { IMPORT_MS_MAX, REPO_SHALLOW_MAX } from "../../../schemas/repositories/limits.ts";
import {
  type ImportProgress,
  type RepoAddress,
  type RepoOrigin,
  repo as repoContract,
} from "../../../schemas/repositories/repo.ts";
import { gone, removeAll, statOf } from "../cache/cache-files.ts";
import { PktReader } from "../git/pkt-line.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { changeRefused, commitPush, reasonOf } from "../packs/commit-push.ts";
import { inspectPack } from "../packs/inspect-pack.ts";
import { quarantinePack } from "../packs/quarantine.ts";
import { startGit } from "../process/git-process.ts";
import { withinBytes } from "./folder-bytes.ts";
import { importLfs } from "./import-lfs.ts";
import { type Origin, type OriginParts, openOrigin, originFault } from "./import-origin.ts";
import { progressOf } from "./import-progress.ts";
import { describeInvalid, wantedRefs } from "./wanted-refs.ts";

/**
 * Bytes on disk that an import may take beside twice the limit of a repository: for indexes, and for files that are
 * smaller than a block.
 */
const IMPORT_MORE_BYTES = 16 * 1024 * 1024;

export interface ImportParts extends GitParts, OriginParts {
  lfsObjectsMax?: number;
  /** Time limit of one import. */
  msMax?: number;
}

/**
 * Imports a repository. Resolves to a text about missing refs and large files, or null. A repetition changes nothing,
 * and resolves to the same text. Rejects with an ActorError that states the reason of a failure.
 */
export async function importRepo(
  given: ImportParts,
  { id, address, url, branch, depth }: RepoOrigin & { id: string; address: RepoAddress },
  left: AbortSignal,
  tell: (progress: ImportProgress) => void,
): Promise<string | null> {
  const parts = { ...given, ...requestsFor(address.accountId, given) };
  const { msMax = IMPORT_MS_MAX } = parts;
  const late = new AbortController();
  const text = `Cannot import: it takes longer than ${Math.ceil(msMax / 60_000)} minutes`;
  // An ActorError is not retried: another attempt would take as long.
  const timer = setTimeout(() => late.abort(new ActorError("deadline_exceeded", text)), msMax);
  await using ends = new AsyncDisposableStack();
  ends.defer(() => clearTimeout(timer));
  const signal = AbortSignal.any([left, late.signal]);
  const manifest = await parts.manifests.read(id, address, signal);
  // The task may run again although an earlier run has added the content. That run stored its text before the refs.
  if (manifest.refs.size > 0) return (await parts.actors.call(repoContract, id, "get", {})).failure;
  const repo = { id, accountId: address.accountId, address, manifest };
  const folder = parts.cache.files.temporary("import");
  const leave = await parts.slots.enter(repo, signal);
  tell({ step: "asking", percent: null });
  try {
    await emptyRepository(folder);
    const origin = await openOrigin(parts, { folder, url }, signal);
    const { wanted, invalid } = wantedRefs(origin, branch);
    if (wanted.size === 0) return describeInvalid(invalid);
    const limit = diskLimit(folder, parts.sizes.repoBytes);
    await withinBytes(limit, signal, async (within) => {
      await fetchRefs(origin, [...wanted.keys()], {
        depth,
        fileBytesMax: 2 * parts.sizes.repoBytes,
        onStderr: progressOf(tell),
        signal: within,
      });
    });
    tell({ step: "checking", percent: null });
    const refs = await listRefs(origin.git);
    const shallow = await shallowOf(folder);
    // The shallow commits are reported before any ref reaches them, so that readers know where the history ends. An
    // empty list replaces the commits of an earlier run, after which the origin has changed.
    if (depth !== null || shallow.length > 0) {
      await parts.actors.call(repoContract, id, "importShallow", { commits: shallow });
    }
    // The default branch is also set before the first object is added, because a repeated task ends early if the
    // repository has refs.
    const head = branch === null ? headOf(origin, refs) : `refs/heads/${branch}`;
    if (head !== undefined && refs.has(head)) await setHead(parts.actors, id, head);
    // Large files are also imported before the refs, because a repeated task ends early if the repository has refs.
    const large = { folder, tips: [...refs.values()], url: origin.url };
    const lackingFiles = await importLfs(parts, repo, large, signal, tell);
    const texts = [describeInvalid(invalid), lackingFiles];
    const lacking = texts.filter((text) => text !== null).join(". ") || null;
    // A null replaces the text of an earlier run, after which the origin has changed.
    await parts.actors.call(repoContract, id, "importLacks", { lacking }).catch((error) => {
      // A host of an earlier version does not know this message. There a repeated task loses the text.
      if (!(error instanceof ActorError && error.code === "invalid_request")) throw error;
    });
    await takeIn(parts, repo, { folder, refs, signal });
    return lacking;
  } catch (error) {
    // If the timeout has passed, its error replaces the error of the step that it interrupted.
    late.signal.throwIfAborted();
    // If the folder is gone, another process has emptied the cache and the origin is not at fault. The task then runs
    // again.
    if (!(await statOf(folder))) throw gone(folder);
    throw error;
  } finally {
    leave();
    await removeAll(folder);
  }
}

async function emptyRepository(folder: string): Promise<void> {
  await mkdir(join(folder, "objects", "pack"), { recursive: true });
  await mkdir(join(folder, "refs"), { recursive: true });
  await writeFile(join(folder, "HEAD"), "ref: refs/heads/none-of-those\n");
}

/**
 * Limits all files of an import together. An origin that is only a folder of files (the dumb protocol) can name any
 * number of packs and objects, and the limit for each file does not bound their sum.
 */
const diskLimit = (folder: string, repoBytes: number): Parameters<typeof withinBytes>[0] => {
  const bytesMax = 2 * repoBytes + IMPORT_MORE_BYTES;
  const text = `Cannot import: it takes more than ${bytesMax} bytes on disk; a repository may have ${repoBytes} (${GIT_SIZE_SETTINGS.repoBytes})`;
  return { folder, bytesMax, tooLarge: () => new ActorError("limit_reached", text) };
};

async function fetchRefs(
  { git, url }: Origin,
  refs: readonly string[],
  {
    depth,
    ...options
  }: {
    depth: number | null;
    fileBytesMax: number;
    onStderr: (text: string) => void;
    signal: AbortSignal;
  },
): Promise<void> {
  const specs = refs.map((ref) => `+${ref}:${ref}`).join("\n");
  const shallower = depth === null ? [] : [`--depth=${depth}`];
  const parameters = ["--progress", "--no-tags", "--no-write-fetch-head", "--stdin"];
  const { code, stderr } = await git(["fetch", ...parameters, ...shallower, "--", url], {
    ...options,
    input: `${specs}\n`,
  });
  if (code !== 0) throw originFault(stderr, url);
}

/**
 * Returns the ref of the new default branch: the branch of the origin's HEAD. If HEAD names no imported branch,
 * chooses one, because a clone without a default branch has no files: a branch at the commit of HEAD, or else any.
 */
function headOf(
  { head, refs: known }: Pick<Origin, "head" | "refs">,
  refs: ReadonlyMap<string, string>,
): string | undefined {
  const branches = [...refs.keys()].filter(mayBeDefault).sort();
  if (head !== undefined && branches.includes(head)) return head;
  const atHead = branches.filter((ref) => refs.get(ref) === known.get("HEAD"));
  const candidates = atHead.length > 0 ? atHead : branches;
  return USUAL_HEADS.find((ref) => candidates.includes(ref)) ?? candidates[0];
}

const mayBeDefault = (ref: string) =>
  ref.startsWith("refs/heads/") && BranchName.safeParse(ref.slice("refs/heads/".length)).success;

const USUAL_HEADS = ["refs/heads/main", "refs/heads/master"];

async function listRefs(git: Origin["git"]): Promise<Map<string, string>> {
  const { code, stdout, stderr } = await git(["for-each-ref", "--format=%(objectname) %(refname)"]);
  if (code !== 0) throw new Error(`Cannot list refs of an import: ${stderr}`);
  const lines = stdout.toString("utf8").split("\n").filter(Boolean);
  return new Map(lines.map((line) => [line.slice(41), line.slice(0, 40)]));
}

/** An id and its newline. */
const SHALLOW_LINE_BYTES = ZERO_ID.length + 1;

/** Returns the commits whose parents were not fetched. */
async function shallowOf(folder: string): Promise<string[]> {
  const path = join(folder, "shallow");
  const commits = ((await statOf(path))?.size ?? 0) / SHALLOW_LINE_BYTES;
  if (commits === 0) return [];
  if (commits <= REPO_SHALLOW_MAX) {
    return (await readFile(path, "latin1")).split("\n").filter(Boolean);
  }
  const reason = `Cannot import: at this depth the history has ${commits} boundary commits, more than ${REPO_SHALLOW_MAX}; name a branch or a greater depth`;
  throw new ActorError("limit_reached", reason);
}

/**
 * Adds the content as a push of all refs would. Git checks the pack, the pack is inspected and stored, and then the
 * repository decides.
 */
async function takeIn(
  parts: ImportParts,
  repo: OpenedRepo,
  { folder, refs, signal }: { folder: string; refs: Map<string, string>; signal: AbortSignal },
): Promise<void> {
  const { sizes } = parts;
  const { repoBytes } = sizes;
  // The shallow commits may have changed since the manifest was read.
  const manifest = await parts.manifests.read(repo.id, repo.address, signal);
  await using view = await parts.cache.open(repo, manifest, signal);
  await using packing = packAll(folder, signal);
  const reader = new PktReader(packing.output);
  await using taken = await quarantinePack(parts.cache.files, view, reader, {
    room: repoBytes,
    repoBytes,
    signal,
  });
  if (taken.lacksRoom) throw new ActorError("storage_full", `Cannot import: ${taken.fault}`);
  if (taken.fault !== undefined || !taken.files) {
    throw new ActorError("conflict", `Cannot import: git refuses it: ${taken.fault}`);
  }
  const tips = new Set(refs.values());
  const { fault, types, treeDepth } = await inspectPack(taken.files, taken, tips, signal, {
    sizes,
  });
  if (fault !== undefined) throw new ActorError("conflict", `Cannot import: ${fault}`);
  const pack = await parts.packs.put(repo.accountId, taken.files, signal);
  const commands = [...refs]
    .filter(([ref, value]) => !ref.startsWith("refs/heads/") || types.get(value) === "commit")
    .map(([ref, value]) => ({ old: ZERO_ID, value, ref }));
  const faults = await commitPush(parts.actors, repo.id, {
    commands,
    atomic: true,
    generation: repo.manifest.generation,
    forward: [],
    packs: [pack],
    bytes: 0,
    bytesMax: repoBytes,
    treeDepth,
  });
  const refused = reasonOf(faults);
  if (refused) throw changeRefused("Cannot import", refused);
  await parts.cache.adopt(repo.accountId, pack.sha256, taken.files).catch(() => {});
}

/** Starts to pack all refs of a repository. Disposing ends git, because a refused pack is not read to its end. */
function packAll(folder: string, signal: AbortSignal): AsyncDisposable & { output: PassThrough } {
  const leave = new AbortController();
  const git = startGit(["pack-objects", "--all", "--stdout", "--delta-base-offset", "-q"], {
    cwd: folder,
    environment: { GIT_DIR: "." },
    signal: AbortSignal.any([signal, leave.signal]),
  });
  git.stdin.end();
  return {
    // The output must be read from the start: unread output is lost when the process ends.
    output: git.stdout.pipe(new PassThrough()),
    async [Symbol.asyncDispose]() {
      leave.abort();
      git.stdout.destroy();
      await git.exit;
    },
  };
}

async function setHead(actors: ActorClient, id: string, head: string): Promise<void> {
  const defaultBranch = head.slice("refs/heads/".length);
  if (!head.startsWith("refs/heads/") || !BranchName.safeParse(defaultBranch).success) return;
  await actors.call(repoContract, id, "configure", { defaultBranch });
}

/** Counts the lookups of names for the account of the import. */
function requestsFor(
  accountId: string,
  { resolve, fetch }: OriginParts,
): Pick<OriginParts, "resolve" | "fetch"> {
  return {
    resolve: (target, signal) => resolve(target, signal, accountId),
    fetch: (url, options) => fetch(url, { ...options, lookupOwner: accountId }),
  };
}
