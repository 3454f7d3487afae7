/** Finds the large files of a history. In place of each large file, git stores a small text, its pointer. */
import { ActorError } from "../../../schemas/errors.ts";
import type { RepoView } from "../cache/repo-cache.ts";
import type { OpenedRepo } from "../opened-repo.ts";
import { batchOf } from "../process/cat-file-batch.ts";
import { feed, startGit } from "../process/git-process.ts";
import type { RepositoriesParts } from "../repositories.ts";

/**
 * SMALL_FILES and POINTER find the pointers. A pointer has fewer than 1,024 bytes and begins with its version
 * (docs/spec.md of git-lfs).
 */
const SMALL_FILES = "--filter=combine:object:type=blob+blob:limit=1k";
const POINTER = /^version \S+\n(?:.*\n)*?oid sha256:([0-9a-f]{64})\n(?:.*\n)*?size (\d{1,15})\n/;

/** Returns the ids and sizes of all large files in all commits that `tips` reach. */
export async function lfsPointers(
  { slots, readers }: Pick<RepositoriesParts, "slots" | "readers">,
  repo: OpenedRepo,
  tips: readonly string[],
  signal: AbortSignal,
): Promise<Map<string, number>> {
  if (tips.length === 0) return new Map();
  const leave = await slots.enter(repo, signal);
  try {
    return await readers.inView(repo, signal, (view) => pointersIn(view, tips, signal));
  } finally {
    leave();
  }
}

/**
 * Finds pointers as `lfsPointers` does, in a repository on disk. Rejects with ActorError `limit_reached` past the
 * limit.
 */
export async function pointersIn(
  { cwd, environment }: Pick<RepoView, "cwd" | "environment">,
  tips: readonly string[],
  signal: AbortSignal,
  { objectsMax = Number.POSITIVE_INFINITY }: { objectsMax?: number } = {},
): Promise<Map<string, number>> {
  const found = new Map<string, number>();
  const over = new AbortController();
  try {
    const until = AbortSignal.any([signal, over.signal]);
    const start = (parameters: string[]) =>
      startGit(parameters, { cwd, environment, signal: until });
    const listing = start([
      "rev-list",
      "--objects",
      "--no-object-names",
      SMALL_FILES,
      "--filter-provided-objects",
      "--stdin",
    ]);
    const reading = start(["cat-file", "--batch", "--buffer"]);
    const asked = feed(reading.stdin, listing.stdout);
    // `asked` may reject before it is awaited. Without this handler, the rejection would end the gateway's process.
    asked.catch(() => {});
    listing.stdin.end(`${[...new Set(tips)].join("\n")}\n`);
    for await (const { content } of batchOf(reading.stdout)) {
      const [, oid, bytes] = POINTER.exec(content.toString("latin1")) ?? [];
      if (oid !== undefined && found.size <= objectsMax) found.set(oid, Number(bytes));
    }
    await asked;
    for (const { exit } of [listing, reading]) {
      const { code, stderr } = await exit;
      signal.throwIfAborted();
      if (code !== 0) throw new Error(`Cannot look for large files: ${stderr}`);
    }
    if (found.size > objectsMax) {
      const text = `Cannot import: it has more than ${objectsMax} large files`;
      throw new ActorError("limit_reached", text);
    }
    return found;
  } finally {
    over.abort();
  }
}
