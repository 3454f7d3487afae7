/** Removes the entries and ids that an inbox no longer needs. */

import {
  DELIVERIES_TRIMMED_AT_ONCE,
  EVENT_IDS_KEPT_MS,
  EVENT_IDS_MAX,
  EVENT_ROWS_BYTES_MAX,
} from "../../../schemas/apps/limits.ts";
import { webhookPost } from "../../../schemas/apps/outgoing-webhook.ts";
import { envelope } from "../../../schemas/contract.ts";
import { hasNumber } from "../lib/event-log/number-runs.ts";
import { bytesOfIds, forgetOld } from "../lib/event-log/recent-ids.ts";
import { tellStored } from "../lib/event-log/tell-stored.ts";
import { type EventRow, eventRow, requestRow } from "./agent-inbox-state.ts";
import type { InboxDraft } from "./inbox-draft.ts";

const DAY_MS = 86_400_000;
const NEXT_STEP_MS = 1_000;

/**
 * Removes the oldest entries past the number, bytes or age that is kept, up to the first waiting entry, at most
 * DELIVERIES_TRIMMED_AT_ONCE in one call. Returns true if more entries may remain to be removed.
 */
export function trim(draft: InboxDraft): boolean {
  const { keep, next, waiting } = draft.state;
  let { first, inlineBytes, blobBytes = 0 } = draft.state;
  const blobs: string[] = [];
  let gone = 0;
  for (; first < next && !hasNumber(waiting, first); first++) {
    const event = draft.event(first);
    const isTooOld = event.receivedAt <= draft.now - keep.days * DAY_MS;
    const isTooMuch = next - first > keep.count || inlineBytes > EVENT_ROWS_BYTES_MAX;
    if (!isTooOld && !isTooMuch) break;
    if (gone === DELIVERIES_TRIMMED_AT_ONCE) break;
    gone += 1;
    inlineBytes -= event.inlineBytes;
    // Entries from before `blobBytes` existed were never counted.
    blobBytes = Math.max(0, blobBytes - blobBytesOf(event));
    if (event.blob !== undefined) blobs.push(event.blob);
    draft.writeRows({ [eventRow(first)]: null, [requestRow(first)]: null });
  }
  draft.change({ first, inlineBytes, blobBytes });
  if (blobs.length > 0) draft.send(envelope(webhookPost, draft.key, "purge", { blobs }));
  return gone === DELIVERIES_TRIMMED_AT_ONCE;
}

/** Reports the bytes of the events and of the remembered ids to the account. */
export function tellInbox(draft: InboxDraft): void {
  const { inlineBytes, blobBytes = 0, ids } = draft.state;
  tellStored(draft, "inbox", inlineBytes + blobBytes + bytesOfIds(ids));
}

export const blobBytesOf = ({ blob, bodyBytes }: Pick<EventRow, "blob" | "bodyBytes">) =>
  blob === undefined ? 0 : bodyBytes;

/** Removes expired ids and entries; called at intervals, even when no event arrives. */
export function tidy(draft: InboxDraft): void {
  const hasMore = trim(draft);
  const { now, rows } = draft.context;
  const limits = { keptMs: EVENT_IDS_KEPT_MS, idsMax: EVENT_IDS_MAX };
  const old = forgetOld({ rows, now, days: draft.state.ids }, limits);
  draft.writeRows(old.rows);
  draft.change({ ids: old.days });
  tellInbox(draft);
  const isUnfinished = hasMore || old.hasMore;
  if (!isForgettable(draft)) draft.remind("trim", now + (isUnfinished ? NEXT_STEP_MS : DAY_MS));
}

/** Returns whether the log is empty and no id is remembered. */
export function isForgettable({ state }: InboxDraft): boolean {
  return state.first === state.next && state.ids.length === 0;
}
