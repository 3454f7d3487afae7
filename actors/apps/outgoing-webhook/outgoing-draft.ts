/** The draft of a webhook queue's next state while the queue handles one message. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import { LogDraft } from "../lib/event-log/log-draft.ts";
import {
  type OutgoingRow,
  type OutgoingState,
  type WebhookRow,
  webhookRow,
} from "./outgoing-webhook-state.ts";

const WEBHOOK = webhookRow("");

export class OutgoingDraft extends LogDraft<OutgoingState, OutgoingRow> {
  /** Number of the account's places that attempts had before this transition. */
  readonly placesBefore: number;

  constructor(state: DeepReadonly<OutgoingState>, context: HandlerContext<OutgoingRow>) {
    super(state, context);
    this.placesBefore = this.places;
  }

  /** Number of the account's places that attempts have now. */
  get places(): number {
    return this.state.waiting.filter(({ hasPlace }) => hasPlace).length;
  }

  has(number: number): boolean {
    return this.row(webhookRow(number)) !== undefined;
  }

  /**
   * Returns the numbers of the webhooks that are in the log before this transition, in ascending order. There are gaps
   * if a webhook waited for longer than later ones were kept.
   */
  numbers(): number[] {
    const names = [...this.context.rows.keys()].filter((name) => name.startsWith(WEBHOOK));
    return names
      .map((name) => Number(name.slice(WEBHOOK.length)))
      .sort((one, other) => one - other);
  }

  /** The row of a webhook in the log. */
  webhook(number: number): DeepReadonly<WebhookRow> {
    const row = this.row(webhookRow(number));
    assert(row?.row === "webhook", `Webhook ${number} is in the log`);
    return row;
  }
}
