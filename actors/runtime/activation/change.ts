/** What an activation has done in memory and not yet committed, and who waits for that. */

import {
  CHANGE_ROWS_MAX,
  LIVE_BYTES_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_SEND_BYTES_MAX,
} from "../../../schemas/limits.ts";
import type { Effects } from "../kinds/transition.ts";
import type { Answer, Delivery, IncomingCall } from "../shards/incoming.ts";
import type { Unsent } from "../shards/outbox.ts";
import type { DirectSend } from "../shards/shard.ts";

interface WaitingAnswer {
  call: IncomingCall;
  answer: Answer;
}

export interface Change {
  dirty: boolean;
  /** JSON text by row; `null` removes it. */
  rows: Map<string, string | null>;
  rowBytes: number;
  /** What the mark beside the rows says after the commit that this is taken for. */
  rowCommits: number;
  /** Epoch ms by message; `null` takes the reminder back. */
  reminders: Map<string, number | null>;
  sends: Unsent[];
  sendBytes: number;
  waiting: WaitingAnswer[];
  /**
   * Answers to calls that came while the commit was under way. What they read is durable with it, but the commit may
   * have been made before they came, and another host may own the shard since.
   */
  late: WaitingAnswer[];
  delivered: Delivery[];
  /** JSON texts for those who watch; an empty one stands for what there was no room for. */
  live: string[];
  liveBytes: number;
}

export const emptyChange = (): Change => ({
  dirty: false,
  rows: new Map(),
  rowBytes: 0,
  rowCommits: 0,
  reminders: new Map(),
  sends: [],
  sendBytes: 0,
  waiting: [],
  late: [],
  delivered: [],
  live: [],
  liveBytes: 0,
});

export const mergeChanges = (earlier: Change, later: Change): Change => ({
  dirty: earlier.dirty || later.dirty,
  rows: new Map([...earlier.rows, ...later.rows]),
  rowBytes: earlier.rowBytes + later.rowBytes,
  rowCommits: later.rowCommits,
  reminders: new Map([...earlier.reminders, ...later.reminders]),
  sends: [...earlier.sends, ...later.sends],
  sendBytes: earlier.sendBytes + later.sendBytes,
  waiting: [...earlier.waiting, ...later.waiting],
  late: [...earlier.late, ...later.late],
  delivered: [...earlier.delivered, ...later.delivered],
  live: [...earlier.live, ...later.live],
  liveBytes: earlier.liveBytes + later.liveBytes,
});

/** True when another transition might make it too large for one commit: the actor waits until it is taken. */
export const isFull = ({ rows, rowBytes, sendBytes }: Readonly<Change>) =>
  rows.size > CHANGE_ROWS_MAX ||
  rowBytes > TRANSITION_ROW_BYTES_MAX ||
  sendBytes > TRANSITION_SEND_BYTES_MAX;

/** Mail of this host of which it holds the effect. */
export const directOf = ({ delivered }: Readonly<Change>): DirectSend[] =>
  delivered.flatMap(({ direct }) => direct ?? []);

/** Some of that came from a shard that is lost, or comes by MAIL now: the change is not to be committed. */
export const isRetracted = ({ delivered }: Readonly<Change>): boolean =>
  delivered.some(({ direct }) => direct?.status === "over");

/** Adds what a handler did to what is to be committed. */
export function recordEffects(change: Change, { rows, remind, sends }: Effects): void {
  for (const [row, { text, bytes }] of rows) {
    change.rows.set(row, text);
    change.rowBytes += bytes;
  }
  for (const [message, at] of remind) change.reminders.set(message, at);
  for (const send of sends) {
    change.sends.push(send);
    change.sendBytes += send.bytes;
  }
}

/** Those who watch are told of what fits, and of the rest that there was some. */
export function recordLive(change: Change, text: string): void {
  const bytes = Buffer.byteLength(text);
  if (change.liveBytes + bytes <= LIVE_BYTES_MAX && text !== "") {
    change.live.push(text);
    change.liveBytes += bytes;
  } else if (change.live.at(-1) !== "") change.live.push("");
}
