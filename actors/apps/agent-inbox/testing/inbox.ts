/** An inbox in the hand of a test. */
import type { AgentDelivery } from "../../../../schemas/apps/agent.ts";
import type { agentInbox, ReceivedEvent } from "../../../../schemas/apps/agent-inbox.ts";
import { ActorInHand } from "../../../../scripts/testing/actor-in-hand.ts";
import { agentInboxActor } from "../agent-inbox.ts";
import type { AgentInboxState, InboxRow } from "../agent-inbox-state.ts";

type Messages = (typeof agentInbox)["messages"];

export const INBOX_KEY = `${"a".repeat(32)}.hooks.RepoAgent.owner-repo`;

export class Inbox extends ActorInHand<Messages, AgentInboxState, InboxRow> {
  constructor() {
    super(agentInboxActor, INBOX_KEY);
  }

  /**
   * Fires the reminder `resume` until the inbox sends the next attempt: a reminder may come before the attempt is
   * due.
   */
  untilNextTry(): void {
    const before = this.sent.length;
    while (this.sent.length === before) this.remind("resume");
  }

  receive(eventId: string, fields: Partial<ReceivedEvent> = {}) {
    return this.ask("receive", eventOf(eventId, fields));
  }

  /**
   * Returns the first delivery of each round that the agent must fetch, if the agent was notified since the last
   * call.
   */
  deliveries(): AgentDelivery[] {
    return this.rounds().flatMap(([first]) => first ?? []);
  }

  /** Returns, once for each notification of the agent since the last call, all deliveries of the current round. */
  rounds(): AgentDelivery[][] {
    const told = this.sent.filter(({ kind }) => kind === "agent");
    this.sent = this.sent.filter(({ kind }) => kind !== "agent");
    return told.map(() => this.ask("current", {}).deliveries);
  }

  /**
   * Reports the agent's response statuses for a round. With fewer statuses than deliveries, the rest of the round
   * counts as not begun.
   */
  settle([first, ...next]: AgentDelivery[], statuses: number[]): void {
    const [status, ...others] = statuses.map((one) => ({ status: one }));
    const { id = "", attempt = 1 } = first ?? {};
    this.ask("delivered", { id, attempt, ...status, next: others.slice(0, next.length) });
  }

  /** Answers all deliveries that the agent must fetch with the same status. */
  answer(status = 200): AgentDelivery[] {
    const deliveries = this.deliveries();
    for (const { id, attempt } of deliveries) this.ask("delivered", { id, attempt, status });
    return deliveries;
  }

  entry(number: number) {
    return this.ask("get", { number }).delivery;
  }
}

export const eventOf = (eventId: string, fields: Partial<ReceivedEvent> = {}): ReceivedEvent => ({
  source: "github",
  eventId,
  eventType: "push",
  request: {
    method: "POST",
    url: "http://app.test/webhooks/github",
    headers: [["content-type", "application/json"]],
    body: { text: JSON.stringify({ eventId }) },
  },
  bodyBytes: 20,
  keep: { days: 30, count: 10_000 },
  ...fields,
});
