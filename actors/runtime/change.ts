/** What an activation has done in memory and not yet committed, and who waits for that. */

import {
  CHANGE_ROWS_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_SEND_BYTES_MAX,
} from "../../schemas/limits.ts";
import type { Answer, Delivery, IncomingCall } from "./activation.ts";
import type { Unsent } from "./outbox.ts";

export interface Change {
  dirty: boolean;
  /** JSON text by row; `null` removes it. */
  rows: Map<string, string | null>;
  rowBytes: number;
  /** Epoch ms by message; `null` takes the reminder back. */
  reminders: Map<string, number | null>;
  sends: Unsent[];
  sendBytes: number;
  waiting: { respond: IncomingCall["respond"]; answer: Answer }[];
  delivered: Delivery[];
}

export const emptyChange = (): Change => ({
  dirty: false,
  rows: new Map(),
  rowBytes: 0,
  reminders: new Map(),
  sends: [],
  sendBytes: 0,
  waiting: [],
  delivered: [],
});

export const mergeChanges = (earlier: Change, later: Change): Change => ({
  dirty: earlier.dirty || later.dirty,
  rows: new Map([...earlier.rows, ...later.rows]),
  rowBytes: earlier.rowBytes + later.rowBytes,
  reminders: new Map([...earlier.reminders, ...later.reminders]),
  sends: [...earlier.sends, ...later.sends],
  sendBytes: earlier.sendBytes + later.sendBytes,
  waiting: [...earlier.waiting, ...later.waiting],
  delivered: [...earlier.delivered, ...later.delivered],
});

/** True when another transition might make it too large for one commit: the actor waits until it is taken. */
export const isFull = ({ rows, rowBytes, sendBytes }: Readonly<Change>) =>
  rows.size > CHANGE_ROWS_MAX ||
  rowBytes > TRANSITION_ROW_BYTES_MAX ||
  sendBytes > TRANSITION_SEND_BYTES_MAX;
