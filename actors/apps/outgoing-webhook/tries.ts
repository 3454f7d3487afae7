/** Decides when a webhook is attempted and handles the result of each attempt. */

import { readAgentKey } from "../../../schemas/apps/app-names.ts";
import {
  OUTGOING_AGE_MS_MAX,
  OUTGOING_RETRY_AFTER_MS_MAX,
  OUTGOING_TRY_MS_MAX,
} from "../../../schemas/apps/limits.ts";
import { outgoingPlaces } from "../../../schemas/apps/outgoing-places.ts";
import {
  type OutgoingTry,
  type outgoingWebhook,
  webhookPost,
} from "../../../schemas/apps/outgoing-webhook.ts";
import { type DeepReadonly, envelope, type Input } from "../../../schemas/contract.ts";
import { renderJobs } from "../../../schemas/rendering/render-jobs.ts";
import { isSuccessful } from "../../../schemas/status-classes.ts";
import type { OutgoingDraft } from "./outgoing-draft.ts";
import { type OutgoingState, webhookRow } from "./outgoing-webhook-state.ts";

/** Limit of one agent's concurrent webhooks, so that their tasks fit in one transition. */
export const OUTGOING_AT_ONCE_MAX = 5;
/** Pauses before each attempt: none, 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h. */
export const OUTGOING_PAUSES_MS: readonly number[] = [
  5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000,
];
export const OUTGOING_TRIES_MAX = OUTGOING_PAUSES_MS.length + 1;
/**
 * A queue that was granted no place asks again after this time. The account's places may have had no room for the queue,
 * or a host of an older version has dropped the request.
 */
export const OUTGOING_ASK_MS = 120_000;
/** Number of attempts that are stored and shown for each webhook. */
const OUTGOING_TRIES_KEPT = 10;

type Messages = (typeof outgoingWebhook)["messages"];
type Waiting = OutgoingState["waiting"][number];

/**
 * Limit of the characters of the tasks in one transition. After it is exceeded, one more task of the largest size
 * (105 kB with its secrets) still fits below TRANSITION_SEND_BYTES_MAX.
 */
const TASKS_CHARS_MAX = 150_000;
/** The receiver permanently refuses the webhook (RFC 9110, section 15.5.11). */
const GONE = 410;

/**
 * Sends due webhooks to workers, beginning with the longest overdue one, as far as places were `granted`. Asks for more
 * places, and sets the reminder for the other webhooks.
 */
export function pump(draft: OutgoingDraft, granted = 0): void {
  const { now } = draft;
  const lost = draft.state.waiting.filter(
    ({ sentAt }) => sentAt !== undefined && now >= sentAt + OUTGOING_TRY_MS_MAX,
  );
  for (const { number } of lost) {
    fail(draft, number, {
      at: now,
      durationMs: 0,
      error: "The worker ended before it reported the result",
    });
  }
  const due = draft.state.waiting
    .filter((entry) => isDue(entry, now))
    .sort((one, other) => one.dueAt - other.dueAt || one.number - other.number)
    .slice(0, Math.min(granted, roomOf(draft)));
  let chars = 0;
  for (const entry of due) {
    // The remaining webhooks wait for other places, because the tasks of one transition are limited in bytes.
    if (chars > TASKS_CHARS_MAX) break;
    chars += sendTry(draft, entry);
    replace(draft, { ...entry, sentAt: now, hasPlace: true });
  }
  wantPlaces(draft, granted);
  wake(draft);
}

/**
 * Returns the places of ended attempts to the account, also when the next webhook is due, so that the account's queues
 * take turns. Asks for as many places as the queue could use.
 */
export function wantPlaces(draft: OutgoingDraft, granted = 0): void {
  const { key, now, state } = draft;
  const returned = draft.placesBefore + granted - draft.places;
  const due = state.waiting.filter((entry) => isDue(entry, now)).length;
  const places = Math.min(due, roomOf(draft));
  const { wanted = 0 } = state;
  let { wantedAt = 0 } = state;
  const asked = Math.max(0, wanted - granted);
  const isUnanswered = places > 0 && now >= wantedAt + OUTGOING_ASK_MS;
  if (returned > 0 || places !== asked || isUnanswered) {
    const account = readAgentKey(key)?.accountId ?? key;
    draft.send(envelope(outgoingPlaces, account, "wanted", { queue: key, places, returned }));
    wantedAt = now;
  }
  draft.change(places > 0 ? { wanted: places, wantedAt } : NO_WAIT);
}

const NO_WAIT = { wanted: undefined, wantedAt: undefined };

const isDue = ({ sentAt, dueAt }: DeepReadonly<Waiting>, now: number) =>
  sentAt === undefined && dueAt <= now;

/** Returns how many more webhooks the queue may have in progress. */
const roomOf = ({ state: { waiting } }: OutgoingDraft) =>
  Math.max(0, OUTGOING_AT_ONCE_MAX - waiting.filter(({ sentAt }) => sentAt !== undefined).length);

export function tried(
  draft: OutgoingDraft,
  { number, attempt, outcome, retryAfterMs, isFinal }: Input<Messages["tried"]>,
): void {
  if (!isAwaited(draft, number, attempt)) return;
  const { status } = outcome;
  if (status !== undefined && isSuccessful(status)) {
    end(draft, number, "arrived", outcome);
  } else if (status === GONE || isFinal) {
    end(draft, number, "failed", outcome);
  } else fail(draft, number, outcome, retryAfterMs);
  pump(draft);
}

/** Defers an attempt because its endpoint's breaker is open. */
export function deferred(
  draft: OutgoingDraft,
  { number, attempt, until }: Input<Messages["deferred"]>,
): void {
  if (!isAwaited(draft, number, attempt)) return;
  const { startedAt } = draft.webhook(number);
  if (draft.now - startedAt >= OUTGOING_AGE_MS_MAX) {
    const error = "Not sent: its endpoint failed again and again, and is paused";
    end(draft, number, "failed", { at: draft.now, durationMs: 0, error });
  } else replace(draft, { number, dueAt: Math.max(until, draft.now + 1) });
  pump(draft);
}

function isAwaited(draft: OutgoingDraft, number: number, attempt: number): boolean {
  const waits = draft.state.waiting.some((entry) => entry.number === number);
  return waits && draft.webhook(number).attemptsEver + 1 === attempt;
}

function fail(draft: OutgoingDraft, number: number, outcome: OutgoingTry, retryAfterMs = 0): void {
  const { attempts } = draft.webhook(number);
  if (attempts + 1 >= OUTGOING_TRIES_MAX) return void end(draft, number, "failed", outcome);
  note(draft, number, outcome);
  const asked = Math.min(retryAfterMs, OUTGOING_RETRY_AFTER_MS_MAX);
  const pause = Math.max(OUTGOING_PAUSES_MS[attempts] ?? 0, asked);
  replace(draft, { number, dueAt: draft.now + pause });
}

function end(
  draft: OutgoingDraft,
  number: number,
  ended: "arrived" | "failed",
  outcome: OutgoingTry,
): void {
  note(draft, number, outcome);
  const webhook = draft.webhook(number);
  draft.writeRows({ [webhookRow(number)]: { ...webhook, ended } });
  const { job: id } = webhook;
  if (id !== undefined) {
    draft.send(envelope(renderJobs, draft.key, "webhookEnded", { id, status: ended }));
  }
  draft.change({ waiting: draft.state.waiting.filter((entry) => entry.number !== number) });
}

function note(draft: OutgoingDraft, number: number, outcome: OutgoingTry): void {
  const webhook = draft.webhook(number);
  const tries = [...webhook.tries, outcome].slice(-OUTGOING_TRIES_KEPT);
  const { attempts, attemptsEver } = webhook;
  const counts = { attempts: attempts + 1, attemptsEver: attemptsEver + 1 };
  draft.writeRows({ [webhookRow(number)]: { ...webhook, ...counts, tries } });
}

/** Sends the task of an attempt. Returns the task's size in characters. */
function sendTry(draft: OutgoingDraft, { number, dueAt }: DeepReadonly<Waiting>): number {
  const { id, url, payload, contentType, secret, appId, attemptsEver, trace } =
    draft.webhook(number);
  const task = { number, attempt: attemptsEver + 1, dueAt, id, url, payload, contentType };
  const optional = { ...(secret && { secret }), ...(appId !== undefined && { appId }) };
  const post = envelope(webhookPost, draft.key, "post", { ...task, ...optional });
  draft.send({ ...post, ...(trace && attemptsEver === 0 && { trace }) });
  return JSON.stringify(post).length;
}

function replace(draft: OutgoingDraft, entry: DeepReadonly<Waiting>): void {
  const waiting = draft.state.waiting.map((one) => (one.number === entry.number ? entry : one));
  draft.change({ waiting });
}

/**
 * Sets the reminder for the next due webhook, or for the next request for places. A due webhook that waits only because
 * too many are running needs no reminder: it is sent when another one ends.
 */
function wake(draft: OutgoingDraft): void {
  const { waiting, wantedAt, resumeAt } = draft.state;
  const times = waiting.map(({ dueAt, sentAt }) =>
    sentAt === undefined ? dueAt : sentAt + OUTGOING_TRY_MS_MAX,
  );
  if (wantedAt !== undefined) times.push(wantedAt + OUTGOING_ASK_MS);
  const later = times.filter((at) => at > draft.now);
  if (later.length === 0) return;
  const at = Math.min(...later);
  if (resumeAt === undefined || resumeAt > at) draft.remind("resume", at);
}
