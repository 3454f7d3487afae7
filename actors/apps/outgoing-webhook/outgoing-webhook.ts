/**
 * Stores an agent's outgoing webhooks until they have arrived or all attempts have failed, and for a retention time
 * after that.
 */
import { createHash } from "node:crypto";
import {
  DELIVERIES_SCANNED_MAX,
  DELIVERIES_TRIMMED_AT_ONCE,
  EVENT_IDS_KEPT_MS,
  EVENT_IDS_MAX,
  OUTGOING_INLINE_BYTES_MAX,
  OUTGOING_KEPT_MAX,
  OUTGOING_KEPT_MS,
  OUTGOING_WAITING_MAX,
} from "../../../schemas/apps/limits.ts";
import {
  type OutgoingWebhook,
  outgoingWebhook,
  webhookPost,
} from "../../../schemas/apps/outgoing-webhook.ts";
import { type DeepReadonly, envelope, type Input } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { bytesOfIds, forgetOld, recall, recentId, remember } from "../lib/event-log/recent-ids.ts";
import { tellStored } from "../lib/event-log/tell-stored.ts";
import { OutgoingDraft } from "./outgoing-draft.ts";
import {
  OutgoingRow,
  OutgoingState,
  type WebhookRow,
  webhookRow,
} from "./outgoing-webhook-state.ts";
import { deferred, pump, tried, wantPlaces } from "./tries.ts";

const DAY_MS = 86_400_000;
/** The pause between two steps of a removal that is too large for one. */
const NEXT_STEP_MS = 1_000;
/** JSON escapes and base64 may multiply the bytes by this factor. */
const INLINE_GROWTH_MAX = 6;

type New = Pick<WebhookRow, "id" | "url" | "payload" | "payloadBytes" | "contentType" | "isTest"> &
  Partial<Pick<WebhookRow, "secret" | "job" | "appId">>;

/**
 * Stored at: `agentKey`, or account id for webhooks of rendering jobs
 *
 * State: `{ next, first, waiting: [{ number, dueAt, sentAt?, hasPlace? }], wanted?, wantedAt?, payloadBytes?,
 * toldBytes?, ids: [{ day, generation?, count }], resumeAt?, trimAt?, clock?: { id, aheadMs } }`: which have not ended,
 * when each is due, and for how many places the queue waits
 *
 * Row `webhook/<number>`: `{ row, id, url, payload, payloadBytes, contentType, secret?: { name } or { sealed } or
 * several of them, appId?, isTest, job?, createdAt, startedAt, ended?, attempts, attemptsEver, resends, trace?, tries: [{
 * at, durationMs, status?, error?, answer? }] }`: the last 1,000 that have ended, for 30 days after their end; the last 10
 * tries of each
 *
 * Row `ids/<day>/<0 to 63>`, `ids/<day>.<generation>/<0 to 63>`: as those of `agent-inbox`: what was sent under an id
 * in 7 days
 */
export const outgoingWebhookActor = defineActor(outgoingWebhook, {
  state: OutgoingState,
  rows: OutgoingRow,
  initial: { next: 1, first: 1, waiting: [], ids: [] },
  mayComeEarly: ["resume"],

  handlers: {
    send(state, wanted, context) {
      const draft = new OutgoingDraft(state, context);
      const reply = send(draft, wanted);
      return { ...draft.transition(), reply };
    },

    jobEnded(state, wanted, context) {
      const draft = new OutgoingDraft(state, context);
      send(draft, wanted, { job: wanted.id });
      return draft.transition();
    },

    sendTest(state, { url, secret }, context) {
      const draft = new OutgoingDraft(state, context);
      const timestamp = new Date(draft.now).toISOString();
      const text = JSON.stringify({ type: "webhook.test", timestamp, data: {} });
      const number = add(draft, {
        ...{ id: messageId(draft.key, `test ${context.newId()}`), url, isTest: true },
        ...{ payload: { text }, payloadBytes: text.length, contentType: "application/json" },
        ...(secret && { secret }),
      });
      return { ...draft.transition(), reply: entryOf(draft, number) };
    },

    resend(state, { number }, context) {
      const draft = new OutgoingDraft(state, context);
      const { ended, ...webhook } = found(draft, number);
      if (ended === undefined) {
        throw new ActorError("conflict", `Cannot send webhook ${number} again: it has not ended`);
      }
      checkRoom(draft);
      const { resends } = webhook;
      const again = { attempts: 0, resends: resends + 1, startedAt: draft.now };
      draft.writeRows({ [webhookRow(number)]: { ...webhook, ...again } });
      draft.change({ waiting: [...draft.state.waiting, { number, dueAt: draft.now }] });
      pump(draft);
      return { ...draft.transition(), reply: entryOf(draft, number) };
    },

    list(state, { status, before = Number.MAX_SAFE_INTEGER, limit }, context) {
      const draft = new OutgoingDraft(state, context);
      const webhooks: OutgoingWebhook[] = [];
      const numbers = draft.numbers().filter((number) => number < before);
      const scanned = numbers.slice(-DELIVERIES_SCANNED_MAX);
      let number = scanned.pop();
      for (; number !== undefined && webhooks.length < limit; number = scanned.pop()) {
        if (isOver(draft, number)) continue;
        const entry = entryOf(draft, number);
        if (status === undefined || entry.status === status) webhooks.push(entry);
      }
      const next = number ?? numbers.at(-DELIVERIES_SCANNED_MAX - 1);
      const more = next === undefined ? {} : { before: next + 1 };
      return { state, reply: { webhooks, waiting: state.waiting.length, ...more } };
    },

    get(state, { number }, context) {
      const draft = new OutgoingDraft(state, context);
      const { payload, contentType, tries } = found(draft, number);
      return { state, reply: { webhook: entryOf(draft, number), payload, contentType, tries } };
    },

    tried(state, input, context) {
      const draft = new OutgoingDraft(state, context);
      tried(draft, input);
      trim(draft);
      tellQueue(draft);
      return draft.transition();
    },

    deferred(state, input, context) {
      const draft = new OutgoingDraft(state, context);
      deferred(draft, input);
      trim(draft);
      tellQueue(draft);
      return draft.transition();
    },

    placesGranted(state, { places }, context) {
      const draft = new OutgoingDraft(state, context);
      pump(draft, places);
      // A queue that was forgotten meanwhile returns its places and stays forgotten.
      return isEmpty(draft) ? { forget: true, send: draft.sent } : draft.transition();
    },

    clear(state, _input, context) {
      const draft = new OutgoingDraft(state, context);
      draft.change({ waiting: [] });
      wantPlaces(draft);
      return { forget: true, send: draft.sent };
    },

    resume(state, _input, context) {
      const draft = new OutgoingDraft(state, context);
      draft.change({ resumeAt: undefined });
      pump(draft);
      return draft.transition();
    },

    trim(state, _input, context) {
      const draft = new OutgoingDraft(state, context);
      const hasMore = trim(draft);
      const { rows, now } = draft.context;
      const limits = { keptMs: EVENT_IDS_KEPT_MS, idsMax: EVENT_IDS_MAX };
      const old = forgetOld({ rows, now, days: state.ids }, limits);
      draft.writeRows(old.rows);
      draft.change({ ids: old.days });
      tellQueue(draft);
      if (isEmpty(draft)) return { forget: true, send: draft.sent };
      draft.remind("trim", now + (hasMore || old.hasMore ? NEXT_STEP_MS : DAY_MS));
      return draft.transition();
    },
  },
});

const isEmpty = ({ state: { first, next, ids } }: OutgoingDraft) =>
  first === next && ids.length === 0;

function send(
  draft: OutgoingDraft,
  { id: sent, secret, appId, ...wanted }: Input<(typeof outgoingWebhook)["messages"]["send"]>,
  job: Pick<WebhookRow, "job"> = {},
) {
  const { rows, now } = draft.context;
  const id = messageId(draft.key, sent);
  const ofSender = recentId(sent);
  const { ids: days } = draft.state;
  const known = recall({ rows, now, days, keptMs: EVENT_IDS_KEPT_MS }, ofSender);
  if (known !== undefined) return { number: known, id, isNew: false };
  const optional = { ...(secret && { secret }), ...(appId !== undefined && { appId }) };
  const number = add(draft, { ...wanted, ...job, id, isTest: false, ...optional });
  const remembered = remember({ rows, now, days: draft.state.ids }, ofSender, number);
  draft.writeRows(remembered.rows);
  draft.change({ ids: remembered.days });
  return { number, id, isNew: true };
}

/**
 * Derives the `webhook-id` from the queue's key and the caller's id, so that a repeated send has the same
 * `webhook-id`.
 */
function messageId(key: string, sent: string): string {
  const hash = createHash("sha256").update(`${key} ${sent}`).digest("base64url");
  return `msg_${hash.slice(0, 27)}`;
}

function add(draft: OutgoingDraft, webhook: New): number {
  const { payload } = webhook;
  if (JSON.stringify(payload).length > INLINE_GROWTH_MAX * OUTGOING_INLINE_BYTES_MAX) {
    const text = `expected a blob larger than ${OUTGOING_INLINE_BYTES_MAX} bytes`;
    throw new ActorError("body_too_large", `Cannot send webhook: ${text}`);
  }
  checkRoom(draft);
  const { now } = draft;
  const number = draft.state.next;
  const trace = draft.context.trace();
  const row = { row: "webhook" as const, ...webhook, createdAt: now, startedAt: now, tries: [] };
  const counts = { attempts: 0, attemptsEver: 0, resends: 0 };
  draft.writeRows({ [webhookRow(number)]: { ...row, ...counts, ...(trace && { trace }) } });
  draft.change({ next: number + 1, waiting: [...draft.state.waiting, { number, dueAt: now }] });
  draft.change({ payloadBytes: (draft.state.payloadBytes ?? 0) + webhook.payloadBytes });
  pump(draft);
  trim(draft);
  tellQueue(draft);
  if (draft.state.trimAt === undefined) draft.remind("trim", now + DAY_MS);
  return number;
}

function checkRoom({ state }: OutgoingDraft): void {
  if (state.waiting.length < OUTGOING_WAITING_MAX) return;
  const text = `Cannot send webhook: ${OUTGOING_WAITING_MAX} of this agent have not arrived`;
  throw new ActorError("queue_full", text, { retryAfterS: 60 });
}

/**
 * Deletes the webhooks that ended longest ago, past the limit of number or of age, at most DELIVERIES_TRIMMED_AT_ONCE
 * in one call. Webhooks that wait stay. Returns true if more webhooks may remain to be deleted.
 */
function trim(draft: OutgoingDraft): boolean {
  const { next, waiting } = draft.state;
  const waits = new Set(waiting.map(({ number }) => number));
  // A webhook that fails for a long time ends after many with higher numbers.
  const ended = draft
    .numbers()
    .filter((number) => !waits.has(number))
    .map((number) => ({ number, at: endedAt(draft.webhook(number)) }))
    .sort((one, other) => one.at - other.at);
  const blobs: string[] = [];
  let { payloadBytes = 0 } = draft.state;
  let gone = 0;
  for (const { number, at } of ended.slice(0, DELIVERIES_TRIMMED_AT_ONCE)) {
    const { payload, payloadBytes: bytes } = draft.webhook(number);
    const isTooOld = at <= draft.now - OUTGOING_KEPT_MS;
    if (!isTooOld && ended.length - gone <= OUTGOING_KEPT_MAX) break;
    if ("blob" in payload) blobs.push(payload.blob);
    draft.writeRows({ [webhookRow(number)]: null });
    // Entries from before `payloadBytes` was counted are not in the sum.
    payloadBytes = Math.max(0, payloadBytes - bytes);
    gone += 1;
  }
  const left = ended.slice(gone).map(({ number }) => number);
  const first = Math.min(next, ...left, ...waits);
  draft.change({ first, payloadBytes });
  if (blobs.length > 0) draft.send(envelope(webhookPost, draft.key, "purge", { blobs }));
  return gone === DELIVERIES_TRIMMED_AT_ONCE;
}

/** Reports the bytes of the payloads and of the remembered ids to the account. */
function tellQueue(draft: OutgoingDraft): void {
  const { payloadBytes = 0, ids } = draft.state;
  tellStored(draft, "outgoing", payloadBytes + bytesOfIds(ids));
}

/** The time when an ended webhook's last try ended. */
function endedAt({ tries, createdAt }: DeepReadonly<WebhookRow>): number {
  const last = tries.at(-1);
  return last === undefined ? createdAt : last.at + last.durationMs;
}

function found(draft: OutgoingDraft, number: number): DeepReadonly<WebhookRow> {
  if (draft.has(number) && !isOver(draft, number)) return draft.webhook(number);
  throw new ActorError("not_found", `Cannot show webhook ${number}: it is not in the log`);
}

/**
 * Returns whether the webhook is past its retention, even if `trim` is late. A waiting webhook is kept until it has
 * ended.
 */
function isOver(draft: OutgoingDraft, number: number): boolean {
  if (draft.state.waiting.some((entry) => entry.number === number)) return false;
  return endedAt(draft.webhook(number)) <= draft.now - OUTGOING_KEPT_MS;
}

function entryOf(draft: OutgoingDraft, number: number): OutgoingWebhook {
  const { id, url, isTest, createdAt, payloadBytes, attempts, resends, ended, tries } =
    draft.webhook(number);
  const waits = draft.state.waiting.find((entry) => entry.number === number);
  const lastTry = tries.at(-1);
  return {
    ...{ number, id, url, isTest, createdAt, payloadBytes, attempts, resends },
    status: ended ?? "waiting",
    ...(lastTry && { lastTry }),
    ...(waits && waits.sentAt === undefined && { nextAttemptAt: waits.dueAt }),
  };
}
