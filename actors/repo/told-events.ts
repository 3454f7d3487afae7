/** What a repository tells those who follow its account. */
import { type Envelope, envelope } from "../../schemas/contract.ts";
import { EVENT_REFS_MAX } from "../../schemas/git-limits.ts";
import { ZERO_ID } from "../../schemas/git-names.ts";
import { type RepoEvent, repoEvents } from "../../schemas/repo-events.ts";
import type { LiveRepo } from "./repo-state.ts";

/** What an event is beside where and when it happened. */
type What<E = RepoEvent> = E extends RepoEvent
  ? Omit<E, "repoId" | "namespace" | "repoName" | "at">
  : never;

export function event(live: LiveRepo, repoId: string, at: number, what: What): Envelope {
  const { accountId, namespace, name: repoName } = live;
  // Only the halves of one event are put together here.
  const whole = { ...what, repoId, namespace, repoName, at } as RepoEvent;
  return envelope(repoEvents, accountId, "happened", { event: whole });
}

/** Of the commands of a push those that changed a ref. */
export function pushed(commands: readonly string[], results: string): What {
  const made = commands
    .filter((_, number) => results[number] === "o")
    .map((command) => ({
      before: command.slice(0, ZERO_ID.length),
      after: command.slice(ZERO_ID.length + 1, 2 * ZERO_ID.length + 1),
      ref: command.slice(2 * ZERO_ID.length + 2),
    }))
    .filter(({ before, after }) => before !== after);
  const refs = made.slice(0, EVENT_REFS_MAX);
  return { type: "pushed", refs, refsTotal: made.length };
}

/** A fork or an import that has become ready. */
export function arrival(before: LiveRepo, after: LiveRepo, id: string, at: number): Envelope[] {
  if (after.status !== "ready" || after.source === null) return [];
  const { source } = after;
  if (before.status === "forking") return [event(after, id, at, { type: "forked", source })];
  if (before.status === "importing") return [event(after, id, at, { type: "imported", source })];
  return [];
}
