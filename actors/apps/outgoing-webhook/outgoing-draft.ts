/** The draft of a webhook queue's next state while the queue handles one message. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { LogDraft } from "../lib/event-log/log-draft.ts";
import {
  type OutgoingRow,
  type OutgoingState,
  type WebhookRow,
  webhookRow,
} from "./outgoing-webhook-state.ts";

export class OutgoingDraft extends LogDraft<OutgoingState, OutgoingRow> {
  has(number: number): boolean {
    return number >= this.state.first && number < this.state.next;
  }

  /** The row of a webhook in the log. */
  webhook(number: number): DeepReadonly<WebhookRow> {
    const row = this.row(webhookRow(number));
    assert(row?.row === "webhook", `Webhook ${number} is in the log`);
    return row;
  }
}
