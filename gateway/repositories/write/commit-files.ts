/**
 * Commits files to a branch without a clone. If not all changes are plain, git checks the commit as it checks a push.
 * The repository then decides in either case.
 */
import { writeFile } from "node:fs/promises";
import { ActorError } from "../../../schemas/errors.ts";
import { checkComplete } from "../../../schemas/repositories/check-complete.ts";
import { folded, namespaceKey, ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { COMMIT_PATH_DEPTH_MAX, COMMIT_TRIES_MAX } from "../../../schemas/repositories/limits.ts";
import { REF_RESULTS } from "../../../schemas/repositories/ref-command.ts";
import type { RepoAddress } from "../../../schemas/repositories/repo.ts";
import { type CacheFiles, filesOf, removeAll } from "../cache/cache-files.ts";
import { PktReader } from "../git/pkt-line.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { changeRefused, commitPush } from "../packs/commit-push.ts";
import type { PackFiles } from "../packs/pack-store.ts";
import { quarantinePack } from "../packs/quarantine.ts";
import { type Commit, type Person, parseCommit } from "../read/read-parse.ts";
import type { Repositories } from "../repositories.ts";
import { applyChanges, type FileChange, type MadeObject, makeObject } from "./commit-changes.ts";
import { type MadePack, packOf } from "./commit-pack.ts";

export interface NewCommit {
  /** The branch; defaults to the default branch. */
  branch?: string | undefined;
  /** The expected commit of the branch; null: the branch must not exist. When absent, any commit is accepted. */
  expected?: string | null | undefined;
  /** The start of a new branch: a ref or a commit. When absent, its first commit has no parent. */
  base?: string | undefined;
  message: string;
  author?: Person | undefined;
  committer?: Person | undefined;
  changes: readonly FileChange[];
  /** True if the commit may leave every file unchanged. */
  allowEmpty?: boolean | undefined;
}

interface Committed {
  commit: Commit;
  ref: string;
  /** The former commit of the branch; null if there was none. */
  before: string | null;
}

/** Commits all changes or none. Refuses with `branch_moved` if the branch is not at the expected commit. */
export async function commitFiles(
  repositories: Repositories,
  address: RepoAddress,
  asked: NewCommit,
  signal: AbortSignal,
): Promise<Committed> {
  const { accountId, namespace, name } = address;
  // The key of the branch. No name contains a space. An empty branch name stands for the default branch.
  const branch = `${namespaceKey(accountId, namespace)} ${folded(name)} ${asked.branch ?? ""}`;
  return await repositories.commitTurns.run(branch, signal, () =>
    commitAnew(repositories, address, asked, signal),
  );
}

async function commitAnew(
  repositories: Repositories,
  address: RepoAddress,
  asked: NewCommit,
  signal: AbortSignal,
): Promise<Committed> {
  for (let tries = 1; ; tries++) {
    const repo = await repositories.open(address, signal);
    const outcome = await tryCommit(repositories, repo, asked, signal);
    if (typeof outcome === "object") return outcome;
    // A prune has replaced the packs, but the branch may not have moved, so the commit is tried again with the new
    // packs.
    if (outcome === "cleaned" && tries < COMMIT_TRIES_MAX) continue;
    // With `expected`, the client gets `branch_moved`. Otherwise the commit is built again on the new tip.
    if (asked.expected === undefined && tries < COMMIT_TRIES_MAX) continue;
    throw moved("it moved meanwhile");
  }
}

async function tryCommit(
  repositories: Repositories,
  repo: OpenedRepo,
  asked: NewCommit,
  signal: AbortSignal,
): Promise<Committed | "moved" | "cleaned"> {
  const { parts } = repositories;
  const { manifest } = repo;
  const ref = asked.branch === undefined ? manifest.head : `refs/heads/${asked.branch}`;
  const before = manifest.refs.get(ref);
  checkExpected(asked, before);
  checkComplete(manifest.status, "Cannot commit");
  if (manifest.readOnly) throw new ActorError("conflict", `Cannot commit: ${REF_RESULTS.r}`);
  const parent = before ?? (await baseOf(repositories, repo, asked, signal));
  const made = await build(repositories, repo, asked, parent, signal);
  const [commit] = made;
  if (!commit) throw new Error("Cannot commit: nothing was made");

  const pack = await packOf(made);
  await using taken = asked.changes.every(isPlain)
    ? writePack(parts.cache.files, pack)
    : await checkedByGit(repositories, repo, pack, signal);
  const [stored] = await Promise.all([
    parts.packs.put(repo.accountId, taken.files, signal),
    // An error of the cache must not fail the commit, because the stored bytes come from memory.
    taken.written?.catch(() => {}),
  ]);
  const adopted = parts.cache.adopt(repo.accountId, stored.sha256, taken.files).catch(() => {});
  const [fault] = await commitPush(parts.actors, repo.id, {
    commands: [{ old: before ?? ZERO_ID, value: commit.id, ref }],
    atomic: true,
    generation: manifest.generation,
    forward: [0],
    packs: [stored],
    bytes: manifest.bytes,
    bytesMax: parts.sizes.repoBytes,
    treeDepth: Math.max(manifest.treeDepth, COMMIT_PATH_DEPTH_MAX),
  });
  if (fault?.result === "f") return "moved";
  if (fault?.result === "g") return "cleaned";
  if (fault) throw changeRefused("Cannot commit", fault);
  await adopted;
  return { commit: parseCommit(commit.id, commit.content), ref, before: before ?? null };
}

/**
 * Returns whether a change needs no check by git: it deletes a file, or it writes a file that is no symbolic link,
 * and no name in its path can be mistaken for another, such as `.git`. All objects that the commit refers to exist,
 * because the commit was built from them.
 */
function isPlain(change: FileChange): boolean {
  if ("delete" in change) return true;
  if (change.mode === "120000") return false;
  return change.path.split("/").every((step) => PLAIN.test(step));
}

const PLAIN = /^(?!\.git)[A-Za-z0-9_@+=,.-]*[A-Za-z0-9_@+=,-]$/i;

interface TakenPack extends AsyncDisposable {
  files: PackFiles;
  /** Resolves when the files are written; they may be missing before. */
  written?: Promise<unknown>;
}

function writePack(cache: CacheFiles, whole: MadePack): TakenPack {
  const paths = filesOf(cache.temporary("commit"));
  const written = Promise.all([
    writeFile(paths.pack, whole.pack, { flag: "wx" }),
    writeFile(paths.index, whole.index, { flag: "wx" }),
  ]);
  // The code that awaits this promise may fail earlier. A rejection must then not count as unhandled.
  written.catch(() => {});
  return {
    files: { ...paths, whole },
    written,
    async [Symbol.asyncDispose]() {
      await written.catch(() => {});
      await Promise.all([removeAll(paths.pack), removeAll(paths.index)]);
    },
  };
}

/** Lets git check the commit as it checks a push. */
async function checkedByGit(
  { parts }: Repositories,
  repo: OpenedRepo,
  { pack }: MadePack,
  signal: AbortSignal,
): Promise<TakenPack> {
  const leave = await parts.slots.enter(repo, signal);
  try {
    const { repoBytes } = parts.sizes;
    const room = repoBytes - repo.manifest.bytes;
    const taken = await parts.readers.inView(
      repo,
      signal,
      (view) => {
        const source = new PktReader(whole(pack));
        return quarantinePack(parts.cache.files, view, source, { room, repoBytes, signal });
      },
      {
        isDoubtful: ({ fault }) => fault !== undefined,
        discard: (refused) => refused[Symbol.asyncDispose](),
      },
    );
    const { files, fault, lacksRoom } = taken;
    if (files && fault === undefined) return Object.assign(taken, { files });
    await taken[Symbol.asyncDispose]();
    if (lacksRoom) throw new ActorError("storage_full", `Cannot commit: ${fault}`);
    const message = `git refuses it: ${fault}`;
    throw new ActorError("invalid_request", `Cannot commit: ${message}`, {
      faults: [{ pointer: "/changes", message }],
    });
  } finally {
    leave();
  }
}

function checkExpected({ expected, base }: NewCommit, before: string | undefined): void {
  if (expected !== undefined && expected !== (before ?? null)) {
    const place = before === undefined ? "it does not exist" : `it is at ${before}`;
    throw moved(place);
  }
  if (base !== undefined && before !== undefined) throw moved("it exists, and needs no base");
}

async function baseOf(
  repositories: Repositories,
  repo: OpenedRepo,
  { base }: NewCommit,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (base === undefined) return undefined;
  const reader = await repositories.reader(repo.address, signal);
  const commit = await reader.resolve(base);
  if (commit !== undefined) return commit;
  const faults = [{ pointer: "/base", message: `Cannot accept /base: there is no "${base}"` }];
  throw new ActorError("invalid_request", "Cannot commit: see its faults", { faults });
}

/** Builds the new objects and returns them, the commit first. */
async function build(
  repositories: Repositories,
  repo: OpenedRepo,
  { changes, message, allowEmpty = false, ...people }: NewCommit,
  parent: string | undefined,
  signal: AbortSignal,
): Promise<MadeObject[]> {
  const { readers, now, publicUrl } = repositories.parts;
  const objects = readers.reader(repo, signal);
  const found = parent === undefined ? undefined : await objects.head(`${parent}^{tree}`);
  if (parent !== undefined && !found)
    throw new Error(`Cannot read commit ${parent}: it disappeared during the request`);
  const { root, made } = await applyChanges(objects, found?.id, changes);
  if (root === found?.id && !allowEmpty) {
    const text =
      "Cannot commit: the changes leave every file as it is; set allow_empty to commit anyway";
    throw new ActorError("conflict", text);
  }
  const author = people.author ?? {
    name: "Trunkline",
    email: `noreply@${new URL(publicUrl).hostname}`,
  };
  const at = `${Math.floor(now() / 1_000)} +0000`;
  const line = ({ name, email }: Person) => `${name} <${email}> ${at}`;
  const head = [
    `tree ${root}`,
    ...(parent === undefined ? [] : [`parent ${parent}`]),
    `author ${line(author)}`,
    `committer ${line(people.committer ?? author)}`,
  ];
  const text = `${head.join("\n")}\n\n${message}${message.endsWith("\n") ? "" : "\n"}`;
  return [makeObject("commit", Buffer.from(text)), ...made];
}

async function* whole(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

const moved = (why: string) =>
  new ActorError("branch_moved", `Cannot commit to the branch: ${why}`);
