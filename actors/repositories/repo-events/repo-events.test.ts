import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { EVENT_DESCRIBED_MS, EVENTS_LISTED_MAX } from "../../../schemas/repositories/limits.ts";
import type { PushedCommits, RepoEvent } from "../../../schemas/repositories/repo-event.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import type { RepoEventFilter, repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import {
  EVENT_SUBSCRIPTIONS_MAX,
  EVENTS_KEPT,
  EVENTS_KEPT_BYTES,
  EVENTS_LISTED_BYTES,
  repoEventsActor,
} from "./repo-events.ts";
import { EventRow, type RepoEventsState } from "./repo-events-state.ts";
import {
  EVENTS_DELIVERED_BYTES,
  EVENTS_DELIVERED_MAX,
  EVENTS_SENT_BYTES,
} from "./tell-subscribers.ts";

const ACCOUNT = "a".repeat(32);
const [A, B] = ["a", "b"].map((digit) => digit.repeat(40)) as [string, string];
const OF = { repoId: "0".repeat(16), namespace: "space", repoName: "repo" };
const SUBSCRIBER = { kind: "app", key: `${ACCOUNT}.hooks` };
const ABOUT = {
  defaultBranch: "main",
  description: null,
  readOnly: false,
  createdAt: 1_000,
  updatedAt: 2_000,
  lastPushAt: null,
};
const created = (at: number, more: Partial<RepoEvent> = {}) =>
  ({ ...OF, type: "created", at, about: ABOUT, ...more }) as RepoEvent;
const pushed = (...refs: { ref: string; before: string; after: string }[]): RepoEvent => ({
  ...OF,
  type: "pushed",
  at: 0,
  refs,
  refsTotal: refs.length,
  others: [],
});
const main = { ref: "refs/heads/main", before: A, after: B };
const NEW: PushedCommits = {
  commits: [
    {
      id: B,
      message: "m",
      messageTruncated: false,
      committedAt: 5_000,
      author: { name: "A", email: "a@example.com" },
      committer: { name: "C", email: "c@example.com" },
      parents: [A],
    },
  ],
  total: 3,
};

class Account {
  now = 1_000_000;
  state: RepoEventsState = repoEventsActor.initial;
  rows = new Map<string, EventRow>();

  // biome-ignore lint/suspicious/noExplicitAny: one door for all messages.
  tell(message: keyof typeof repoEvents.messages, input: any = {}): any {
    const { now, rows } = this;
    const context = { now, rows, key: ACCOUNT };
    const handled = runHandler(repoEventsActor, message, this.state, input, context);
    this.state = handled.state;
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, EventRow.parse(value));
    }
    return handled;
  }

  happened = (event: RepoEvent) => this.tell("happened", { event });
  subscribe = (id: string, filter: RepoEventFilter) =>
    this.tell("subscribe", { id, filter, subscriber: SUBSCRIBER });
  list = (after = 0, limit = EVENTS_LISTED_MAX) => this.tell("list", { after, limit }).reply;
}

/** Returns the events that a transition sends to a subscriber. */
function toldIn(handled: { send: readonly { message: string; input: unknown }[] }) {
  return handled.send
    .filter(({ message }) => message === "repoHappened")
    .flatMap(({ input }) => (input as { events: RepoEventEnvelope[] }).events);
}

describe("repo-events", () => {
  let account: Account;
  beforeEach(() => {
    account = new Account();
  });

  it("happened() keeps the last EVENTS_KEPT events in order, and list() pages through them", () => {
    for (let at = 1; at <= EVENTS_KEPT + 5; at++) account.happened(created(at));
    expect(account.rows.size).to.equal(EVENTS_KEPT);
    const seen: string[] = [];
    for (let after = 0; ; ) {
      const { events, last } = account.list(after);
      expect(last).to.equal(EVENTS_KEPT + 5);
      if (events.length === 0) break;
      seen.push(
        ...events.map(({ event }: { event: RepoEventEnvelope }) => event.metadata.eventTimestamp),
      );
      after = events.at(-1)?.number ?? 0;
    }
    const expected = Array.from({ length: EVENTS_KEPT }, (_, i) => new Date(i + 6).toISOString());
    expect(seen).to.deep.equal(expected);
  });

  it("happened() keeps EVENTS_KEPT_BYTES of events, and list() returns EVENTS_LISTED_BYTES at a time", () => {
    const about = { ...ABOUT, description: "x".repeat(100_000) };
    const one = JSON.stringify(created(1, { about })).length;
    const fits = Math.floor(EVENTS_KEPT_BYTES / one);
    for (let at = 1; at <= fits; at++) account.happened(created(1, { about }));
    expect(account.rows.size).to.equal(fits);
    account.happened(created(1, { about }));
    expect(account.rows.size).to.equal(fits);
    expect(account.state.bytes).to.be.at.most(EVENTS_KEPT_BYTES);
    const { events } = account.list();
    expect(events.length).to.be.above(1);
    expect(JSON.stringify(events).length).to.be.below(EVENTS_LISTED_BYTES + 2_000);
    expect(events[0].number).to.equal(2);
  });

  it("list() of an account without events is empty", () => {
    expect(account.list(7, 1)).to.deep.equal({ events: [], last: 0 });
    expect(() => account.list(0, EVENTS_LISTED_MAX + 1)).to.throw();
  });

  it("events have the shape of the public API", () => {
    const events: RepoEvent[] = [
      created(1_000),
      { ...created(2_000), type: "forked", source: "artifacts:other/origin" } as RepoEvent,
      {
        ...created(3_000),
        type: "imported",
        source: "git:https://example.com/x.git",
        branch: "dev",
      } as RepoEvent,
      { ...OF, type: "cloned", at: 4_000 },
      {
        ...OF,
        type: "token.created",
        at: 5_000,
        tokenId: "t".repeat(16),
        scope: "read",
        expiresAt: 9_000,
      },
      { ...OF, type: "token.revoked", at: 6_000, tokenId: "t".repeat(16) },
    ];
    for (const event of events) account.happened(event);
    const repo = {
      repoId: OF.repoId,
      defaultBranch: "main",
      description: null,
      readOnly: false,
      createdAt: "1970-01-01T00:00:01.000Z",
      updatedAt: "1970-01-01T00:00:02.000Z",
      lastPushAt: null,
    };
    const metadata = (seconds: number) => ({
      accountId: ACCOUNT,
      eventSubscriptionId: null,
      eventSchemaVersion: 1,
      eventTimestamp: `1970-01-01T00:00:0${seconds}.000Z`,
    });
    const source = { type: "artifacts", namespace: "space", repoName: "repo" };
    const ofRepo = { ...source, type: "artifacts.repo" };
    expect(account.list().events.map(({ event }: { event: unknown }) => event)).to.deep.equal([
      { type: "artifacts.repo.created", source, payload: repo, metadata: metadata(1) },
      {
        type: "artifacts.repo.forked",
        source: { ...source, namespace: "other", repoName: "origin" },
        payload: { ...repo, namespace: "space", repoName: "repo" },
        metadata: metadata(2),
      },
      {
        type: "artifacts.repo.imported",
        source,
        payload: { ...repo, sourceUrl: "https://example.com/x.git", branch: "dev" },
        metadata: metadata(3),
      },
      { type: "artifacts.repo.cloned", source: ofRepo, payload: {}, metadata: metadata(4) },
      {
        type: "artifacts.repo.token.created",
        source: ofRepo,
        payload: { tokenId: "t".repeat(16), scope: "read", expiresAt: "1970-01-01T00:00:09.000Z" },
        metadata: metadata(5),
      },
      {
        type: "artifacts.repo.token.revoked",
        source: ofRepo,
        payload: { tokenId: "t".repeat(16) },
        metadata: metadata(6),
      },
    ]);
  });

  it("a push is one event per ref; with a subscriber it waits for its commits, and later events wait behind it", () => {
    account.happened(pushed(main));
    expect(account.list().last, "nobody follows").to.equal(1);
    account.subscribe("one", { types: ["pushed", "cloned"] });
    const gone = { ref: "refs/heads/gone", before: A, after: ZERO_ID };
    const handled = account.happened(pushed(main, gone));
    expect(toldIn(handled)).to.deep.equal([]);
    expect(handled.send).to.have.length(1);
    expect(handled.send[0].input).to.deep.equal({
      address: { accountId: ACCOUNT, namespace: "space", name: "repo" },
      changes: [{ number: 2, ...main }],
      others: [],
      at: 0,
    });
    expect(handled.remind.describeLate).to.equal(account.now + EVENT_DESCRIBED_MS);
    expect(toldIn(account.happened({ ...OF, type: "cloned", at: 7 }))).to.deep.equal([]);
    expect(account.list().last).to.equal(1);
    const told = toldIn(account.tell("described", { events: [{ number: 2, pushed: NEW }] }));
    expect(
      told.map(({ type, payload }) => [type, (payload as { ref?: string }).ref]),
    ).to.deep.equal([
      ["artifacts.repo.pushed", "refs/heads/main"],
      ["artifacts.repo.pushed", "refs/heads/gone"],
      ["artifacts.repo.cloned", undefined],
    ]);
    const [{ committedAt: _, ...commit } = { committedAt: 0 }] = NEW.commits;
    expect(told[0]).to.deep.equal({
      type: "artifacts.repo.pushed",
      source: { type: "artifacts.repo", namespace: "space", repoName: "repo" },
      payload: {
        ...main,
        commits: [{ ...commit, timestamp: "1970-01-01T00:00:05.000Z" }],
        totalCommitsCount: 3,
        commitsTruncated: true,
      },
      metadata: {
        accountId: ACCOUNT,
        eventSubscriptionId: "one",
        eventSchemaVersion: 1,
        eventTimestamp: "1970-01-01T00:00:00.000Z",
      },
    });
    // Reports of an event that was described before, and of an unknown event, change nothing.
    expect(account.tell("described", { events: [{ number: 2, pushed: null }] }).changed).to.equal(
      false,
    );
    expect(account.tell("described", { events: [{ number: 99, pushed: NEW }] }).changed).to.equal(
      false,
    );
  });

  it("describeLate() sends a push without its commits if they were not described in time", () => {
    account.subscribe("one", { types: ["pushed"] });
    account.happened({ ...pushed(main), at: account.now });
    account.now += EVENT_DESCRIBED_MS - 1;
    const early = account.tell("describeLate");
    expect(toldIn(early)).to.deep.equal([]);
    expect(early.remind.describeLate).to.equal(account.now + 1);
    account.now += 1;
    const late = account.tell("describeLate");
    expect(toldIn(late)[0]?.payload).to.deep.equal({
      ...main,
      commits: [],
      totalCommitsCount: 0,
      commitsTruncated: true,
    });
    expect(late.remind.describeLate).to.equal(null);
    expect(
      toldIn(account.tell("described", { events: [{ number: 1, pushed: NEW }] })),
    ).to.deep.equal([]);
  });

  it("asks for the commits of one push after another, with the refs and others of each", () => {
    account.subscribe("one", { types: ["pushed"] });
    const made = { ref: "refs/heads/new", before: ZERO_ID, after: B };
    const push = (others: string[], ...refs: (typeof main)[]) =>
      account.happened({ ...pushed(...refs), at: account.now, others } as RepoEvent);
    const asked = ({ send }: { send: { message: string; input: unknown }[] }) =>
      send.filter(({ message }) => message === "describe").map(({ input }) => input);
    const address = { accountId: ACCOUNT, namespace: "space", name: "repo" };
    const { now: at } = account;
    expect(asked(push([A], main))).to.have.length(1);
    expect(asked(push([A, B], made, main))).to.deep.equal([]);
    const laterMs = EVENT_DESCRIBED_MS / 2;
    account.now += laterMs;
    expect(asked(push([], main))).to.deep.equal([]);
    const described = (...numbers: number[]) =>
      asked(
        account.tell("described", { events: numbers.map((number) => ({ number, pushed: NEW })) }),
      );
    expect(described(1)).to.deep.equal([
      {
        address,
        changes: [
          { number: 2, ...made },
          { number: 3, ...main },
        ],
        others: [A, B],
        at,
      },
    ]);
    expect(described(1), "reported twice").to.deep.equal([]);
    expect(described(2), "in part").to.deep.equal([]);
    account.now = at + EVENT_DESCRIBED_MS;
    const next = { address, changes: [{ number: 4, ...main }], others: [], at: at + laterMs };
    expect(asked(account.tell("describeLate"))).to.deep.equal([next]);
    expect(described(3), "reported too late").to.deep.equal([]);
    expect(described(4)).to.deep.equal([]);
    const left = [...account.rows.values()].filter((row) => "open" in row || "others" in row);
    expect(left).to.deep.equal([]);
    expect(asked(push([], main))).to.have.length(1);
  });

  it("asks for the next push after the pushes about which an older version has asked", () => {
    account.subscribe("one", { types: ["pushed"] });
    const { now: at } = account;
    for (const number of [1, 2]) {
      account.rows.set(`${number}`, { ...OF, type: "pushed", at, ...main, open: true });
    }
    account.state = { ...account.state, last: 2 };
    expect(account.happened({ ...pushed(main), at }).send).to.deep.equal([]);
    const described = (number: number) =>
      account.tell("described", { events: [{ number, pushed: NEW }] }).send;
    const messages = (number: number) =>
      described(number).map(({ message }: { message: string }) => message);
    expect(messages(1)).to.deep.equal(["repoHappened"]);
    expect(messages(2)).to.deep.equal(["describe", "repoHappened"]);
  });

  it("happened() keeps the time at which the first of several pushes is sent without its commits", () => {
    account.subscribe("one", { types: ["pushed"] });
    const push = () => account.happened({ ...pushed(main), at: account.now });
    const first = account.now + EVENT_DESCRIBED_MS;
    expect(push().remind.describeLate).to.equal(first);
    for (const ms of [30_000, 29_000]) {
      account.now += ms;
      expect(push().remind).to.not.have.property("describeLate");
    }
    account.now = first;
    const late = account.tell("describeLate");
    expect(toldIn(late)).to.have.length(1);
    expect(late.remind.describeLate).to.equal(first + 30_000);
    account.now = first + 59_000;
    expect(toldIn(account.tell("describeLate"))).to.have.length(2);
    expect(push().remind.describeLate).to.equal(account.now + EVENT_DESCRIBED_MS);
  });

  it("subscribe() sends later events of its types and repository, until unsubscribe()", () => {
    account.happened(created(1));
    account.subscribe("one", { types: ["created"], namespace: "SPACE" });
    account.subscribe("two", { types: ["created"], repoName: "other" });
    const other = { ...created(2), repoName: "Other", namespace: "elsewhere" };
    expect(account.state.subscriptions).to.have.keys("one", "two");
    const first = account.happened(created(3));
    expect(toldIn(first).map(({ metadata }) => metadata.eventSubscriptionId)).to.deep.equal([
      "one",
    ]);
    expect(first.send[0]).to.include({ to: "actor", kind: "app", key: SUBSCRIBER.key });
    expect(
      toldIn(account.happened(other)).map(({ metadata }) => metadata.eventSubscriptionId),
    ).to.deep.equal(["two"]);
    expect(toldIn(account.happened({ ...OF, type: "cloned", at: 4 }))).to.deep.equal([]);
    account.subscribe("one", { types: ["cloned"] });
    expect(toldIn(account.happened({ ...OF, type: "cloned", at: 5 })), "changed").to.have.length(1);
    account.tell("unsubscribe", { id: "one" });
    expect(account.tell("unsubscribe", { id: "one" }).changed).to.equal(false);
    expect(toldIn(account.happened({ ...OF, type: "cloned", at: 6 }))).to.deep.equal([]);
  });

  it("follow() subscribes by a send, may be repeated, and ends with null; it delivers numbered events, EVENTS_DELIVERED_MAX at a time", () => {
    const follow = (filter: RepoEventFilter | null) =>
      account.tell("follow", { id: "app.hooks", filter, subscriber: SUBSCRIBER });
    follow({ types: ["pushed", "cloned"] });
    follow({ types: ["pushed", "cloned"] });
    const cloned = { ...OF, type: "cloned" as const, at: 7 };
    // The `cloned` events wait behind a push whose commits a gateway still looks for.
    account.happened(pushed(main));
    for (let i = 0; i <= EVENTS_DELIVERED_MAX; i++) account.happened(cloned);
    const told = account.tell("described", { events: [{ number: 1, pushed: NEW }] });
    expect(toldIn(told)).to.have.length(EVENTS_DELIVERED_MAX);
    expect(told.send[0].input.numbers.at(-1)).to.equal(EVENTS_DELIVERED_MAX);
    expect(account.tell("tellMore").send[0].input.numbers).to.have.length(2);
    follow(null);
    follow(null);
    expect(toldIn(account.happened(cloned))).to.deep.equal([]);
  });

  it("accepts EVENT_SUBSCRIPTIONS_MAX subscriptions of an account and refuses one more", () => {
    for (let i = 0; i < EVENT_SUBSCRIPTIONS_MAX; i++)
      account.subscribe(`${i}`, { types: ["cloned"] });
    const more = refusal(() => account.subscribe("more", { types: ["cloned"] }));
    expect(more.code).to.equal("limit_reached");
    account.subscribe("0", { types: ["fetched"] });
  });

  it("delivers at most EVENTS_DELIVERED_BYTES to one subscriber and EVENTS_SENT_BYTES in all at a time, and the rest later", () => {
    for (const id of ["a", "b", "c"]) account.subscribe(id, { types: ["pushed", "created"] });
    account.happened(pushed(main));
    const about = { ...ABOUT, description: "x".repeat(40_000) };
    for (let i = 0; i < 5; i++) account.happened(created(i + 1, { about }));
    let handled = account.tell("described", { events: [{ number: 1, pushed: NEW }] });
    const seen = new Map<string, string[]>();
    for (let rounds = 0; ; rounds++) {
      expect(rounds).to.be.below(20);
      expect(JSON.stringify(handled.send).length).to.be.below(EVENTS_SENT_BYTES + 10_000);
      for (const { input } of handled.send) {
        expect(JSON.stringify(input).length).to.be.below(EVENTS_DELIVERED_BYTES + 1_000);
        for (const { metadata, type } of (input as { events: RepoEventEnvelope[] }).events) {
          const id = metadata.eventSubscriptionId ?? "";
          seen.set(id, [...(seen.get(id) ?? []), `${type} ${metadata.eventTimestamp}`]);
        }
      }
      if (handled.remind.tellMore === undefined) break;
      handled = account.tell("tellMore");
    }
    for (const id of ["a", "b", "c"]) {
      expect(seen.get(id)?.length, id).to.equal(6);
      expect(new Set(seen.get(id)).size).to.equal(6);
    }
  });

  it("loads a push stored before each ref had its own event", () => {
    const old = {
      ...OF,
      type: "pushed",
      at: 1,
      refs: [main, { ...main, ref: "refs/tags/x" }],
      refsTotal: 2,
    };
    expect(EventRow.parse(old)).to.deep.equal({ ...OF, type: "pushed", at: 1, ...main });
    expect(EventRow.parse({ ...OF, type: "created", at: 1 })).to.deep.equal({
      ...OF,
      type: "created",
      at: 1,
    });
    const state = repoEventsActor.state.parse({ last: 3 });
    expect(state).to.deep.equal({ last: 3, first: 1, bytes: 0, subscriptions: {} });
  });
});
