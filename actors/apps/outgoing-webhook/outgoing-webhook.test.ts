import { expect } from "chai";
import {
  AGENT_ROOM_BYTES,
  DELIVERIES_TRIMMED_AT_ONCE,
  OUTGOING_AGE_MS_MAX,
  OUTGOING_KEPT_MAX,
  OUTGOING_KEPT_MS,
  OUTGOING_RETRY_AFTER_MS_MAX,
  OUTGOING_SECRETS_MAX,
  OUTGOING_TRY_MS_MAX,
  OUTGOING_WAITING_MAX,
  SEALED_CHARS_MAX,
} from "../../../schemas/apps/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { ACCOUNT, KEY, type Post, Queue, URL } from "./testing/webhook-queue.ts";
import { OUTGOING_AT_ONCE_MAX, OUTGOING_PAUSES_MS, OUTGOING_TRIES_MAX } from "./tries.ts";

describe("outgoing-webhook", () => {
  let queue: Queue;
  beforeEach(() => {
    queue = new Queue();
  });

  it("send() has it posted at once, and knows the same one when it comes again", () => {
    const first = queue.send("one");
    expect(first).to.include({ number: 1, isNew: true });
    expect(queue.send("one")).to.deep.equal({ ...first, isNew: false });
    const [post, ...others] = queue.posts();
    expect(others).to.deep.equal([]);
    expect(post).to.include({ number: 1, attempt: 1, id: first.id });
    queue.tried(post as Post, 204);
    expect(queue.entry(1)).to.include({ status: "arrived", attempts: 1 });
    expect(queue.send("one")).to.deep.equal({ ...first, isNew: false });
    expect(queue.posts()).to.deep.equal([]);
  });

  it("tried() that failed is tried again by the schedule under one id, then given up", () => {
    const { id } = queue.send("one");
    let post = queue.untilNextPost();
    const start = queue.now;
    const pauses: number[] = [];
    for (let attempt = 1; attempt < OUTGOING_TRIES_MAX; attempt++) {
      expect(post).to.include({ attempt, id });
      const before = queue.now;
      queue.tried(post, attempt % 2 === 0 ? 500 : undefined);
      // The same message twice.
      queue.tried(post, 500);
      expect(queue.entry(1)).to.include({ status: "waiting", attempts: attempt });
      post = queue.untilNextPost();
      pauses.push(queue.now - before);
    }
    expect(pauses).to.deep.equal([...OUTGOING_PAUSES_MS]);
    queue.tried(post, 302);
    const entry = queue.entry(1);
    expect(entry).to.include({ status: "failed", attempts: OUTGOING_TRIES_MAX });
    expect(entry.lastTry).to.include({ status: 302 });
    expect(entry).to.not.have.property("nextAttemptAt");
    expect(queue.now - start).to.equal(OUTGOING_PAUSES_MS.reduce((sum, ms) => sum + ms, 0));
    expect(queue.ask("list", { limit: 5, status: "failed" }).webhooks).to.have.length(1);
    // Too late.
    queue.tried(post, 200);
    expect(queue.entry(1)).to.include({ status: "failed" });
  });

  it("tried() that failed is tried again after its pause, although the clock was set back by hours", () => {
    const back = () => {
      queue.setClock(-3 * 3_600_000);
      return queue.now;
    };
    queue.process = "process";
    queue.send("one");
    const post = queue.untilNextPost();
    back();
    queue.tried(post, 500);
    const since = back();
    const next = queue.untilNextPost();
    expect(queue.now - since).to.equal(OUTGOING_PAUSES_MS[0]);
    // The worker of the second attempt is lost.
    const again = back();
    expect(queue.untilNextPost().attempt).to.equal(next.attempt + 1);
    expect(queue.now - again).to.equal(OUTGOING_TRY_MS_MAX + (OUTGOING_PAUSES_MS[1] ?? 0));
  });

  it("tried() with 410 ends it, and Retry-After moves the next try, within its bound", () => {
    queue.send("gone");
    queue.tried(queue.untilNextPost(), 410);
    expect(queue.entry(1)).to.include({ status: "failed", attempts: 1 });
    for (const [asked, waits] of [
      [60_000, 60_000],
      [1_000, OUTGOING_PAUSES_MS[0] ?? 0],
      [2 * OUTGOING_RETRY_AFTER_MS_MAX, OUTGOING_RETRY_AFTER_MS_MAX],
    ] as const) {
      const { number } = queue.send(`asked ${asked}`);
      queue.tried(queue.untilNextPost(), 503, asked);
      expect(queue.entry(number).nextAttemptAt).to.equal(queue.now + waits);
      queue.tried(queue.untilNextPost(), 200);
    }
  });

  it("send() has OUTGOING_AT_ONCE_MAX under way, and the next when one has ended", () => {
    for (let i = 0; i < OUTGOING_AT_ONCE_MAX + 2; i++) queue.send(`${i}`);
    const posts = queue.posts();
    expect(posts).to.have.length(OUTGOING_AT_ONCE_MAX);
    queue.tried(posts[0] as Post, 200);
    expect(queue.posts().map(({ number }) => number)).to.deep.equal([OUTGOING_AT_ONCE_MAX + 1]);
    queue.tried(posts[1] as Post, 500);
    expect(queue.posts().map(({ number }) => number)).to.deep.equal([OUTGOING_AT_ONCE_MAX + 2]);
  });

  it("send() takes OUTGOING_WAITING_MAX and refuses one more", () => {
    for (let i = 0; i < OUTGOING_WAITING_MAX; i++) queue.send(`${i}`);
    expect(refusal(() => queue.send("more")).code).to.equal("queue_full");
    expect(queue.send("0")).to.include({ isNew: false });
  });

  it("send() gives a transition no more than it may send, whatever the payloads are", () => {
    const text = "\0".repeat(8_000);
    for (let i = 0; i < OUTGOING_AT_ONCE_MAX; i++) queue.send(`${i}`);
    const first = queue.posts();
    const secret = Array.from({ length: OUTGOING_SECRETS_MAX }, () => ({
      sealed: "s".repeat(SEALED_CHARS_MAX),
    }));
    for (let i = 0; i < 20; i++) queue.send(`large ${i}`, { text }, { secret });
    for (const post of first) queue.tried(post, 200);
    const seen = new Set<number>();
    for (let posts = queue.posts(); posts.length > 0; posts = queue.posts()) {
      for (const post of posts) {
        seen.add(post.number);
        queue.sent = [];
        queue.tried(post, 200);
        expect(JSON.stringify(queue.sent).length).to.be.lessThan(300_000);
        if (queue.sent.length > 0) posts.push(...queue.posts());
      }
    }
    expect(seen.size).to.equal(20);
    expect(refusal(() => queue.send("huge", { text: "x".repeat(60_000) })).code).to.equal(
      "body_too_large",
    );
  });

  it("deferred() counts as no try, and ends a webhook that its endpoint has refused for days", () => {
    queue.send("one");
    for (;;) {
      const post = queue.untilNextPost();
      expect(post.attempt).to.equal(1);
      const until = queue.now + 3_600_000;
      queue.ask("deferred", { number: 1, attempt: 1, until });
      // Too late.
      queue.ask("deferred", { number: 1, attempt: 9, until: until + 1 });
      if (queue.entry(1).status !== "waiting") break;
      expect(queue.entry(1)).to.include({ attempts: 0, nextAttemptAt: until });
    }
    expect(queue.entry(1)).to.include({ status: "failed" });
    expect(queue.now - queue.entry(1).createdAt).to.equal(OUTGOING_AGE_MS_MAX);
  });

  it("resume() counts a try without a report as failed", () => {
    queue.send("one");
    const [post] = queue.posts();
    while (queue.entry(1).attempts === 0) {
      expect(queue.places.granted).to.equal(1);
      queue.remind("resume");
    }
    expect(queue.now - queue.entry(1).createdAt).to.equal(OUTGOING_TRY_MS_MAX);
    expect(queue.entry(1)).to.include({ attempts: 1, status: "waiting" });
    expect(queue.places.granted).to.equal(0);
    queue.tried(post as Post, 200);
    expect(queue.entry(1)).to.include({ status: "waiting" });
    expect(queue.untilNextPost()).to.include({ attempt: 2 });
  });

  it("resend() sends an ended webhook again under its id, and no waiting one", () => {
    const { id } = queue.send("one");
    const first = queue.untilNextPost();
    expect(refusal(() => queue.ask("resend", { number: 1 })).code).to.equal("conflict");
    expect(refusal(() => queue.ask("resend", { number: 2 })).code).to.equal("not_found");
    queue.tried(first, 410);
    expect(queue.ask("resend", { number: 1 })).to.include({ status: "waiting", resends: 1 });
    // The result of an attempt before the resend does not count for this attempt.
    queue.tried(first, 200);
    const again = queue.untilNextPost();
    expect(again).to.include({ number: 1, attempt: 2, id });
    queue.tried(again, 200);
    expect(queue.entry(1)).to.include({ status: "arrived", attempts: 1 });
    expect(queue.ask("get", { number: 1 }).tries.map(({ status }) => status)).to.deep.equal([
      410, 200,
    ]);
  });

  it("sendTest() sends an event that says so", () => {
    const entry = queue.ask("sendTest", { url: URL });
    expect(entry).to.include({ status: "waiting", isTest: true });
    const { payload } = queue.ask("get", { number: entry.number });
    expect(payload).to.deep.equal({
      text: '{"type":"webhook.test","timestamp":"2026-11-20T00:00:00.000Z","data":{}}',
    });
  });

  it("jobEnded() is posted once, and its end is reported once to the jobs of the account", () => {
    const jobs = new Queue(ACCOUNT);
    const ids = ["1", "2"].map((digit) => digit.repeat(32));
    const secret = { sealed: "v1.sealed" };
    const body = { payload: { text: "{}" }, payloadBytes: 2, contentType: "application/json" };
    for (const id of [...ids, ...ids]) jobs.ask("jobEnded", { id, url: URL, ...body, secret });
    const posts = jobs.sent.filter(({ message }) => message === "post");
    expect(
      posts.map(({ key, input }) => [key, (input as { secret: object }).secret]),
    ).to.deep.equal([ACCOUNT, ACCOUNT].map((key) => [key, secret]));
    const [first, second] = jobs.posts();
    jobs.tried(first as Post, 204);
    jobs.tried(first as Post, 204);
    jobs.tried(second as Post, 500);
    jobs.tried(jobs.untilNextPost(), 410);
    const told = jobs.sent.filter(({ message }) => message === "webhookEnded");
    const to = { to: "actor", kind: "render-jobs", key: ACCOUNT, message: "webhookEnded" };
    expect(told).to.deep.equal([
      { ...to, input: { id: ids[0], status: "arrived" } },
      { ...to, input: { id: ids[1], status: "failed" } },
    ]);
    // The queue of rendering jobs belongs to no agent, so no bytes are reported.
    expect(jobs.sent.some(({ message }) => message === "stored")).to.equal(false);
  });

  it("send() reports the first bytes and large changes to the account, and trim() when nothing is left", () => {
    queue.send("small");
    queue.send("large", { blob: "app.a.b.webhook.1" }, { payloadBytes: 500_000 });
    queue.send("little", { blob: "app.a.b.webhook.2" }, { payloadBytes: 100_000 });
    const told = () => queue.sent.filter(({ message }) => message === "stored");
    const stored = { agent: KEY, part: "outgoing" };
    const to = { to: "actor", kind: "app-usage", key: ACCOUNT, message: "stored" };
    expect(told()).to.have.length(2);
    expect(told()[0]).to.deep.equal({ ...to, input: { ...stored, bytes: AGENT_ROOM_BYTES } });
    const { bytes = 0 } = (told()[1]?.input ?? {}) as { bytes?: number };
    expect(bytes).to.be.within(500_002, 500_100);
    for (let i = 0; i < 3; i++) queue.tried(queue.untilNextPost(), 200);
    queue.now += OUTGOING_KEPT_MS;
    queue.remind("trim");
    expect(told().at(-1)).to.deep.equal({ ...to, input: { ...stored, bytes: 0 } });
  });

  it("list(), get() and resend() refuse expired webhooks even if trim() is late, and show waiting ones", () => {
    queue.send("old");
    queue.tried(queue.untilNextPost(), 200);
    queue.send("waits");
    const listed = () => queue.ask("list", { limit: 10 }).webhooks.map(({ number }) => number);
    queue.now += OUTGOING_KEPT_MS - 1;
    expect(listed()).to.deep.equal([2, 1]);
    queue.now += 1;
    expect(listed()).to.deep.equal([2]);
    for (const message of ["get", "resend"] as const) {
      expect(refusal(() => queue.ask(message, { number: 1 })).code).to.equal("not_found");
    }
    expect(queue.ask("get", { number: 2 }).webhook.number).to.equal(2);
  });

  it("trim() keeps OUTGOING_KEPT_MAX ended webhooks for OUTGOING_KEPT_MS and every waiting one, and then forgets", () => {
    const blob = { blob: "app.a.b.webhook.1" };
    for (let i = 0; i <= OUTGOING_KEPT_MAX; i++) {
      queue.send(`${i}`, i === 0 ? blob : { text: "{}" });
      queue.tried(queue.untilNextPost(), 200);
    }
    const purges = queue.sent.filter(({ message }) => message === "purge");
    expect(purges.map(({ message, input }) => [message, input])).to.deep.equal([
      ["purge", { blobs: [blob.blob] }],
    ]);
    expect(queue.ask("list", { limit: 100 }).before).to.be.a("number");
    expect(refusal(() => queue.entry(1)).code).to.equal("not_found");
    queue.now += OUTGOING_KEPT_MS;
    for (let steps = 0; queue.forgotten === 0; steps++) {
      expect(steps).to.be.lessThan(30);
      queue.remind("trim");
    }
    expect(queue.rows.size).to.equal(0);
  });

  it("a webhook that waits keeps no ended ones behind it, and is listed behind the gap", () => {
    const url = "https://silent.example/hook";
    queue.send("waits", undefined, { url });
    const waiting = queue.untilNextPost();
    const MORE = 30;
    for (let i = 1; i <= OUTGOING_KEPT_MAX + MORE; i++) {
      queue.send(`${i}`);
      queue.tried(queue.untilNextPost(), 200);
    }
    const rows = [...queue.rows.keys()].filter((name) => name.startsWith("webhook/"));
    expect(rows).to.have.length(OUTGOING_KEPT_MAX + 1);
    expect(queue.state.first).to.equal(1);
    expect(refusal(() => queue.entry(2)).code).to.equal("not_found");
    expect(queue.entry(1)).to.include({ url, status: "waiting" });
    expect(queue.entry(2 + MORE)).to.include({ status: "arrived" });
    const listed: number[] = [];
    for (let before: number | undefined = Number.MAX_SAFE_INTEGER; before !== undefined; ) {
      const answer: { webhooks: { number: number }[]; before?: number | undefined } = queue.ask(
        "list",
        {
          before,
          limit: 100,
        },
      );
      listed.push(...answer.webhooks.map(({ number }) => number));
      before = answer.before;
    }
    expect(listed).to.have.length(OUTGOING_KEPT_MAX + 1);
    expect(listed.slice(-2)).to.deep.equal([2 + MORE, 1]);
    // When it ends, the one that ended longest ago is deleted, although its number is higher.
    queue.now += 1;
    queue.tried(waiting, 410);
    expect(queue.entry(1)).to.include({ status: "failed" });
    expect(refusal(() => queue.entry(2 + MORE)).code).to.equal("not_found");
    expect(queue.entry(3 + MORE)).to.include({ status: "arrived" });
    expect(queue.state.first).to.equal(1);
    queue.send("another");
    queue.tried(queue.untilNextPost(), 200);
    expect(queue.entry(1)).to.include({ status: "failed" });
    expect(refusal(() => queue.entry(3 + MORE)).code).to.equal("not_found");
  });

  it("a webhook that ends late is kept for OUTGOING_KEPT_MS after its end", () => {
    queue.send("late");
    const post = queue.untilNextPost();
    const createdAt = queue.now;
    queue.now += OUTGOING_TRY_MS_MAX - 1;
    queue.tried(post, 410);
    queue.now = createdAt + OUTGOING_KEPT_MS;
    queue.remind("trim");
    expect(queue.entry(1)).to.include({ status: "failed" });
    queue.now = createdAt + OUTGOING_TRY_MS_MAX - 1 + OUTGOING_KEPT_MS;
    expect(refusal(() => queue.entry(1)).code).to.equal("not_found");
    queue.remind("trim");
    expect(queue.forgotten).to.equal(1);
  });

  it("trim() goes on soon while there are more old webhooks or ids than it deletes at once", () => {
    const DAY_MS = 86_400_000;
    for (let i = 0; i <= DELIVERIES_TRIMMED_AT_ONCE; i++) {
      queue.send(`${i}`);
      queue.tried(queue.untilNextPost(), 200);
    }
    const pauseAfterTrim = () => {
      queue.remind("trim");
      return (queue.reminders.get("trim") ?? 0) - queue.now;
    };
    expect(pauseAfterTrim()).to.equal(DAY_MS);
    queue.now += OUTGOING_KEPT_MS;
    // Only the rows are too many.
    queue.state = { ...queue.state, ids: [] };
    expect(pauseAfterTrim()).to.be.lessThan(60_000);
    queue.remind("trim");
    expect(queue.forgotten).to.equal(1);
    // Only the generations of ids are too many.
    queue.send("one");
    queue.tried(queue.untilNextPost(), 200);
    const [{ day } = { day: 0 }] = queue.state.ids;
    const old = Array.from({ length: 9 }, (_, at) => {
      return { day: day - 30, ...(at > 0 && { generation: at }), count: 1 };
    });
    queue.state = { ...queue.state, ids: [...old, ...queue.state.ids] };
    expect(pauseAfterTrim()).to.be.lessThan(60_000);
    expect(pauseAfterTrim()).to.be.lessThan(60_000);
    expect(pauseAfterTrim()).to.equal(DAY_MS);
    expect(queue.state.ids.map((generation) => generation.day)).to.deep.equal([day]);
  });
});
