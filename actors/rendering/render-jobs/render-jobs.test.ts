import { expect } from "chai";
import { OUTGOING_WAITING_MAX } from "../../../schemas/apps/limits.ts";
import type { Input } from "../../../schemas/contract.ts";
import { MESSAGE_BYTES_MAX, TRANSITION_SEND_BYTES_MAX } from "../../../schemas/limits.ts";
import {
  JOB_WEBHOOK_SECRET_CHARS_MAX,
  JOB_WEBHOOK_URL_CHARS_MAX,
  RENDER_JOB_KEPT_MS,
  RENDER_JOB_LOST_MS,
  RENDER_JOBS_AT_ONCE_MAX,
  RENDER_JOBS_KEPT_MAX,
  RENDER_JOBS_WAITING_MAX,
} from "../../../schemas/rendering/limits.ts";
import type { renderJobs } from "../../../schemas/rendering/render-jobs.ts";
import { ActorInHand } from "../../../scripts/testing/actor-in-hand.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { renderJobsActor } from "./render-jobs.ts";
import { RenderJobRow, RenderJobsState } from "./render-jobs-state.ts";
import { JOBS_TENDED_MAX } from "./tend.ts";

type Messages = (typeof renderJobs)["messages"];

const ACCOUNT = "a".repeat(32);
const BYTES_MAX = 1_000_000;
const ERROR = { code: "navigation_timed_out", message: "It hangs", details: { browserMs: 7 } };
const WEBHOOK = { url: "https://receiver.example/hook", secret: "v1.sealed" };

const id = (number: number) => number.toString(16).padStart(32, "0");

class Jobs extends ActorInHand<Messages, RenderJobsState, RenderJobRow> {
  constructor() {
    super(renderJobsActor, ACCOUNT);
  }

  create(number: number, fields: Partial<Input<Messages["create"]>> = {}) {
    const room = { requestBytes: 10, bytesMax: BYTES_MAX };
    return this.ask("create", { id: id(number), call: "pdf", cacheTtlS: 5, ...room, ...fields });
  }

  begin(number: number, task = `task-${number}`) {
    return this.ask("begin", { id: id(number), task });
  }

  result(number: number, bytes = 100) {
    const object = `${ACCOUNT}/${id(number)}.pdf`;
    return { object, bytes, mediaType: "application/pdf", browserMs: 5 };
  }

  complete(number: number, bytes = 100) {
    const task = `task-${number}`;
    this.begin(number);
    this.ask("reserve", { id: id(number), task, bytes, bytesMax: BYTES_MAX });
    this.ask("ended", { id: id(number), task, result: this.result(number, bytes) });
  }

  status(number: number) {
    return this.ask("get", { id: id(number) }).status;
  }

  /** Returns the inputs of the sent messages of this name, and removes these messages. */
  taken(message: string) {
    const taken = this.sent.filter((envelope) => envelope.message === message);
    this.sent = this.sent.filter((envelope) => envelope.message !== message);
    // biome-ignore lint/suspicious/noExplicitAny: a test looks at the input of whatever was sent.
    return taken.map(({ input }) => input as any);
  }

  /** Stores jobs directly, without the messages that would create them. */
  fill(count: number, fields: Partial<RenderJobRow>) {
    for (let number = 1; number <= count; number++) {
      const row = { number, call: "pdf" as const, createdAt: this.now, cacheTtlS: 0 };
      const bytes = { requestBytes: 0, resultBytes: 0 };
      this.rows.set(id(number), { ...row, ...bytes, status: "completed", ...fields });
    }
    this.state = { ...this.state, next: count + 1 };
  }
}

describe("render-jobs", () => {
  let jobs: Jobs;
  beforeEach(() => {
    jobs = new Jobs();
  });

  it("begin() has the sealed key of the request, which no client sees and which goes at the end", () => {
    jobs.create(1, { requestKey: "sealed" });
    expect(jobs.begin(1)).to.include({ requestKey: "sealed" });
    expect(jobs.rows.get(id(1))).to.include({ requestKey: "sealed" });
    expect(jobs.ask("get", { id: id(1) })).to.not.have.property("requestKey");
    jobs.complete(1);
    expect(jobs.rows.get(id(1))).to.not.have.property("requestKey");
  });

  it("create() says whether the job has its request's key, also when it is repeated", () => {
    expect(jobs.create(1, { requestKey: "sealed" })).to.include({ isKeyKept: true });
    expect(jobs.create(1, { requestKey: "sealed" })).to.include({ isKeyKept: true });
    // Creates a job without a key, as a host of an older version does.
    jobs.create(2);
    expect(jobs.create(2, { requestKey: "sealed" })).to.not.have.property("isKeyKept");
    jobs.ask("cancel", { id: id(2) });
    expect(jobs.create(2, { requestKey: "sealed" })).to.include({ isKeyKept: true });
  });

  it("create() queues a task in the account's turn; begin(), reserve() and ended() complete the job", () => {
    expect(jobs.create(1)).to.deep.equal({
      ...{ id: id(1), call: "pdf", status: "queued", createdAt: jobs.now },
    });
    expect(jobs.sent).to.deep.equal([
      {
        ...{ to: "worker", kind: "render", key: ACCOUNT, message: "job", lane: "interactive" },
        ...{ inTurns: true, input: { id: id(1) } },
      },
    ]);
    const createdAt = jobs.now;
    jobs.now += 5;
    expect(jobs.begin(1)).to.deep.equal({ isWanted: true, call: "pdf", cacheTtlS: 5 });
    expect(jobs.ask("get", { id: id(1) })).to.include({ status: "running", startedAt: jobs.now });
    expect(jobs.ask("check", { id: id(1), task: "task-1" })).to.deep.equal({ isWanted: true });
    jobs.now += 5;
    jobs.complete(1);
    expect(jobs.ask("get", { id: id(1) })).to.deep.equal({
      ...{ id: id(1), call: "pdf", status: "completed" },
      ...{ createdAt, startedAt: createdAt + 5, endedAt: createdAt + 10, result: jobs.result(1) },
    });
    expect(jobs.ask("check", { id: id(1), task: "task-1" })).to.deep.equal({ isWanted: false });
    // The request may hold credentials.
    expect(jobs.taken("purge")).to.deep.equal([{ objects: [`${ACCOUNT}/${id(1)}.request`] }]);
  });

  it("create() with the same message twice creates one job", () => {
    jobs.create(1, { webhook: WEBHOOK });
    jobs.create(1, { webhook: WEBHOOK });
    expect(jobs.rows.size).to.equal(1);
    expect(jobs.state.webhooks).to.equal(1);
    expect(jobs.taken("job")).to.have.length(1);
  });

  it("gives the lane RENDER_JOBS_AT_ONCE_MAX tasks, and the next oldest when one has ended", () => {
    for (let number = 1; number <= RENDER_JOBS_AT_ONCE_MAX + 2; number++) jobs.create(number);
    expect(jobs.taken("job")).to.have.length(RENDER_JOBS_AT_ONCE_MAX);
    jobs.complete(3);
    expect(jobs.taken("job")).to.deep.equal([{ id: id(RENDER_JOBS_AT_ONCE_MAX + 1) }]);
    // A cancelled job keeps its slot in the lane until its task has ended. Otherwise tasks could accumulate.
    jobs.ask("cancel", { id: id(4) });
    expect(jobs.taken("job")).to.deep.equal([]);
    expect(jobs.begin(4)).to.deep.equal({ isWanted: false });
    expect(jobs.taken("job")).to.deep.equal([{ id: id(RENDER_JOBS_AT_ONCE_MAX + 2) }]);
  });

  it("create() and admit() take RENDER_JOBS_WAITING_MAX jobs that have not ended, and refuse one more", () => {
    jobs.fill(RENDER_JOBS_WAITING_MAX - 1, { status: "queued" });
    jobs.create(RENDER_JOBS_WAITING_MAX);
    const more = RENDER_JOBS_WAITING_MAX + 1;
    const refused = refusal(() => jobs.create(more));
    expect(refused.code).to.equal("queue_full");
    expect(refused.message).to.contain(String(RENDER_JOBS_WAITING_MAX));
    const asked = { requestBytes: 1, bytesMax: BYTES_MAX, hasWebhook: false };
    expect(refusal(() => jobs.ask("admit", asked)).code).to.equal("queue_full");
    jobs.ask("cancel", { id: id(1) });
    jobs.ask("admit", asked);
    jobs.create(more);
  });

  it("create() keeps RENDER_JOBS_KEPT_MAX jobs and refuses one more until one expires; it stays fast", () => {
    jobs.fill(RENDER_JOBS_KEPT_MAX - 1, { endedAt: jobs.now });
    jobs.create(RENDER_JOBS_KEPT_MAX);
    const refused = refusal(() => jobs.create(RENDER_JOBS_KEPT_MAX + 1));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(RENDER_JOBS_KEPT_MAX));
    jobs.now += RENDER_JOB_KEPT_MS;
    jobs.create(RENDER_JOBS_KEPT_MAX + 1);
  });

  it("create() takes bytes up to the account's, and refuses one more", () => {
    jobs.create(1, { requestBytes: BYTES_MAX - 1 });
    const refused = refusal(() => jobs.create(2, { requestBytes: 2 }));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain(String(BYTES_MAX));
    jobs.create(2, { requestBytes: 1 });
    // The request of an ended job no longer uses bytes.
    jobs.complete(1, 0);
    jobs.create(3, { requestBytes: BYTES_MAX - 1 });
  });

  it("reserve() takes bytes up to the account's, and refuses one more, and a job that has ended", () => {
    jobs.create(1, { requestBytes: 10 });
    jobs.begin(1);
    const reserve = (bytes: number, task = "task-1") =>
      jobs.ask("reserve", { id: id(1), task, bytes, bytesMax: BYTES_MAX });
    reserve(BYTES_MAX - 10);
    expect(refusal(() => reserve(BYTES_MAX - 9)).code).to.equal("limit_reached");
    // A repeated message, and a message with fewer bytes, change nothing.
    reserve(BYTES_MAX - 10);
    reserve(1);
    expect(jobs.rows.get(id(1))?.resultBytes).to.equal(BYTES_MAX - 10);
    expect(refusal(() => reserve(1, "other")).code).to.equal("cancelled");
    jobs.ask("ended", { id: id(1), task: "task-1", result: jobs.result(1, 100) });
    // Reserved bytes that the job did not use are released.
    expect(jobs.rows.get(id(1))?.resultBytes).to.equal(100);
    expect(refusal(() => reserve(1)).code).to.equal("cancelled");
  });

  it("create() takes OUTGOING_WAITING_MAX webhooks that have not ended, and refuses one more", () => {
    jobs.state = { ...jobs.state, webhooks: OUTGOING_WAITING_MAX - 1 };
    jobs.create(1, { webhook: WEBHOOK });
    const refused = refusal(() => jobs.create(2, { webhook: WEBHOOK }));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain("webhooks");
    jobs.create(2);
    jobs.ask("webhookEnded", { id: id(9), status: "failed" });
    jobs.create(3, { webhook: WEBHOOK });
  });

  it("each end sends one webhook, and shows no secret", () => {
    for (const number of [1, 2, 3]) jobs.create(number, { webhook: WEBHOOK });
    jobs.complete(1);
    jobs.begin(2);
    jobs.ask("ended", { id: id(2), task: "task-2", error: ERROR });
    jobs.ask("cancel", { id: id(3) });
    const sent = jobs.sent.filter(({ message }) => message === "jobEnded");
    expect(sent.map(({ kind, key }) => [kind, key])).to.deep.equal(
      Array(3).fill(["outgoing-webhook", ACCOUNT]),
    );
    const posts = jobs.taken("jobEnded");
    const events = posts.map(({ payload }) => JSON.parse(payload.text));
    expect(events.map(({ type }) => type)).to.deep.equal([
      "job.completed",
      "job.failed",
      "job.cancelled",
    ]);
    expect(events[1].data).to.deep.include({
      ...{ id: id(2), status: "failed", error: { code: 5_002, message: "It hangs" } },
    });
    for (const [index, { id: sender, url, secret, payloadBytes, payload }] of posts.entries()) {
      expect([sender, url]).to.deep.equal([id(index + 1), WEBHOOK.url]);
      expect(secret).to.deep.equal({ sealed: WEBHOOK.secret });
      expect(payloadBytes).to.equal(payload.text.length);
    }
    expect(jobs.ask("get", { id: id(1) }).webhook).to.deep.equal({
      ...{ url: WEBHOOK.url, status: "waiting" },
    });
    jobs.ask("webhookEnded", { id: id(1), status: "arrived" });
    expect(jobs.ask("get", { id: id(1) }).webhook?.status).to.equal("arrived");
    const kept = JSON.stringify([jobs.state, [...jobs.rows]]);
    expect(kept).to.not.contain(WEBHOOK.secret);
    expect(JSON.stringify(jobs.ask("list", { count: 10 }))).to.not.contain("secret");
  });

  it("ended() twice, from another task, or too late changes nothing", () => {
    jobs.create(1);
    jobs.begin(1);
    jobs.ask("ended", { id: id(1), task: "other", result: jobs.result(1) });
    expect(jobs.status(1)).to.equal("running");
    jobs.complete(1);
    jobs.taken("purge");
    jobs.ask("ended", { id: id(1), task: "task-1", result: jobs.result(1) });
    jobs.ask("ended", { id: id(1), task: "task-1", error: ERROR });
    expect(jobs.status(1)).to.equal("completed");
    expect(jobs.taken("purge")).to.deep.equal([]);
  });

  it("ended() of a cancelled or unknown job has its result removed", () => {
    jobs.create(1);
    jobs.begin(1);
    jobs.ask("cancel", { id: id(1) });
    expect(jobs.ask("check", { id: id(1), task: "task-1" })).to.deep.equal({ isWanted: false });
    jobs.taken("purge");
    for (const number of [1, 2]) {
      const result = jobs.result(number);
      jobs.ask("ended", { id: id(number), task: `task-${number}`, result });
      expect(jobs.taken("purge")).to.deep.equal([{ objects: [result.object] }]);
    }
    expect(jobs.status(1)).to.equal("cancelled");
    expect(jobs.state.lane).to.deep.equal([]);
  });

  it("ended() fails a job whose task was given up before it began", () => {
    jobs.create(1);
    jobs.ask("ended", { id: id(1), task: "task-1", error: ERROR });
    expect(jobs.ask("get", { id: id(1) })).to.deep.include({ status: "failed", error: ERROR });
  });

  it("begin() lets each try of the task go on, and no second task", () => {
    jobs.create(1);
    const startedAt = jobs.now;
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(jobs.begin(1).isWanted).to.equal(true);
      jobs.now += 1_000;
    }
    expect(jobs.begin(1, "other").isWanted).to.equal(false);
    expect(jobs.ask("get", { id: id(1) }).startedAt).to.equal(startedAt);
    expect(jobs.begin(2).isWanted).to.equal(false);
  });

  it("cancel() refuses an ended and an unknown job", () => {
    jobs.create(1);
    jobs.ask("cancel", { id: id(1) });
    expect(refusal(() => jobs.ask("cancel", { id: id(1) })).code).to.equal("conflict");
    expect(refusal(() => jobs.ask("cancel", { id: id(2) })).code).to.equal("not_found");
  });

  it("tend() queues jobs again whose tasks sent no report for RENDER_JOB_LOST_MS", () => {
    for (const number of [1, 2, 3]) jobs.create(number);
    jobs.begin(2);
    jobs.ask("cancel", { id: id(3) });
    expect(jobs.taken("job")).to.have.length(3);
    const since = jobs.now;
    jobs.remind("tend");
    expect(jobs.now - since).to.equal(RENDER_JOB_LOST_MS);
    expect(jobs.taken("job")).to.deep.equal([{ id: id(1) }, { id: id(2) }]);
    expect(jobs.status(2)).to.equal("queued");
    // A second task of a running job.
    expect(jobs.begin(1, "again").isWanted).to.equal(true);
    expect(jobs.begin(1, "task-1").isWanted).to.equal(false);
    jobs.ask("ended", { id: id(1), task: "task-1", result: jobs.result(1) });
    expect(jobs.status(1)).to.equal("running");
    jobs.ask("ended", { id: id(1), task: "again", result: jobs.result(1) });
    expect(jobs.status(1)).to.equal("completed");
  });

  it("tend() waits no longer for a lost task although the clock was set back by hours", () => {
    jobs.create(1);
    expect(jobs.taken("job")).to.have.length(1);
    jobs.setClock(-3 * 3_600_000);
    const since = jobs.now;
    jobs.remind("tend");
    expect(jobs.now - since).to.equal(RENDER_JOB_LOST_MS);
    expect(jobs.taken("job")).to.deep.equal([{ id: id(1) }]);
  });

  it("get(), cancel() and list() refuse a job past RENDER_JOB_KEPT_MS, even if tend() is late", () => {
    jobs.create(1);
    jobs.complete(1);
    jobs.now += RENDER_JOB_KEPT_MS - 1;
    expect(jobs.status(1)).to.equal("completed");
    jobs.now += 1;
    for (const message of ["get", "cancel"] as const) {
      expect(refusal(() => jobs.ask(message, { id: id(1) })).code).to.equal("not_found");
    }
    expect(jobs.ask("list", { count: 10 }).jobs).to.deep.equal([]);
  });

  it("tend() removes expired jobs and results, ends jobs that never ran, and then forgets the state", () => {
    const count = JOBS_TENDED_MAX + 5;
    for (let number = 1; number <= count; number++) {
      jobs.create(number);
      if (number > 2) jobs.complete(number);
    }
    jobs.taken("purge");
    jobs.taken("job");
    const createdAt = jobs.now;
    while (jobs.rows.size > 2) jobs.remind("tend");
    expect(jobs.now).to.equal(createdAt + RENDER_JOB_KEPT_MS);
    const objects = jobs.taken("purge").flatMap((input) => input.objects);
    expect(objects).to.include.members([jobs.result(3).object, jobs.result(count).object]);
    const { status, error } = jobs.ask("get", { id: id(1) });
    expect([status, error?.code]).to.deep.equal(["failed", "deadline_exceeded"]);
    while (jobs.forgotten === 0) jobs.remind("tend");
    expect(jobs.rows.size).to.equal(0);
    expect(jobs.now).to.be.at.least(createdAt + 2 * RENDER_JOB_KEPT_MS);
  });

  it("tend() forgets an account whose last webhook ended after its last job", () => {
    jobs.create(1, { webhook: WEBHOOK });
    jobs.complete(1);
    while (jobs.rows.size > 0) jobs.remind("tend");
    expect([jobs.forgotten, jobs.state.tendAt]).to.deep.equal([0, undefined]);
    for (let twice = 0; twice < 2; twice++) {
      jobs.ask("webhookEnded", { id: id(1), status: "failed" });
    }
    jobs.remind("tend");
    expect(jobs.forgotten).to.equal(1);
  });

  it("tend() sends no more at once than a transition may, whatever the webhooks are", () => {
    // JSON encodes each of these characters as six characters.
    const url = `https://x/${"\u0001".repeat(JOB_WEBHOOK_URL_CHARS_MAX - 10)}`;
    const secret = "s".repeat(2 * JOB_WEBHOOK_SECRET_CHARS_MAX);
    for (let number = 1; number <= 60; number++) jobs.create(number, { webhook: { url, secret } });
    jobs.sent = [];
    let ended = 0;
    while (ended < 60) {
      jobs.remind("tend");
      expect(JSON.stringify(jobs.sent).length).to.be.below(TRANSITION_SEND_BYTES_MAX);
      ended += jobs.taken("jobEnded").length;
      jobs.sent = [];
    }
    expect(ended).to.equal(60);
  });

  it("list() shows the newest first, every job once, by status, and refuses a foreign cursor", () => {
    for (let number = 1; number <= 25; number++) jobs.create(number);
    for (const number of [2, 4, 5]) jobs.complete(number);
    const first = jobs.ask("list", { count: 10 });
    jobs.create(26);
    const second = jobs.ask("list", { count: 10, cursor: first.cursor });
    const third = jobs.ask("list", { count: 10, cursor: second.cursor });
    expect(third.cursor).to.equal(undefined);
    const seen = [first, second, third].flatMap((page) => page.jobs.map((job) => job.id));
    expect(seen).to.deep.equal(Array.from({ length: 25 }, (_, index) => id(25 - index)));
    const completed = jobs.ask("list", { count: 2, status: "completed" });
    expect(completed.jobs.map((job) => job.id)).to.deep.equal([id(5), id(4)]);
    const rest = jobs.ask("list", { count: 2, status: "completed", cursor: completed.cursor });
    expect(rest.jobs.map((job) => job.id)).to.deep.equal([id(2)]);
    for (const cursor of ["x", "-1", "99999", "26"]) {
      const refused = refusal(() => jobs.ask("list", { count: 1, cursor }));
      expect(refused.code, cursor).to.equal("invalid_request");
    }
  });

  it("list() returns fewer jobs than the limit if they do not fit a reply", () => {
    const faults = Array(20).fill({ pointer: "é".repeat(256), message: "\u0001".repeat(256) });
    const error = { code: "invalid_request", message: "\u0001".repeat(2_000), details: { faults } };
    jobs.fill(100, { status: "failed", endedAt: jobs.now, error });
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = jobs.ask("list", { count: 100, cursor });
      expect(Buffer.byteLength(JSON.stringify(page))).to.be.below(MESSAGE_BYTES_MAX);
      seen.push(...page.jobs.map((job) => job.id));
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect(seen).to.deep.equal(Array.from({ length: 100 }, (_, index) => id(100 - index)));
  });

  it("the stored state loads again", () => {
    jobs.create(1, { webhook: WEBHOOK });
    jobs.begin(1);
    jobs.create(2);
    jobs.complete(2);
    const again = (value: unknown) => JSON.parse(JSON.stringify(value));
    expect(RenderJobsState.parse(again(jobs.state))).to.deep.equal(jobs.state);
    for (const row of jobs.rows.values()) {
      expect(RenderJobRow.parse(again(row))).to.deep.equal(row);
    }
  });
});
