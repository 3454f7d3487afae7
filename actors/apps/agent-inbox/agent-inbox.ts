/**
 * Stores the events of one agent, from the response to their sender until the agent has handled them, and for a
 * retention time after that.
 */
import { agentInbox, type ReceivedEvent } from "../../../schemas/apps/agent-inbox.ts";
import { decodedSteps, entityOfPath, stepsOf } from "../../../schemas/apps/endpoint-path.ts";
import {
  EVENT_IDS_KEPT_MS,
  EVENT_REQUEST_CHARS_MAX,
  EVENT_ROWS_BYTES_MAX,
  EVENTS_WAITING_MAX,
} from "../../../schemas/apps/limits.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { countOf, withRun } from "../lib/event-log/number-runs.ts";
import { type RecentId, recall, recentId, remember } from "../lib/event-log/recent-ids.ts";
import { AgentInboxState, eventRow, InboxRow, requestRow } from "./agent-inbox-state.ts";
import { type InboxContext, InboxDraft } from "./inbox-draft.ts";
import { entryOf, find, isOver, list, replay } from "./log.ts";
import { blobBytesOf, isForgettable, tellInbox, tidy, trim } from "./trim.ts";
import { beginAndTell, current, isUnderWay, resume, settle, tellAgent } from "./turns.ts";

/**
 * Retry-After for a sender that is refused because too many events wait. An agent handles hundreds of events in this
 * time.
 */
const EVENTS_WAITING_RETRY_S = 30;
/**
 * Limit of the requests in the rows of one inbox. Rows are in memory while events arrive. Above this limit, small
 * bodies become blobs too.
 */
export const EVENT_INLINE_TOTAL_BYTES_MAX = 8_000_000;

const DAY_MS = 86_400_000;

/**
 * Stored at: `agentKey`: account, app, class, name
 *
 * State: `{ next, first, waiting: [[from, to]], turn?: { number, next?, attempt, sentAt?, dueAt? }, keep: { days,
 * count }, inlineBytes, waitingBytes?, blobBytes?, toldBytes?, ids: [{ day, generation?, count }], resumeAt?, trimAt?
 * }`: which events wait, and the one that is with the agent; forgotten when nothing is in the log and no id is
 * remembered
 *
 * Row `event/<number>`: `{ row, id, eventId, eventType?, source, receivedAt, bodyBytes, inlineBytes, blob?, ended?,
 * attempts, lastAttemptAt?, answerStatus?, error?, replays }`: an event of the log, as long as the app's
 * configuration says; `id` is that of its delivery
 *
 * Row `request/<number>`: `{ row, request }`: what the agent gets of it; a large body is a blob
 *
 * Row `ids/<day>/<0 to 63>`, and `ids/<day>.<generation>/<0 to 63>` for each further 65,536 events of a day: `{ row,
 * ids }`: ` <12 characters of a SHA-256>=<number, base 36>` for each event of 7 days; the hash is that of
 * `<source><path of the endpoint, if ids are unique only there> <event id>`
 */
export const agentInboxActor = defineActor(agentInbox, {
  state: AgentInboxState,
  rows: InboxRow,
  initial: {
    next: 1,
    first: 1,
    waiting: [],
    keep: { days: 30, count: 10_000 },
    inlineBytes: 0,
    ids: [],
  },
  mayComeEarly: ["resume"],

  handlers: {
    receive(state, event, context) {
      const draft = new InboxDraft(state, context);
      const id = idOf(event);
      const known = knownNumber(draft, event, id);
      if (known !== undefined) {
        return { state, reply: { isNew: false, number: known, isHeavy: isHeavy(draft) } };
      }
      const number = take(draft, { ...event, id }, context);
      return { ...draft.transition(), reply: { isNew: true, number, isHeavy: isHeavy(draft) } };
    },

    happened(state, event, context) {
      const draft = new InboxDraft(state, context);
      const id = idOf(event);
      if (knownNumber(draft, event, id) !== undefined) return { state };
      take(draft, { ...event, id }, context);
      return draft.transition();
    },

    current(state, _input, context) {
      const deliveries = current(new InboxDraft(state, context));
      const waiting = countOf(state.waiting) - deliveries.length;
      return { state, reply: { deliveries, waiting } };
    },

    settle(state, { takesNext = false, ...result }, context) {
      const draft = new InboxDraft(state, context);
      settle(draft, result);
      const hasNext = isUnderWay(draft);
      // Notifies the agent of a turn that is under way, even if this report did not begin it: the host that received
      // that turn may have lost the agent.
      if (hasNext && !takesNext) tellAgent(draft);
      return { ...draft.transition(), reply: { hasNext: hasNext && takesNext } };
    },

    delivered(state, result, context) {
      const draft = new InboxDraft(state, context);
      settle(draft, result);
      // Notifies the agent again, because its host may have finished the delivery without having received the reply
      // to `settle`.
      if (isUnderWay(draft)) tellAgent(draft);
      return draft.transition();
    },

    find: (state, wanted, context) => ({
      state,
      reply: find(new InboxDraft(state, context), wanted),
    }),

    replay(state, wanted, context) {
      const draft = new InboxDraft(state, context);
      const replayed = replay(draft, wanted);
      beginAndTell(draft);
      return { ...draft.transition(), reply: { replayed } };
    },

    list: (state, wanted, context) => ({
      state,
      reply: list(new InboxDraft(state, context), wanted),
    }),

    get(state, { number }, context) {
      const draft = new InboxDraft(state, context);
      if (number < state.first || number >= state.next || isOver(draft, number)) {
        throw new ActorError("not_found", `Cannot show delivery ${number}: it is not in the log`);
      }
      return {
        state,
        reply: { delivery: entryOf(draft, number), request: draft.request(number) },
      };
    },

    clear: () => ({ forget: true }),

    resume(state, _input, context) {
      const draft = new InboxDraft(state, context);
      resume(draft);
      return draft.transition();
    },

    trim(state, _input, context) {
      const draft = new InboxDraft(state, context);
      tidy(draft);
      return isForgettable(draft) ? { forget: true, send: draft.sent } : draft.transition();
    },
  },
});

/**
 * The id contains the source, because two providers may use the same event ids, and the path of an endpoint whose
 * sender numbers its events itself. A source has no slash, so no other id can look like one with a path.
 */
const idOf = ({ source, endpoint, eventId }: ReceivedEvent) =>
  recentId(`${source}${endpoint?.path ?? ""} ${eventId}`);

/** Returns the number of the event if it was received before. */
function knownNumber(
  { context, state }: InboxDraft,
  { source, endpoint, eventId }: ReceivedEvent,
  id: RecentId,
): number | undefined {
  const { rows, now } = context;
  const kept = { rows, now, days: state.ids, keptMs: EVENT_IDS_KEPT_MS };
  const known = recall(kept, id);
  if (known !== undefined || !endpoint?.isOnlyOne) return known;
  // An endpoint that was removed since may have received the earlier event. Then this is another event.
  const early = recall(kept, recentId(`${source} ${eventId}`));
  return early !== undefined && isOfEndpoint(context, early, endpoint.path) ? early : undefined;
}

/** Returns whether an endpoint with this path received the event; true if the log no longer keeps the event. */
function isOfEndpoint({ rows }: InboxContext, number: number, path: string): boolean {
  const row = rows.get(requestRow(number));
  if (row?.row !== "request") return true;
  const { pathname = "" } = URL.parse(row.request.url) ?? {};
  return entityOfPath(stepsOf(path), decodedSteps(pathname)) !== false;
}

function take(
  draft: InboxDraft,
  event: ReceivedEvent & { id: RecentId },
  { newId }: InboxContext,
): number {
  const { id, source, eventId, eventType, request, bodyBytes, keep } = event;
  const inlineBytes = JSON.stringify(request).length;
  if (inlineBytes > EVENT_REQUEST_CHARS_MAX) {
    const text = `its request has more than ${EVENT_REQUEST_CHARS_MAX} characters`;
    throw new ActorError("body_too_large", `Cannot take event: ${text}`);
  }
  refuseIfFull(draft, inlineBytes);
  const { now, rows } = draft.context;
  const number = draft.state.next;
  const { body } = request;
  draft.writeRows({
    [eventRow(number)]: {
      row: "event",
      id: newId(),
      ...{ eventId, source, bodyBytes, inlineBytes },
      ...(eventType !== undefined && { eventType }),
      ...(body !== undefined && "blob" in body && { blob: body.blob }),
      ...{ receivedAt: now, attempts: 0, replays: 0 },
    },
    [requestRow(number)]: { row: "request", request },
  });
  const remembered = remember({ rows, now, days: draft.state.ids }, id, number);
  draft.writeRows(remembered.rows);
  draft.change({
    keep,
    next: number + 1,
    waiting: withRun(draft.state.waiting, number, number),
    inlineBytes: draft.state.inlineBytes + inlineBytes,
    waitingBytes: (draft.state.waitingBytes ?? 0) + inlineBytes,
    blobBytes: (draft.state.blobBytes ?? 0) + blobBytesOf(draft.event(number)),
    ids: remembered.days,
  });
  beginAndTell(draft);
  trim(draft);
  tellInbox(draft);
  if (draft.state.trimAt === undefined) draft.remind("trim", now + DAY_MS);
  return number;
}

/** Refuses an event while too many wait, or while those that wait have too many bytes. */
function refuseIfFull({ state }: InboxDraft, bytes: number): void {
  const { waiting, waitingBytes = 0 } = state;
  const isFull = waitingBytes + bytes > EVENT_ROWS_BYTES_MAX;
  if (!isFull && countOf(waiting) < EVENTS_WAITING_MAX) return;
  const many = isFull
    ? `events of ${EVENT_ROWS_BYTES_MAX / 1e6} MB`
    : `${EVENTS_WAITING_MAX} events`;
  throw new ActorError("queue_full", `Cannot take event: ${many} wait for this agent`, {
    retryAfterS: EVENTS_WAITING_RETRY_S,
  });
}

const isHeavy = ({ state }: InboxDraft) => state.inlineBytes > EVENT_INLINE_TOTAL_BYTES_MAX;
