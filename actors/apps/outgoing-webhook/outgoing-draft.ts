/** The draft of a webhook queue's next state while the queue handles one message. */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { HandlerContext } from "../../runtime/kinds/define-actor.ts";
import { type Steady, setMsBetween, steadyToStore } from "../../runtime/lib/steady-clock.ts";
import { LogDraft } from "../lib/event-log/log-draft.ts";
import {
  type OutgoingRow,
  type OutgoingState,
  type WebhookRow,
  webhookRow,
} from "./outgoing-webhook-state.ts";

type Waiting = DeepReadonly<OutgoingState["waiting"][number]>;

const WEBHOOK = webhookRow("");

export class OutgoingDraft extends LogDraft<OutgoingState, OutgoingRow> {
  /** Number of the account's places that attempts had before this transition. */
  readonly placesBefore: number;
  readonly #steady: Steady | undefined;

  constructor(state: DeepReadonly<OutgoingState>, context: HandlerContext<OutgoingRow>) {
    super(state, context);
    this.#steady = context.steady?.();
    // If the clock was set forward, or the machine was suspended, the pauses are over.
    this.#move(Math.min(0, setMsBetween(state.clock, this.#steady)));
    this.placesBefore = this.places;
  }

  override transition() {
    const clock = steadyToStore(this.state.clock, this.#steady);
    const isToStore = this.hasNewState && this.state.waiting.length > 0;
    if (isToStore && clock !== this.state.clock) this.change({ clock });
    return super.transition();
  }

  /** Keeps the length of pauses after the time of day was set back. */
  #move(ms: number): void {
    const { now } = this;
    const { waiting, wantedAt = 0 } = this.state;
    const isAhead = ({ sentAt = 0 }: Waiting) => sentAt + ms > now;
    if (ms === 0 && wantedAt <= now && !waiting.some(isAhead)) return;
    const past = (at: number) => Math.max(0, Math.min(at + ms, now));
    const moved = ({ dueAt, sentAt, ...entry }: Waiting) => ({
      ...entry,
      dueAt: Math.max(0, dueAt + ms),
      ...(sentAt !== undefined && { sentAt: past(sentAt) }),
    });
    this.change({ waiting: waiting.map(moved), ...(wantedAt > 0 && { wantedAt: past(wantedAt) }) });
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
