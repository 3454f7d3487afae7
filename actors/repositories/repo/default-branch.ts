/** Ensures that the default branch of a repository exists, so that a clone checks out files. */
import { ActorError } from "../../../schemas/errors.ts";
import { BranchName, ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { headOf } from "./judge-push.ts";
import { RefTable } from "./ref-table.ts";
import { type LiveRepo, type RepoRows, rowsOf } from "./repo-state.ts";

const BRANCHES = "refs/heads/";

/**
 * Returns the default branch after a push. If a repository had no branch and the push does not bring the default
 * branch, the first pushed branch becomes the default. An import and a fork set their default branch themselves.
 */
export function adoptedBranch(
  live: LiveRepo,
  rows: RepoRows,
  table: RefTable,
  commands: readonly string[],
): string {
  const { defaultBranch } = live;
  if (live.status !== "ready" || table.get(headOf(live)) !== ZERO_ID) return defaultBranch;
  if (hasBranch(rows)) return defaultBranch;
  const pushed = commands.map(refOf).filter((ref) => ref.startsWith(BRANCHES));
  const names = pushed
    .filter((ref) => table.get(ref) !== ZERO_ID)
    .map((ref) => ref.slice(BRANCHES.length));
  // A ref may be named `refs/heads/-x`, but the name of a default branch must not look like an option.
  return names.find((name) => BranchName.safeParse(name).success) ?? defaultBranch;
}

/**
 * Refuses a default branch that does not exist, if the repository is ready and has branches. Without branches, it may
 * name a branch that a later push will create.
 */
export function checkDefaultBranch(live: LiveRepo, rows: RepoRows, defaultBranch: string): void {
  if (defaultBranch === live.defaultBranch || live.status !== "ready") return;
  const ref = headOf({ defaultBranch });
  if (new RefTable(rows, live).get(ref) !== ZERO_ID || !hasBranch(rows)) return;
  const message = `Cannot accept /default_branch: there is no branch "${defaultBranch}"; push it first`;
  throw new ActorError("invalid_request", "Cannot change repository: see its faults", {
    faults: [{ pointer: "/default_branch", message }],
  });
}

function hasBranch(rows: RepoRows): boolean {
  for (const [, { refs }] of rowsOf(rows, "refs")) {
    for (const ref in refs) if (ref.startsWith(BRANCHES)) return true;
  }
  return false;
}

/** A command is `<old> <new> <ref>`. */
const refOf = (command: string) => command.slice(2 * (ZERO_ID.length + 1));
