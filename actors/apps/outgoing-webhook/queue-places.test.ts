import { expect } from "chai";
import {
  OUTGOING_PLACES_MAX,
  OUTGOING_SECRETS_MAX,
  OUTGOING_TRY_MS_MAX,
  SEALED_CHARS_MAX,
} from "../../../schemas/apps/limits.ts";
import { TRANSITION_SEND_BYTES_MAX } from "../../../schemas/limits.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { outgoingWebhookActor } from "./outgoing-webhook.ts";
import { OutgoingRow, OutgoingState } from "./outgoing-webhook-state.ts";
import { ACCOUNT, KEY, type Post, Queue, URL } from "./testing/webhook-queue.ts";
import { OUTGOING_ASK_MS, OUTGOING_AT_ONCE_MAX } from "./tries.ts";

describe("a queue of outgoing webhooks and the places of its account", () => {
  let queue: Queue;
  beforeEach(() => {
    queue = new Queue();
  });

  it("send() posts only with a place of the account, in order, while other queues have them all", () => {
    const others = Array.from(
      { length: OUTGOING_PLACES_MAX },
      (_, index) => new Queue(`${ACCOUNT}.b.C.other-${index}`, queue.places),
    );
    const held = others.map((other) => {
      other.send("one");
      return other.untilNextPost();
    });
    for (let i = 0; i < OUTGOING_AT_ONCE_MAX + 1; i++) queue.send(`${i}`);
    expect(queue.posts()).to.deep.equal([]);
    expect(queue.entry(1)).to.include({ status: "waiting", attempts: 0 });
    const posted: number[] = [];
    for (const [index, other] of others.entries()) {
      other.tried(held[index] as Post, 200);
      for (const post of queue.posts()) {
        posted.push(post.number);
        if (posted.length > 1) queue.tried(post, 200);
      }
    }
    expect(posted).to.deep.equal([1, 2, 3, 4, 5, 6]);
    expect(queue.places.granted).to.equal(1);
    queue.tried({ number: 1, attempt: 1, id: "" }, 200);
    expect(queue.places.granted).to.equal(0);
    expect(queue.places.rows.size).to.equal(0);
  });

  it("tried() and deferred() let another queue of the account have the place, though more is due", () => {
    const other = new Queue(`${ACCOUNT}.b.C.other`, queue.places);
    const keepers = Array.from({ length: OUTGOING_PLACES_MAX - 1 }, (_, index) => {
      const keeper = new Queue(`${ACCOUNT}.b.C.keeper-${index}`, queue.places);
      keeper.send("one");
      return keeper;
    });
    for (const name of ["one", "two", "three"]) queue.send(name);
    for (const name of ["one", "two"]) other.send(name);
    const [first, ...early] = queue.posts();
    expect([early, other.posts()]).to.deep.equal([[], []]);
    // Its second one had its turn before the other queue came.
    queue.tried(first as Post, 500);
    const [second] = queue.posts();
    expect(second).to.include({ number: 2 });
    queue.ask("deferred", { number: 2, attempt: 1, until: queue.now + 60_000 });
    expect(queue.posts()).to.deep.equal([]);
    other.tried(other.posts()[0] as Post, 200);
    expect(queue.posts().map(({ number }) => number)).to.deep.equal([3]);
    expect(keepers[0]?.places.granted).to.equal(OUTGOING_PLACES_MAX);
  });

  it("resume() asks again for a place if no answer came, as after a host of an older version", () => {
    queue.isCutOff = true;
    queue.send("one");
    expect(queue.posts()).to.deep.equal([]);
    queue.remind("resume");
    expect(queue.now - queue.entry(1).createdAt).to.equal(OUTGOING_ASK_MS);
    expect(queue.posts()).to.deep.equal([]);
    queue.isCutOff = false;
    queue.remind("resume");
    expect(queue.now - queue.entry(1).createdAt).to.equal(2 * OUTGOING_ASK_MS);
    queue.tried(queue.untilNextPost(), 200);
    expect(queue.places.granted).to.equal(0);
  });

  it("placesGranted() returns places that it cannot use, and clear() those in use", () => {
    queue.ask("placesGranted", { places: 3 });
    expect([queue.forgotten, queue.posts()]).to.deep.equal([1, []]);
    for (let i = 0; i < 2; i++) queue.send(`${i}`);
    const [late] = queue.posts();
    expect(queue.places.granted).to.equal(2);
    queue.ask("clear", {});
    expect(queue.places.granted).to.equal(0);
    expect(queue.state).to.deep.equal(outgoingWebhookActor.initial);
    // The report of the attempt comes too late, and the message comes twice.
    queue.tried(late as Post, 200);
    queue.ask("clear", {});
    expect(queue.state).to.deep.equal(outgoingWebhookActor.initial);
  });

  it("clear() no longer waits for places", () => {
    queue.places.want(OUTGOING_PLACES_MAX);
    queue.send("one");
    expect(queue.places.rows.size).to.equal(1);
    queue.ask("clear", {});
    expect(queue.places.rows.size).to.equal(0);
  });

  it("state of an earlier version goes on: attempts in progress have no place, due ones ask for theirs", () => {
    const at = queue.now - 60_000;
    const row = {
      ...{ row: "webhook", url: URL, payload: { text: "{}" }, payloadBytes: 2, isTest: false },
      ...{ contentType: "application/json", createdAt: at, startedAt: at, attempts: 0 },
      ...{ attemptsEver: 0, resends: 0, tries: [] },
    };
    const numbers = [1, 2, 3, 4, 5, 6, 7];
    for (const number of numbers) {
      const read = OutgoingRow.parse({ ...row, id: `msg_${number}` });
      queue.rows.set(`webhook/${number}`, read);
    }
    const waiting = numbers.map((number) => ({
      ...{ number, dueAt: at },
      ...(number <= OUTGOING_AT_ONCE_MAX && { sentAt: at }),
    }));
    const stored = { next: 8, first: 1, waiting, payloadBytes: 14, ids: [], resumeAt: at + 1 };
    queue.state = OutgoingState.parse(JSON.parse(JSON.stringify(stored)));
    queue.tried({ number: 1, attempt: 1, id: "" }, 200);
    expect(queue.posts().map(({ number }) => number)).to.deep.equal([6]);
    expect(queue.places.granted).to.equal(1);
    queue.now = at + OUTGOING_TRY_MS_MAX;
    queue.ask("resume", {});
    // Four attempts were lost, and their next tries are due later.
    expect(queue.posts().map(({ number }) => number)).to.deep.equal([7]);
    expect(queue.places.granted).to.equal(2);
    queue.tried({ number: 6, attempt: 1, id: "" }, 200);
    queue.tried({ number: 7, attempt: 1, id: "" }, 200);
    expect(queue.places.granted).to.equal(0);
    for (let left = 4; left > 0; ) {
      const posts = queue.posts();
      for (const post of posts) queue.tried(post, 200);
      left -= posts.length;
      if (posts.length === 0) queue.remind("resume");
    }
    expect(queue.ask("list", { limit: 10, status: "arrived" }).webhooks).to.have.length(7);
  });

  it("the first attempt is a step of the request that sent the webhook, whoever freed the place", () => {
    const trace = { "trunkline-request": "run.id" };
    const context = { key: KEY, now: queue.now };
    const input = { id: "one", url: URL, payload: { text: "{}" }, payloadBytes: 2 };
    const sent = runHandler(
      outgoingWebhookActor,
      "send",
      queue.state,
      { ...input, contentType: "application/json" },
      { ...context, rows: queue.rows, trace: () => trace },
    );
    const rows = new Map(Object.entries(sent.rows)) as typeof queue.rows;
    const granted = runHandler(
      outgoingWebhookActor,
      "placesGranted",
      sent.state,
      { places: 1 },
      { ...context, rows, trace: () => ({ "trunkline-request": "other.id" }) },
    );
    const [post] = granted.send;
    expect(post).to.include({ message: "post" });
    expect(post?.trace).to.deep.equal(trace);
  });

  it("placesGranted() sends no more than a transition may send, and wants the other places again", () => {
    queue.isCutOff = true;
    const secret = Array.from({ length: OUTGOING_SECRETS_MAX }, () => ({
      sealed: "s".repeat(SEALED_CHARS_MAX),
    }));
    for (let i = 0; i < OUTGOING_AT_ONCE_MAX; i++) {
      queue.send(`${i}`, { text: "\0".repeat(8_000) }, { secret });
    }
    const { state, rows, now } = queue;
    const granted = { places: OUTGOING_AT_ONCE_MAX };
    const context = { key: KEY, now, rows };
    const { send } = runHandler(outgoingWebhookActor, "placesGranted", state, granted, context);
    expect(JSON.stringify(send).length).to.be.below(TRANSITION_SEND_BYTES_MAX);
    expect(send.map(({ message }) => message)).to.deep.equal(["post", "post", "wanted"]);
    const rest = OUTGOING_AT_ONCE_MAX - 2;
    expect(send[2]?.input).to.deep.equal({ queue: KEY, places: rest, returned: rest });
  });
});
