/**
 * Delivers an agent's events one after the other. Each is delivered until it succeeds or its attempts are used up. An
 * agent that lags behind gets several events in one round.
 */
import { type AgentDelivery, agent } from "../../../schemas/apps/agent.ts";
import type { agentInbox, DeliveryOutcome } from "../../../schemas/apps/agent-inbox.ts";
import type { AppRequest } from "../../../schemas/apps/app-exchange.ts";
import { DELIVERIES_TOGETHER_MAX, EVENT_REQUEST_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import { type DeepReadonly, envelope, type Input } from "../../../schemas/contract.ts";
import { isSuccessful } from "../../../schemas/status-classes.ts";
import { withoutNumber } from "../lib/event-log/number-runs.ts";
import { eventRow } from "./agent-inbox-state.ts";
import type { InboxDraft } from "./inbox-draft.ts";

/**
 * Pauses after each failed attempt of a delivery. Together they delay later events by 13 minutes, in addition to the
 * time of the attempts.
 */
export const DELIVERY_PAUSES_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000, 600_000];
export const DELIVERY_TRIES_MAX = DELIVERY_PAUSES_MS.length + 1;
/**
 * Limit of the total request characters of events that are delivered in one round. It equals the limit of a single
 * event.
 */
export const DELIVERIES_TOGETHER_CHARS_MAX = EVENT_REQUEST_CHARS_MAX;
/**
 * An attempt without an answer for this time counts as failed, because the agent surely did not receive the mail.
 * Mail is retried for two minutes, or HOSTED_MAIL_MS_MAX after temporary errors, and may be queued before that.
 */
export const DELIVERY_ANSWER_MS_MAX = 300_000;

type Result = Input<(typeof agentInbox)["messages"]["delivered"]>;
type Turn = NonNullable<InboxDraft["state"]["turn"]>;
/** An attempt that has ended. */
type Tried = DeepReadonly<DeliveryOutcome> & { attempt: number; sentAt?: number | undefined };

/**
 * Begins the next event's turn if no turn is under way. Returns true if it began one; the caller then notifies the
 * agent.
 */
export function begin(draft: InboxDraft): boolean {
  const number = draft.state.waiting[0]?.[0];
  if (draft.state.turn !== undefined || number === undefined) return false;
  const { ended, ...event } = draft.event(number);
  if (ended !== undefined) {
    const replayed = { ...event, replays: event.replays + 1, attempts: 0 };
    draft.writeRows({ [eventRow(number)]: replayed });
  }
  beginTry(draft, number, 1);
  return true;
}

/**
 * Begins the next event's turn and notifies the agent. Used when no reply to the agent's host would carry the next
 * event.
 */
export function beginAndTell(draft: InboxDraft): void {
  if (begin(draft)) tellAgent(draft);
}

/** True while the agent handles an attempt or is about to get one. */
export const isUnderWay = ({ state }: InboxDraft) => state.turn?.sentAt !== undefined;

/** Returns the deliveries that the agent must handle now: the current delivery and the deliveries of its round. */
export function current(draft: InboxDraft): AgentDelivery[] {
  const { turn } = draft.state;
  if (turn?.sentAt === undefined) return [];
  const { number, next = [], attempt } = turn;
  return [number, ...next].map((one) => ({
    ...{ id: deliveryId(draft, one), attempt },
    request: draft.request(one) as AppRequest,
  }));
}

/** Sends one mail that makes the agent's current host handle events until none is left. */
export function tellAgent(draft: InboxDraft): void {
  draft.send(envelope(agent, draft.key, "deliver", {}));
}

/**
 * Records the results that the agent's host reported: of one attempt, and of the deliveries of its round. Then begins
 * the next turn.
 */
export function settle(draft: InboxDraft, { id, attempt, next = [], ...first }: Result): void {
  const { turn } = draft.state;
  // The result of an attempt may arrive after the attempt timed out. Its turn may still run or may have ended.
  if (turn === undefined || id !== deliveryId(draft, turn.number)) return;
  const isCurrent = attempt === turn.attempt && turn.sentAt !== undefined;
  const numbers = [turn.number, ...(turn.next ?? [])];
  for (const [index, outcome] of [first, ...next].entries()) {
    const number = numbers[index];
    if (number === undefined) break;
    const isTaken = outcome.status !== undefined && isSuccessful(outcome.status);
    const tried = { attempt, sentAt: turn.sentAt, ...outcome };
    if (isTaken) end(draft, number, "delivered", tried);
    else if (isCurrent) fail(draft, number, { error: `It answered ${outcome.status}`, ...tried });
    if (!isTaken) break;
  }
  begin(draft);
}

/** Handles the reminder: the next attempt is due, or the result of the last attempt is overdue. */
export function resume(draft: InboxDraft): void {
  draft.change({ resumeAt: undefined });
  const { turn } = draft.state;
  const at = turn === undefined ? undefined : dueAt(turn);
  if (turn === undefined || at === undefined) beginAndTell(draft);
  else if (draft.now < at) waitOn(draft, turn, at);
  else if (turn.sentAt === undefined) {
    beginTry(draft, turn.number, turn.attempt);
    tellAgent(draft);
  } else {
    fail(draft, turn.number, { ...turn, error: "The agent did not answer in time" });
    beginAndTell(draft);
  }
}

/** Waits on, but no longer than the pause of the attempt: the time of day may have been set back. */
function waitOn(draft: InboxDraft, turn: Turn, at: number): void {
  const { number, attempt, sentAt } = turn;
  const dueAt = draft.now + (sentAt === undefined ? pauseBefore(attempt) : DELIVERY_ANSWER_MS_MAX);
  if (at > dueAt) {
    const again =
      sentAt === undefined ? { number, attempt, dueAt } : { ...turn, sentAt: draft.now };
    draft.change({ turn: again });
  }
  draft.remind("resume", Math.min(at, dueAt));
}

const pauseBefore = (attempt: number) => DELIVERY_PAUSES_MS[attempt - 2] ?? 0;

function fail(draft: InboxDraft, number: number, tried: Tried): void {
  const { attempt } = tried;
  if (attempt >= DELIVERY_TRIES_MAX) {
    end(draft, number, "failed", tried);
    return;
  }
  draft.writeRows({ [eventRow(number)]: afterTry(draft, number, tried) });
  const dueAt = draft.now + pauseBefore(attempt + 1);
  draft.change({ turn: { number, attempt: attempt + 1, dueAt } });
  wake(draft, dueAt);
}

/** Ends the current turn, so that another may begin. */
function end(draft: InboxDraft, number: number, ended: "delivered" | "failed", tried: Tried): void {
  draft.writeRows({ [eventRow(number)]: { ...afterTry(draft, number, tried), ended } });
  const { waiting, waitingBytes = 0 } = draft.state;
  draft.change({
    turn: undefined,
    waiting: withoutNumber(waiting, number),
    waitingBytes: Math.max(0, waitingBytes - draft.event(number).inlineBytes),
  });
}

function afterTry(draft: InboxDraft, number: number, { attempt, sentAt, status, error }: Tried) {
  const { answerStatus: _status, error: _error, ...event } = draft.event(number);
  return {
    ...event,
    attempts: attempt,
    ...(sentAt !== undefined && { lastAttemptAt: sentAt }),
    ...(status !== undefined && { answerStatus: status }),
    ...(error !== undefined && { error }),
  };
}

function beginTry(draft: InboxDraft, number: number, attempt: number): void {
  const { now: sentAt } = draft;
  // A delivery that failed before is attempted without other deliveries.
  const next = attempt === 1 ? nextAfter(draft, number) : [];
  draft.change({ turn: { number, next, attempt, sentAt } });
  wake(draft, sentAt + DELIVERY_ANSWER_MS_MAX);
}

/**
 * Returns the numbers of later events that are delivered in the same round: small events that are in no blob and were
 * not attempted before.
 */
function nextAfter(draft: InboxDraft, number: number): number[] {
  const next: number[] = [];
  let chars = draft.event(number).inlineBytes;
  for (const [first, last] of draft.state.waiting) {
    for (let one = Math.max(first, number + 1); one <= last; one++) {
      const { blob, ended, inlineBytes } = draft.event(one);
      chars += inlineBytes;
      const isApart = ended !== undefined || blob !== undefined;
      if (isApart || chars > DELIVERIES_TOGETHER_CHARS_MAX) return next;
      next.push(one);
      if (next.length === DELIVERIES_TOGETHER_MAX - 1) return next;
    }
  }
  return next;
}

/** Returns the delivery's id. The id is the same in every attempt, but a replay has another id. */
function deliveryId(draft: InboxDraft, number: number): string {
  const { id, replays } = draft.event(number);
  return replays === 0 ? id : `${id}.${replays}`;
}

const dueAt = (turn: { sentAt?: number | undefined; dueAt?: number | undefined }) =>
  turn.dueAt ?? (turn.sentAt ?? 0) + DELIVERY_ANSWER_MS_MAX;

/**
 * Sets the reminder `resume`, unless an earlier one is set already. A reminder that comes too early sets itself
 * again, so most deliveries set none.
 */
function wake(draft: InboxDraft, at: number): void {
  const { resumeAt } = draft.state;
  if (resumeAt === undefined || resumeAt > at) draft.remind("resume", at);
}
