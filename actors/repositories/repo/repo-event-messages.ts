/** The events that a repository sends to the subscribers of its account. */
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { EVENT_OTHERS_MAX, EVENT_REFS_MAX } from "../../../schemas/repositories/limits.ts";
import type { RepoEvent } from "../../../schemas/repositories/repo-event.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { RefTable } from "./ref-table.ts";
import { type LiveRepo, type RepoRows, rowsOf } from "./repo-state.ts";

/** An event without the repository and the time, which `event` adds. */
type What<E = RepoEvent> = E extends RepoEvent
  ? Omit<E, "repoId" | "namespace" | "repoName" | "at">
  : never;

export function event(live: LiveRepo, repoId: string, at: number, what: What): Envelope {
  const { accountId, namespace, name: repoName } = live;
  const { defaultBranch, description, readOnly, createdAt, updatedAt, lastPushAt } = live;
  const about = { defaultBranch, description, readOnly, createdAt, updatedAt, lastPushAt };
  // The cast below is safe: it only joins the two halves of one event.
  const of = { repoId, namespace, repoName, at };
  const isOfAccount = ACCOUNT_EVENTS.has(what.type);
  const whole = { ...what, ...of, ...(isOfAccount && { about }) } as RepoEvent;
  return envelope(repoEvents, accountId, "happened", { event: whole });
}

const ACCOUNT_EVENTS: ReadonlySet<string> = new Set(["created", "deleted", "forked", "imported"]);

/** Makes the event of a push from the commands that changed a ref. */
export function pushed(
  live: LiveRepo,
  rows: RepoRows,
  commands: readonly string[],
  results: string,
  options: readonly string[] = [],
): What {
  const made = commands
    .filter((_, number) => results[number] === "o")
    .map((command) => ({
      before: command.slice(0, ZERO_ID.length),
      after: command.slice(ZERO_ID.length + 1, 2 * ZERO_ID.length + 1),
      ref: command.slice(2 * ZERO_ID.length + 2),
    }))
    .filter(({ before, after }) => before !== after);
  const refs = made.slice(0, EVENT_REFS_MAX);
  const others = refs.some(({ before }) => before === ZERO_ID) ? othersOf(live, rows) : [];
  const pushOptions = options.length > 0 && { options: [...options] };
  return { type: "pushed", refs, refsTotal: made.length, others, ...pushOptions };
}

/** Returns at most EVENT_OTHERS_MAX different object ids of refs, that of the default branch first. */
function othersOf(live: LiveRepo, rows: RepoRows): string[] {
  const others = new Set<string>();
  const head = new RefTable(rows, live).get(`refs/heads/${live.defaultBranch}`);
  if (head !== ZERO_ID) others.add(head);
  for (const [, { refs }] of rowsOf(rows, "refs")) {
    for (const value of Object.values(refs)) {
      if (others.size === EVENT_OTHERS_MAX) return [...others];
      others.add(value);
    }
  }
  return [...others];
}

/** Returns the event of a fork or an import that has become ready. */
export function arrival(before: LiveRepo, after: LiveRepo, id: string, at: number): Envelope[] {
  if (after.status !== "ready" || after.source === null) return [];
  const { source } = after;
  if (before.status === "forking") return [event(after, id, at, { type: "forked", source })];
  if (before.status === "importing") {
    const { importedBranch: branch = null } = after;
    return [event(after, id, at, { type: "imported", source, branch })];
  }
  return [];
}
