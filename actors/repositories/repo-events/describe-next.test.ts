import { expect } from "chai";
import { EVENT_DESCRIBED_MS, EVENT_DESCRIBING_MS } from "../../../schemas/repositories/limits.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import type { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { ActorInHand } from "../../../scripts/testing/actor-in-hand.ts";
import { repoEventsActor } from "./repo-events.ts";
import type { EventRow, RepoEventsState } from "./repo-events-state.ts";

const ACCOUNT = "a".repeat(32);
const [A, B] = ["a", "b"].map((digit) => digit.repeat(40)) as [string, string];
const PUSH = {
  ...{ repoId: "0".repeat(16), namespace: "space", repoName: "repo", type: "pushed" as const },
  refs: [{ ref: "refs/heads/main", before: A, after: B }],
  ...{ refsTotal: 1, others: [] },
};
const SECOND_MS = 1_000;

/** An account that is followed, and a gateway that finds one commit of one push after another. */
class Account extends ActorInHand<(typeof repoEvents)["messages"], RepoEventsState, EventRow> {
  /** Whether each event had commits, and how long it was on its way, in the order in which they were sent. */
  readonly sentEvents: { hasCommits: boolean; tookMs: number }[] = [];
  readonly #searchMs: number;
  readonly #tasks: { numbers: number[]; at: number }[] = [];
  #endsAt = 0;

  constructor(searchMs: number) {
    super(repoEventsActor, ACCOUNT);
    this.#searchMs = searchMs;
    const subscriber = { kind: "app", key: `${ACCOUNT}.hooks` };
    this.ask("subscribe", { id: "one", filter: { types: ["pushed"] }, subscriber });
  }

  push(): void {
    this.ask("happened", { event: { ...PUSH, at: this.now } });
    this.#takeSent();
  }

  /** Lets a second pass, with its reminders and the work of the gateway. */
  pass(): void {
    const until = this.now + SECOND_MS;
    while (this.now < until) {
      const [task] = this.#tasks;
      const endsAt = task ? Math.max(this.now, this.#endsAt) : until;
      const dueAt = this.reminders.get("describeLate") ?? until;
      this.now = Math.min(until, endsAt, Math.max(dueAt, this.now));
      if (task && this.now >= endsAt) this.#finish(task);
      else if (this.now >= dueAt) this.remind("describeLate");
      this.#takeSent();
    }
  }

  #finish({ numbers, at }: { numbers: number[]; at: number }): void {
    this.#tasks.shift();
    // A gateway does not search for a push that is too old.
    const isLate = this.now - this.#searchMs - at > EVENT_DESCRIBED_MS;
    const pushed = isLate ? null : { commits: [], total: 1 };
    this.ask("described", { events: numbers.map((number) => ({ number, pushed })) });
    this.#endsAt = this.now + this.#searchMs;
  }

  #takeSent(): void {
    for (const { message, input } of this.sent.splice(0)) {
      if (message === "describe") {
        const { changes, at } = input as { changes: { number: number }[]; at: number };
        if (this.#tasks.length === 0) this.#endsAt = this.now + this.#searchMs;
        this.#tasks.push({ numbers: changes.map(({ number }) => number), at });
      } else if (message === "repoHappened") {
        for (const { payload, metadata } of (input as { events: RepoEventEnvelope[] }).events) {
          const hasCommits = (payload as { totalCommitsCount: number }).totalCommitsCount > 0;
          const tookMs = this.now - Date.parse(metadata.eventTimestamp);
          this.sentEvents.push({ hasCommits, tookMs });
        }
      }
    }
  }
}

describe("the commits of an account that pushes faster than gateways search", () => {
  for (const [searchMs, share] of [
    [2 * SECOND_MS, 0.4],
    [EVENT_DESCRIBING_MS - SECOND_MS, 0.04],
  ] as const) {
    it(`are found for as many pushes as searches of ${searchMs} ms allow`, () => {
      const account = new Account(searchMs);
      for (let second = 0; second < 600; second++) {
        account.push();
        account.pass();
      }
      // The backlog has reached its limit by now.
      const later = account.sentEvents.slice(200);
      expect(later).to.have.length.above(200);
      const described = later.filter(({ hasCommits }) => hasCommits);
      expect(described.length / later.length).to.be.above(share);
      expect(Math.max(...later.map(({ tookMs }) => tookMs))).to.be.at.most(EVENT_DESCRIBED_MS);
    });
  }
});
