/** The changes of an activation that are in memory and not committed yet, and the messages that wait for the commit. */

import {
  LIVE_BYTES_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_SEND_BYTES_MAX,
} from "../../../schemas/limits.ts";
import type { Effects } from "../kinds/transition.ts";
import type { Answer, Delivery, IncomingCall } from "../shards/incoming.ts";
import type { Unsent } from "../shards/outbox.ts";
import type { DirectSend } from "../shards/shard.ts";

/**
 * When more rows than this have changed since the last commit, the actor waits for the next commit. One more
 * transition and 64 outboxes still fit in a batch then.
 */
export const CHANGE_ROWS_MAX = 320;

interface WaitingAnswer {
  call: IncomingCall;
  answer: Answer;
}

export interface Change {
  dirty: boolean;
  /** JSON text by row; `null` removes the row. */
  rows: Map<string, string | null>;
  rowBytes: number;
  /** The mark that is written beside the rows; undefined where the commit needs none. */
  rowMark: number | undefined;
  /** Due time in epoch ms by message; `null` cancels the reminder. */
  reminders: Map<string, number | null>;
  sends: Unsent[];
  sendBytes: number;
  /** The part of `sendBytes` that tasks have. */
  taskBytes: number;
  waiting: WaitingAnswer[];
  /**
   * Answers to calls that read the state while its commit was in flight. They are sent after the commit and a new
   * ownership check: another host may have taken the shard after the bus stored the commit.
   */
  late: WaitingAnswer[];
  delivered: Delivery[];
  /** JSON texts for subscribers. An empty text stands for updates that did not fit. */
  live: string[];
  liveBytes: number;
}

export const emptyChange = (): Change => ({
  dirty: false,
  rows: new Map(),
  rowBytes: 0,
  rowMark: undefined,
  reminders: new Map(),
  sends: [],
  sendBytes: 0,
  taskBytes: 0,
  waiting: [],
  late: [],
  delivered: [],
  live: [],
  liveBytes: 0,
});

/**
 * True when one more transition might make the change too large for one commit. The actor then waits until the change
 * is taken.
 */
export const isFull = ({ rows, rowBytes, sendBytes }: Readonly<Change>) =>
  rows.size > CHANGE_ROWS_MAX ||
  rowBytes > TRANSITION_ROW_BYTES_MAX ||
  sendBytes > TRANSITION_SEND_BYTES_MAX;

/** The direct mail within this host whose effect the change holds. */
export const directOf = ({ delivered }: Readonly<Change>): DirectSend[] =>
  delivered.flatMap(({ direct }) => direct ?? []);

/**
 * True when some direct mail of the change came from a lost shard, or is sent through MAIL now. The change must not
 * be committed then.
 */
export const isRetracted = ({ delivered }: Readonly<Change>): boolean =>
  delivered.some(({ direct }) => direct?.status === "over");

/** Adds the effects of a handler to the change. */
export function recordEffects(change: Change, { rows, remind, sends }: Effects): void {
  for (const [row, { text, bytes }] of rows) {
    change.rows.set(row, text);
    change.rowBytes += bytes;
  }
  for (const [message, at] of remind) change.reminders.set(message, at);
  for (const send of sends) {
    change.sends.push(send);
    change.sendBytes += send.bytes;
    if (send.message.to === "worker") change.taskBytes += send.bytes;
  }
}

/** Adds a live update for subscribers. If the update does not fit, adds an empty text instead. */
export function recordLive(change: Change, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (change.liveBytes + bytes <= LIVE_BYTES_MAX && text !== "") {
    change.live.push(text);
    change.liveBytes += bytes;
  } else if (change.live.at(-1) !== "") change.live.push("");
}
