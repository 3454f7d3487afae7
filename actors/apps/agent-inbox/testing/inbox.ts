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

  /** Goes on until the next try is sent: a reminder may come before its time. */
  untilNextTry(): void {
    const before = this.sent.length;
    while (this.sent.length === before) this.remind("resume");
  }

  receive(eventId: string, fields: Partial<ReceivedEvent> = {}) {
    return this.ask("receive", eventOf(eventId, fields));
  }

  /** Returns the deliveries that the agent must fetch, if it was notified since the last call. */
  deliveries(): AgentDelivery[] {
    return this.rounds().flatMap(([first]) => first ?? []);
  }

  /** With what goes together each time. */
  rounds(): AgentDelivery[][] {
    const told = this.sent.filter(({ kind }) => kind === "agent");
    this.sent = this.sent.filter(({ kind }) => kind !== "agent");
    return told.map(() => this.ask("current", {}).deliveries);
  }

  /** The agent answers a round, as far as it came with it. */
  settle([first, ...next]: AgentDelivery[], statuses: number[]): void {
    const [status, ...others] = statuses.map((one) => ({ status: one }));
    const { id = "", attempt = 1 } = first ?? {};
    this.ask("delivered", { id, attempt, ...status, next: others.slice(0, next.length) });
  }

  /** The agent answers what it was sent. */
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
