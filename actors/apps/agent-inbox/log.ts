/** Lists the log of an inbox for people and clients, and replays events. */
import type { agentInbox, Delivery } from "../../../schemas/apps/agent-inbox.ts";
import { DELIVERIES_SCANNED_MAX, REPLAYS_WAITING_MAX } from "../../../schemas/apps/limits.ts";
import type { Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { countOf, hasNumber, type NumberRuns, withRun } from "../lib/event-log/number-runs.ts";
import type { InboxDraft } from "./inbox-draft.ts";

/** Limit of the runs of consecutive numbers that wait. Replays of failed events leave gaps between the runs. */
const DELIVERY_RUNS_MAX = 1_000;

const DAY_MS = 86_400_000;

type Messages = (typeof agentInbox)["messages"];

export function entryOf(draft: InboxDraft, number: number): Delivery {
  const { waiting, turn } = draft.state;
  const {
    row: _,
    id: _id,
    inlineBytes: _bytes,
    blob: _blob,
    ended,
    ...event
  } = draft.event(number);
  const entry = { ...event, number };
  if (!hasNumber(waiting, number)) return { ...entry, status: ended ?? "failed" };
  if (turn?.number !== number) return { ...entry, status: "waiting" };
  const { attempt, dueAt, sentAt } = turn;
  return dueAt === undefined
    ? { ...entry, status: "waiting", attempts: attempt, lastAttemptAt: sentAt }
    : { ...entry, status: "waiting", attempts: attempt - 1, nextAttemptAt: dueAt };
}

export function list(
  draft: InboxDraft,
  { status, before = Number.MAX_SAFE_INTEGER, limit }: Input<Messages["list"]>,
) {
  const { first, next, waiting } = draft.state;
  const deliveries: Delivery[] = [];
  let number = Math.min(before, next) - 1;
  const last = Math.max(first, number - DELIVERIES_SCANNED_MAX + 1);
  for (; number >= last && deliveries.length < limit; number--) {
    if (isOver(draft, number)) continue;
    const entry = entryOf(draft, number);
    if (status === undefined || entry.status === status) deliveries.push(entry);
  }
  return {
    deliveries,
    waiting: countOf(waiting),
    ...(number >= first && { before: number + 1 }),
  };
}

/**
 * Returns whether the event is older than events are kept, even if `trim` has not removed it yet. A waiting event is
 * kept until it has ended.
 */
export function isOver(draft: InboxDraft, number: number): boolean {
  if (hasNumber(draft.state.waiting, number)) return false;
  return draft.event(number).receivedAt <= draft.now - draft.state.keep.days * DAY_MS;
}

type Wanted = Input<Messages["find"]>;

/** Returns the numbers of ended events that fit, from the oldest event on. */
export function find(draft: InboxDraft, wanted: Wanted): { runs: NumberRuns; next?: number } {
  const [first, last] = rangeOf(draft, wanted);
  const end = Math.min(last, first + DELIVERIES_SCANNED_MAX - 1);
  const runs: NumberRuns = [];
  for (let number = first; number <= end; number++) {
    if (!isWanted(draft, number, wanted)) continue;
    const run = runs.at(-1);
    if (run?.[1] === number - 1) run[1] = number;
    else runs.push([number, number]);
  }
  return { runs, ...(end < last && { next: end + 1 }) };
}

/** Adds ended events to the waiting events. The row of an event changes only when its turn begins. */
export function replay(draft: InboxDraft, wanted: Input<Messages["replay"]>): number {
  const [first, last] = rangeOf(draft, wanted);
  let { waiting, waitingBytes = 0 } = draft.state;
  let replayed = 0;
  for (const [from, to] of wanted.numbers ?? [[first, last]]) {
    for (let number = Math.max(from, first); number <= Math.min(to, last); number++) {
      if (hasNumber(waiting, number) || !isWanted(draft, number, wanted)) continue;
      waiting = withRun(waiting, number, number);
      waitingBytes += draft.event(number).inlineBytes;
      replayed += 1;
      if (countOf(waiting) > REPLAYS_WAITING_MAX || waiting.length > DELIVERY_RUNS_MAX) {
        const text = `more than ${REPLAYS_WAITING_MAX} would wait, or ${DELIVERY_RUNS_MAX} of them apart`;
        throw new ActorError("queue_full", `Cannot replay: ${text}; ask for fewer at once`);
      }
    }
  }
  if (replayed > 0) draft.change({ waiting, waitingBytes });
  return replayed;
}

/** Returns the first and the last number of the log that are in the wanted range. */
const rangeOf = ({ state }: InboxDraft, { from = 1, to = Number.MAX_SAFE_INTEGER }: Wanted) =>
  [Math.max(from, state.first), Math.min(to, state.next - 1)] as const;

function isWanted(draft: InboxDraft, number: number, wanted: Wanted): boolean {
  if (hasNumber(draft.state.waiting, number) || isOver(draft, number)) return false;
  const { receivedFrom = 0, receivedTo = Number.MAX_SAFE_INTEGER, status } = wanted;
  const { receivedAt, ended } = draft.event(number);
  if (receivedAt < receivedFrom || receivedAt > receivedTo) return false;
  return status === undefined || ended === status;
}
