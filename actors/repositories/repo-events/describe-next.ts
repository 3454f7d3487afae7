/** Asks gateways for the commits of an account's pushes, one push after another. */
import { type Envelope, envelope } from "../../../schemas/contract.ts";
import { gitUpkeep } from "../../../schemas/repositories/git-upkeep.ts";
import { EVENT_DESCRIBED_MS, EVENT_DESCRIBING_MS } from "../../../schemas/repositories/limits.ts";
import type { EventRow, EventRows, RepoEventsState } from "./repo-events-state.ts";

export type PushedRow = Extract<EventRow, { type: "pushed" }>;

/**
 * Sends the task for the oldest push that waits for its commits, unless a gateway still looks for the commits of an
 * earlier push. One account may push more often than gateways can count commits. Its tasks must not delay those of
 * other accounts.
 */
export function describeNext(
  state: RepoEventsState,
  rows: EventRows,
  accountId: string,
): { state: RepoEventsState; send: Envelope[] } {
  const push = nextPush(state, rows);
  if (!push) return { state, send: [] };
  const { first, changes } = push;
  const { repoId, namespace, repoName: name, at, others = [] } = first;
  const address = { accountId, namespace, name };
  const task = { address, changes, others, at };
  return {
    state: { ...state, asked: changes.at(-1)?.number ?? state.last },
    send: [envelope(gitUpkeep, repoId, "describe", task)],
  };
}

/**
 * Returns whether the event of a push must be published without commits: EVENT_DESCRIBED_MS after the push, or
 * EVENT_DESCRIBING_MS before that if no gateway has the task. An account may push faster than gateways search. Without
 * the earlier time, gateways would only get pushes whose time is nearly over, and no event would have commits.
 */
export function isTooLate(number: number, { at }: PushedRow, asked: number, now: number): boolean {
  const waitMs = number > asked ? EVENT_DESCRIBED_MS - EVENT_DESCRIBING_MS : EVENT_DESCRIBED_MS;
  return at + waitMs <= now;
}

/** Returns the oldest push that has had no task; undefined while a gateway searches the commits of another push. */
function nextPush({ first, last, asked = last }: RepoEventsState, rows: EventRows) {
  let found: PushedRow | undefined;
  const changes: { number: number; ref: string; before: string; after: string }[] = [];
  for (let number = first; number <= last; number++) {
    const row = rows.get(`${number}`);
    if (row?.type !== "pushed" || !row.open) continue;
    if (number <= asked) return undefined;
    // Only the first event of a push has `others`. Without it, the event was deleted to make room for later ones.
    if (row.others && found) break;
    found ??= row.others && row;
    const { ref, before, after } = row;
    if (found) changes.push({ number, ref, before, after });
  }
  return found && { first: found, changes };
}
