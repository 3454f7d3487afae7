/** Sends new events of an account to its subscribers, within limits per message. */
import type { Envelope } from "../../../schemas/contract.ts";
import { folded } from "../../../schemas/repositories/git-names.ts";
import type { KeptRepoEvent } from "../../../schemas/repositories/repo-event.ts";
import {
  envelopeOf,
  type RepoEventEnvelope,
} from "../../../schemas/repositories/repo-event-envelope.ts";
import { REPO_HAPPENED } from "../../../schemas/repositories/repo-events.ts";
import type { EventRow, EventRows, RepoEventsState } from "./repo-events-state.ts";

/**
 * EVENTS_DELIVERED_BYTES limits the events in one message to a subscriber. EVENTS_SENT_BYTES limits all such messages
 * of one transition (TRANSITION_SEND_BYTES_MAX).
 */
export const EVENTS_DELIVERED_BYTES = 100_000;
export const EVENTS_SENT_BYTES = 250_000;
/**
 * Limit for the events in one message to a subscriber. A subscriber that forwards each event in a send of its own, as
 * an app does, can forward all of them in one transition.
 */
export const EVENTS_DELIVERED_MAX = 100;

type Subscription = RepoEventsState["subscriptions"][string];

/**
 * Returns the number of the last event that can be sent: no event up to it still waits for its commits. Later events
 * wait, so that subscribers receive all events in order.
 */
export function toldUpTo({ first, last }: RepoEventsState, rows: EventRows): number {
  for (let number = first; number <= last; number++) {
    const row = rows.get(`${number}`);
    if (row?.type === "pushed" && row.open) return number - 1;
  }
  return last;
}

export function notifySubscribers(
  state: RepoEventsState,
  rows: EventRows,
  accountId: string,
  now: number,
) {
  const until = toldUpTo(state, rows);
  const subscriptions: Record<string, Subscription> = { ...state.subscriptions };
  const send: Envelope[] = [];
  let bytes = 0;
  let isMore = false;
  for (const [id, subscription] of Object.entries(state.subscriptions)) {
    if (subscription.after >= until) continue;
    if (bytes + EVENTS_DELIVERED_BYTES > EVENTS_SENT_BYTES) {
      isMore = true;
      break;
    }
    const delivery = next(subscription, rows, { first: state.first, until, accountId, id });
    subscriptions[id] = { ...subscription, after: delivery.after };
    if (delivery.after < until) isMore = true;
    if (delivery.events.length === 0) continue;
    bytes += delivery.bytes;
    const { kind, key } = subscription.subscriber;
    const { events, numbers } = delivery;
    send.push({ to: "actor", kind, key, message: REPO_HAPPENED, input: { events, numbers } });
  }
  const changed =
    send.length > 0 ||
    Object.keys(subscriptions).some((id) => subscriptions[id] !== state.subscriptions[id]);
  return {
    state: changed ? { ...state, subscriptions } : state,
    send,
    remind: isMore ? { tellMore: now } : {},
  };
}

function next(
  { filter, after }: Subscription,
  rows: EventRows,
  { first, until, accountId, id }: { first: number; until: number; accountId: string; id: string },
) {
  const events: RepoEventEnvelope[] = [];
  const numbers: number[] = [];
  let bytes = 0;
  let number = Math.max(after, first - 1);
  while (number < until) {
    const row = rows.get(`${number + 1}`);
    if (row && isFor(filter, row)) {
      if (events.length === EVENTS_DELIVERED_MAX) break;
      // The cast only removes `readonly`, because kept rows are frozen.
      const event = envelopeOf(row as KeptRepoEvent, { accountId, subscriptionId: id });
      const eventBytes = JSON.stringify(event).length;
      if (events.length > 0 && bytes + eventBytes > EVENTS_DELIVERED_BYTES) break;
      bytes += eventBytes;
      events.push(event);
      numbers.push(number + 1);
    }
    number += 1;
  }
  return { events, numbers, bytes, after: number };
}

export function isFor(
  { types, namespace, repoName }: Subscription["filter"],
  event: EventRow,
): boolean {
  return (
    types.includes(event.type) &&
    (namespace === undefined || folded(namespace) === folded(event.namespace)) &&
    (repoName === undefined || folded(repoName) === folded(event.repoName))
  );
}
