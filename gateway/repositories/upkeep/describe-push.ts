/** Finds the commits that a push brought to each of its refs, for subscribers of the repository's events. */
import { createInterface } from "node:readline";
import { ActorError } from "../../../schemas/errors.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { EVENT_COMMITS_MAX, EVENT_DESCRIBING_MS } from "../../../schemas/repositories/limits.ts";
import type { RepoAddress } from "../../../schemas/repositories/repo.ts";
import type { PushedCommits, RefChange } from "../../../schemas/repositories/repo-event.ts";
import { checkIntact, readInView } from "../cache/read-in-view.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import type { GitParts } from "../git-parts.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { batchOf } from "../process/cat-file-batch.ts";
import { startGit } from "../process/git-process.ts";
import { type Person, parseCommit } from "../read/read-parse.ts";

export const EVENT_MESSAGE_CHARS_MAX = 500;
export const EVENT_NAME_CHARS_MAX = 200;
/** Limit for the parents of one commit in an event. No real merge has more. */
export const EVENT_PARENTS_MAX = 16;

interface ReceivedPush {
  id: string;
  address: RepoAddress;
  changes: readonly (RefChange & { number: number })[];
  others: readonly string[];
}

export interface DescribedRef {
  number: number;
  /** Null if the commits can no longer be read. */
  pushed: PushedCommits | null;
}

export async function describePush(
  { manifests, cache, slots }: Pick<GitParts, "manifests" | "cache" | "slots">,
  { id, address, changes, others }: ReceivedPush,
  left: AbortSignal,
): Promise<DescribedRef[]> {
  const signal = AbortSignal.any([left, AbortSignal.timeout(EVENT_DESCRIBING_MS)]);
  const manifest = await manifests.read(id, address, signal);
  const repo: OpenedRepo = { id, accountId: address.accountId, address, manifest };
  const leave = await slots.enter(repo, signal);
  try {
    const open = () => cache.open(repo, manifest, signal);
    return await readInView(open, (view) => describeIn(view, { changes, others }, signal), {
      signal,
    });
  } finally {
    leave();
  }
}

async function describeIn(
  view: RepoView,
  { changes, others }: Pick<ReceivedPush, "changes" | "others">,
  signal: AbortSignal,
): Promise<DescribedRef[]> {
  const described: DescribedRef[] = [];
  // Commits that one ref of a push brings are not new for the refs after it.
  const before = new Set(others);
  for (const { number, before: old, after } of changes) {
    const known = old === ZERO_ID ? [...before] : [old];
    const pushed = await newIn(view, after, known, signal).catch(async (error: unknown) => {
      signal.throwIfAborted();
      if (!(error instanceof ActorError)) throw error;
      await checkIntact(view);
      // The ref's value may be an object other than a commit, or may have been pruned since.
      return null;
    });
    described.push({ number, pushed });
    before.add(after);
  }
  return described;
}

async function newIn(
  view: Pick<RepoView, "cwd" | "environment">,
  tip: string,
  known: readonly string[],
  signal: AbortSignal,
): Promise<PushedCommits> {
  const { cwd, environment } = view;
  const parameters = ["rev-list", "--ignore-missing", "--stdin"];
  const listing = startGit(parameters, { cwd, environment, signal });
  listing.stdin.end(`${tip}\n${known.map((id) => `^${id}\n`).join("")}`);
  const newest: string[] = [];
  let total = 0;
  for await (const id of createInterface({ input: listing.stdout })) {
    total += 1;
    if (newest.length < EVENT_COMMITS_MAX) newest.push(id);
  }
  const { code, stderr } = await listing.exit;
  signal.throwIfAborted();
  if (code !== 0) throw new ActorError("not_found", `Cannot list commits: ${stderr}`);
  return { commits: await read(view, newest, signal), total };
}

/** Returns the commits with their content, the oldest first. */
async function read(
  { cwd, environment }: Pick<RepoView, "cwd" | "environment">,
  newest: readonly string[],
  signal: AbortSignal,
): Promise<PushedCommits["commits"]> {
  if (newest.length === 0) return [];
  const git = startGit(["cat-file", "--batch", "--buffer"], { cwd, environment, signal });
  git.stdin.end(`${newest.join("\n")}\n`);
  const commits: PushedCommits["commits"] = [];
  for await (const { id, content } of batchOf(git.stdout)) {
    const { message, author, committer, parents, committedAt } = parseCommit(id, content);
    commits.unshift({
      id,
      message: cut(message, EVENT_MESSAGE_CHARS_MAX),
      messageTruncated: message.length > EVENT_MESSAGE_CHARS_MAX,
      committedAt: Math.min(Math.max(0, committedAt * 1_000), LATEST_MS),
      author: shown(author),
      committer: shown(committer),
      parents: parents.slice(0, EVENT_PARENTS_MAX),
    });
  }
  const { code, stderr } = await git.exit;
  signal.throwIfAborted();
  if (code !== 0) throw new Error(`Cannot read commits of a push: ${stderr}`);
  return commits;
}

/** The latest time that an event can contain. The time in a commit can be any number. */
const LATEST_MS = Date.UTC(9999, 0);

const shown = ({ name, email }: Person): Person => ({
  name: cut(name, EVENT_NAME_CHARS_MAX),
  email: cut(email, EVENT_NAME_CHARS_MAX),
});

/** Cuts a text to this length, but not in the middle of a character. */
const cut = (text: string, charsMax: number) => text.slice(0, charsMax).toWellFormed();
