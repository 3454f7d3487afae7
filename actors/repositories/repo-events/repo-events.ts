/** Keeps the latest events of an account's repositories in order, and notifies subscribers. */
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { EVENT_DESCRIBED_MS } from "../../../schemas/repositories/limits.ts";
import type { KeptRepoEvent, RepoEvent } from "../../../schemas/repositories/repo-event.ts";
import { envelopeOf } from "../../../schemas/repositories/repo-event-envelope.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { describeNext, isTooLate, type PushedRow } from "./describe-next.ts";
import { EventRow, type EventRows, RepoEventsState } from "./repo-events-state.ts";
import { isFor, notifySubscribers, toldUpTo } from "./tell-subscribers.ts";

/**
 * EVENTS_KEPT limits the events that are kept per account. EVENTS_LISTED_BYTES limits the events in one response to a
 * third of a message.
 */
export const EVENTS_KEPT = 1_000;
export const EVENTS_LISTED_BYTES = 300_000;
/** Limit for the bytes of one account's kept events. All of them are in memory while the actor is active. */
export const EVENTS_KEPT_BYTES = 4_000_000;
/** The number of subscribers that may follow the events of one account. */
export const EVENT_SUBSCRIPTIONS_MAX = 200;

type Written = Record<string, EventRow | null>;

/**
 * Stored at: account id
 *
 * State: `{ last, first, bytes, asked?, subscriptions: { <id>: { filter: { types, namespace?, repoName? }, subscriber: {
 * kind, key }, after } } }`: the numbers of the newest and the oldest event, their bytes, up to which event gateways
 * were asked for commits, and up to which event each subscriber has them. A row for each of the last 1,000 events, or
 * 4 MB of them, by its number: `{ repoId, namespace, repoName, at, type, … }` as `KeptRepoEvent` has it; `open` until a
 * gateway has found the commits of a push
 */
export const repoEventsActor = defineActor(repoEvents, {
  state: RepoEventsState,
  initial: { last: 0, first: 1, bytes: 0, subscriptions: {} },
  rows: EventRow,

  handlers: {
    happened(state, { event }, { key, now, rows }) {
      const kept = keptOf(event, (one) =>
        Object.values(state.subscriptions).some(({ filter }) => isFor(filter, one)),
      );
      const added = Object.fromEntries(
        kept.map((one, index) => [`${state.last + 1 + index}`, one]),
      );
      // Before it stored `asked`, the actor asked about each push at once.
      const { last, asked = last } = state;
      const next = { ...state, asked, last: last + kept.length };
      const changed = changedRows(next, rows, added);
      const notified = notify(changed, key, now);
      // If an earlier push still waits for its commits, the reminder is set for that push. A later time would replace
      // it. Its handler sets the next one.
      const isFirst = kept.some(isOpen) && ![...rows.values()].some(isOpen);
      const remind = {
        ...notified.remind,
        ...(isFirst && { describeLate: now + EVENT_DESCRIBED_MS }),
      };
      return { ...notified, remind };
    },

    described(state, { events }, { key, now, rows }) {
      const added: Written = {};
      for (const { number, pushed } of events) {
        const row = rows.get(`${number}`);
        // The gateway's report may arrive twice, or after the event was published without commits.
        if (row?.type !== "pushed" || !row.open) continue;
        added[`${number}`] = { ...withoutSearch(row), ...(pushed && { pushed }) };
      }
      if (Object.keys(added).length > 0) Object.assign(added, tooLate(state, rows, added, now));
      return close(state, rows, added, key, now);
    },

    describeLate(state, _input, { key, now, rows }) {
      const added = tooLate(state, rows, {}, now);
      let next: number | undefined;
      for (const [number, row] of rows) {
        if (!isOpen(row) || added[number]) continue;
        const lateAt = row.at + EVENT_DESCRIBED_MS;
        next = Math.min(next ?? lateAt, lateAt);
      }
      const closed = close(state, rows, added, key, now);
      return { ...closed, remind: { ...closed.remind, describeLate: next ?? null } };
    },

    list(state, { after, limit }, { key, rows }) {
      const last = toldUpTo(state, rows);
      const events = [];
      let bytes = 0;
      for (let number = Math.max(after + 1, state.first); number <= last; number++) {
        const row = rows.get(`${number}`);
        if (!row || events.length === limit) continue;
        const event = envelopeOf(row as KeptRepoEvent, { accountId: key, subscriptionId: null });
        bytes += JSON.stringify(event).length;
        if (events.length > 0 && bytes > EVENTS_LISTED_BYTES) break;
        events.push({ number, event });
      }
      return { state, reply: { events, last } };
    },

    subscribe(state, { id, filter, subscriber }) {
      const known = state.subscriptions[id];
      if (!known && Object.keys(state.subscriptions).length >= EVENT_SUBSCRIPTIONS_MAX) {
        const text = `Cannot subscribe: ${EVENT_SUBSCRIPTIONS_MAX} follow the account, which is the limit`;
        throw new ActorError("limit_reached", text);
      }
      return { state: followed(state, id, { filter, subscriber }), reply: {} };
    },

    unsubscribe: (state, { id }) => ({ state: unfollowed(state, id), reply: {} }),

    follow: (state, { id, filter, subscriber }) => ({
      state: filter ? followed(state, id, { filter, subscriber }) : unfollowed(state, id),
    }),

    tellMore: (state, _input, { key, now, rows }) => notifySubscribers(state, rows, key, now),
  },
});

type Subscription = RepoEventsState["subscriptions"][string];

function followed(
  state: RepoEventsState,
  id: string,
  what: Omit<Subscription, "after">,
): RepoEventsState {
  const after = state.subscriptions[id]?.after ?? state.last;
  return { ...state, subscriptions: { ...state.subscriptions, [id]: { ...what, after } } };
}

function unfollowed(state: RepoEventsState, id: string): RepoEventsState {
  const { [id]: gone, ...subscriptions } = state.subscriptions;
  return gone ? { ...state, subscriptions } : state;
}

/**
 * Returns an event for each ref of a push, and any other event unchanged. Marks the event of a ref `open`, so that a
 * gateway looks for its commits, only if a subscriber follows it: the search takes a Git process. The first open event
 * of a push keeps `others` for the search.
 */
function keptOf(
  event: DeepReadonly<RepoEvent>,
  isFollowed: (event: EventRow) => boolean,
): EventRow[] {
  if (event.type !== "pushed") return [event];
  const { refs, refsTotal: _, others, ...rest } = event;
  let isFirst = true;
  return refs.map((change): EventRow => {
    const one = { ...rest, ...change };
    if (change.after === ZERO_ID) return { ...one, pushed: { commits: [], total: 0 } };
    if (!isFollowed(one)) return one;
    const open = { ...one, open: true, ...(isFirst && { others }) };
    isFirst = false;
    return open;
  });
}

const isOpen = (row: EventRow): row is PushedRow => row.type === "pushed" && row.open === true;

/** Returns the event of a push without what only the search for its commits needs. */
function withoutSearch({ open: _, others: _others, ...event }: PushedRow): PushedRow {
  return event;
}

/** Returns the events, without their commits, of the pushes that wait no longer for them. */
function tooLate(state: RepoEventsState, rows: EventRows, described: Written, now: number) {
  const { last, asked = last } = state;
  const late: Written = {};
  for (const [number, row] of rows) {
    if (!isOpen(row) || described[number]) continue;
    if (isTooLate(Number(number), row, asked, now)) late[number] = withoutSearch(row);
  }
  return late;
}

function close(state: RepoEventsState, rows: EventRows, added: Written, key: string, now: number) {
  if (Object.keys(added).length === 0) return { state, remind: {} };
  return notify(changedRows(state, rows, added), key, now);
}

/** Asks a gateway for the commits of the next push, and sends subscribers the events that are complete. */
function notify(changed: ReturnType<typeof changedRows>, accountId: string, now: number) {
  const asked = describeNext(changed.state, changed.rows, accountId);
  const notified = notifySubscribers(asked.state, changed.rows, accountId, now);
  return { ...notified, rows: changed.written, send: [...asked.send, ...notified.send] };
}

/**
 * Stores the added events. Deletes the oldest events while there are more than EVENTS_KEPT, or more bytes than
 * EVENTS_KEPT_BYTES.
 */
function changedRows(state: RepoEventsState, known: EventRows, added: Written) {
  const rows = new Map(known);
  const written: Written = { ...added };
  let { bytes, first } = state;
  for (const [number, row] of Object.entries(added)) {
    bytes -= bytesOf(rows.get(number));
    if (row === null) continue;
    rows.set(number, row);
    bytes += bytesOf(row);
  }
  for (
    ;
    state.last - first >= EVENTS_KEPT || (bytes > EVENTS_KEPT_BYTES && first < state.last);
    first++
  ) {
    bytes -= bytesOf(rows.get(`${first}`));
    if (rows.delete(`${first}`)) written[`${first}`] = null;
  }
  return { state: { ...state, first, bytes: Math.max(0, bytes) }, rows, written };
}

const bytesOf = (row: EventRow | undefined) => (row ? JSON.stringify(row).length : 0);
