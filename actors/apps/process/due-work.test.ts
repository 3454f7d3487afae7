import { expect } from "chai";
import { OUTGOING_SECRETS_MAX } from "../../../schemas/apps/limits.ts";
import { REMINDER_AT_MAX } from "../../../schemas/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "../package/testing/memory-host.ts";

const CODE = `
import { Agent } from "trunkline/agents";
export class Worker extends Agent<any> {
  onStart() { this.sql\`CREATE TABLE IF NOT EXISTS done (id INTEGER PRIMARY KEY, what TEXT)\`; }
  note(what) { this.sql\`INSERT INTO done (what) VALUES (\${JSON.stringify(what)})\`; }
  done() { return this.sql\`SELECT what FROM done ORDER BY id\`.map(({ what }) => JSON.parse(what)); }
  tick(payload, schedule) { this.note(["tick", payload, schedule.type]); }
  fails(payload, item) { this.note(["fails", payload, item.attempts]); throw new Error("always"); }
  failsOnce(payload, item) { if (item.attempts === 1) throw new Error("once"); this.note(["worked", payload]); }
  async slowly(payload) { await new Promise((resolve) => setTimeout(resolve, payload.ms)); this.note(["slowly", payload.name]); }
  async asks(name) { await fetch("https://elsewhere.example/" + name); this.note(["asked", name]); }
  held = Promise.withResolvers();
  async waits(name) { await this.held.promise; this.note(["waited", name]); }
  letGo() { this.held.resolve(); }
  async outside(payload, context) {
    this.note(["begun", payload, context.attempt]);
    await fetch("https://elsewhere.example/");
    this.note(["ended", payload]);
    return { of: payload };
  }
  async hangs(payload, { signal }) { await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))); }
  onError(error) { this.note(["error", error.message]); }
  plan(when, callback, payload, options) { return this.schedule(when instanceof Date ? when : when, callback, payload, options); }
  every(seconds, callback, payload, options) { return this.scheduleEvery(seconds, callback, payload, options); }
  plans(criteria) { return this.getSchedules(criteria); }
  items() { return this.getQueue(); }
  put(callback, payload, options) { return this.queue(callback, payload, options); }
  async putAndThrow(payload) { await this.queue("slowly", payload); throw new Error("after"); }
  waitFor(id, options) { return this.waitForSubmission(id, options); }
  async twice(fails) { let tries = 0; return this.retry((attempt) => { tries += 1; if (attempt <= fails) throw new Error("try " + attempt); return tries; }, { baseDelayMs: 1, maxDelayMs: 2 }); }
  hook(secret = "s") { return this.webhook("https://receiver.example/in", { a: 1 }, { secret }); }
  async alive() { const release = await this.keepAlive(); void this.held.promise.then(() => { this.note("released"); release(); }); }
}
export class Early extends Agent<any> {
  prepared = Promise.withResolvers();
  closed = Promise.withResolvers();
  constructor(context, env) { super(context, env); context.waitUntil(this.prepared.promise); }
  onClose() { return this.closed.promise; }
  end(name) { this[name].resolve(); }
}
`;

describe("an app's process: schedules, queue and submissions", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  let count = 0;
  const fresh = () => {
    count += 1;
    return `Worker/${count}`;
  };
  const start = (options: Partial<Parameters<typeof MemoryHost.start>[0]> = {}) =>
    MemoryHost.start({
      code: CODE,
      agents: [{ binding: "Worker", className: "Worker" }],
      operate: async () => ({ type: "answer", answer: { status: 200, headers: [] } }),
      ...options,
    });
  before(async () => {
    host = await start();
  });
  after(() => host.stop());

  const done = (key: string, at = host) => at.invoke(key, "done") as Promise<unknown[]>;
  const error = async (turn: Promise<unknown>): Promise<string> => {
    const outcome = await turn.then(
      () => "nothing",
      ({ message }: Error) => message,
    );
    return outcome;
  };

  describe("schedules", () => {
    it("a delay, a date and an interval come when they are due", async () => {
      const key = fresh();
      const planned = await host.invoke(key, "plan", 0.05, "tick", { n: 1 });
      expect(planned).to.deep.include({
        callback: "tick",
        payload: { n: 1 },
        type: "delayed",
        delayInSeconds: 0.05,
      });
      await host.invoke(key, "plan", new Date(Date.now() + 80), "tick", 2);
      const every = (await host.invoke(key, "every", 0.2, "tick", 3)) as { id: string };
      await until("all came", async () => (await done(key)).length >= 4);
      expect((await done(key)).slice(0, 4)).to.deep.equal([
        ["tick", { n: 1 }, "delayed"],
        ["tick", 2, "scheduled"],
        ["tick", 3, "interval"],
        ["tick", 3, "interval"],
      ]);
      expect(await host.invoke(key, "plans")).to.have.length(1);
      expect(await host.invoke(key, "cancelSchedule", every.id)).to.equal(true);
      expect(await host.invoke(key, "cancelSchedule", every.id)).to.equal(false);
    });

    it("cron is made once for a callback, an expression and a payload", async () => {
      const key = fresh();
      const ids = await Promise.all(
        [1, 1, 2].map((payload) => host.invoke(key, "plan", "*/5 * * * *", "tick", payload)),
      );
      expect(new Set(ids.map((plan) => (plan as { id: string }).id)).size).to.equal(2);
      host.close(key);
      const again = (await host.invoke(key, "plan", "*/5 * * * *", "tick", 1)) as {
        id: string;
        time: number;
      };
      expect(again.id).to.equal((ids[0] as { id: string }).id);
      expect(again.time % 300).to.equal(0);
      expect(await host.invoke(key, "plans", { type: "cron" })).to.have.length(2);
      expect(await host.invoke(key, "plans", { timeRange: { end: new Date() } })).to.have.length(0);
    });

    it("a delay starts again each time, unless that is switched off", async () => {
      const key = fresh();
      for (let time = 0; time < 2; time += 1) {
        await host.invoke(key, "plan", 100, "tick", 1);
        await host.invoke(key, "plan", 200, "tick", 2, { idempotent: true });
      }
      expect(await host.invoke(key, "plans")).to.have.length(3);
    });

    it("a schedule that keeps failing is tried as often as it says, then kept as failed", async () => {
      const key = fresh();
      const retry = { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 2 };
      await host.invoke(key, "plan", 0, "fails", "x", { retry });
      await until(
        "it failed",
        async () =>
          ((await host.invoke(key, "plans", { status: "failed" })) as unknown[]).length === 1,
      );
      expect(await done(key)).to.deep.equal([
        ["fails", "x", 1],
        ["fails", "x", 2],
        ["error", "always"],
      ]);
      expect(await host.invoke(key, "plans")).to.deep.equal([]);
    });

    it("the alarm is set before the record that needs it, and not again if it rings in time", async () => {
      const key = fresh();
      const soon = Date.now() + 600_000;
      await host.invoke(key, "plan", new Date(soon + 3_600_000), "tick", 1);
      expect(host.logs.get(key)?.wakeAt).to.equal(soon + 3_600_000);
      await host.invoke(key, "plan", new Date(soon + 7_200_000), "tick", 2);
      expect(host.logs.get(key)?.wakeAt).to.equal(soon + 3_600_000);
      const { id } = (await host.invoke(key, "plan", new Date(soon), "tick", 3)) as { id: string };
      expect(host.logs.get(key)?.wakeAt).to.equal(soon);
      await host.invoke(key, "cancelSchedule", id);
      for (const plan of (await host.invoke(key, "plans")) as { id: string }[]) {
        await host.invoke(key, "cancelSchedule", plan.id);
      }
      expect(host.logs.get(key)?.wakeAt).to.equal(null);
    });

    it("an alarm a little later covers near work", async () => {
      const key = fresh();
      const before = Date.now();
      await host.invoke(key, "plan", 5, "tick", 1);
      expect(host.logs.get(key)?.wakeAt).to.be.within(before + 10_000, Date.now() + 20_000);
    });

    it("an alarm that rings sets the next", async () => {
      const key = fresh();
      // The alarm for work that is due within ten seconds is set for another time, so this work is due later.
      const at = Date.now() + 60_000;
      await host.invoke(key, "plan", new Date(at), "tick", 1);
      expect(host.logs.get(key)?.wakeAt).to.equal(at);
      await host.turn(key, { type: "wake" });
      const log = host.logs.get(key);
      expect(log?.wakeAt).to.be.at.least(at);
    });

    it("an alarm without work, or too early, sets the next due time again", async () => {
      const key = fresh();
      const at = Date.now() + 600_000;
      await host.invoke(key, "plan", new Date(at), "tick", 1);
      const log = host.logs.get(key);
      if (log) log.wakeAt = undefined;
      await host.turn(key, { type: "wake" });
      expect(host.logs.get(key)?.wakeAt).to.equal(at);
    });

    it("an alarm that should have rung long ago does not count", async () => {
      let key = "";
      // The work is due just after the limit below which an alarm is set for another time. If the process receives
      // the call too late, the loop tries again.
      const first = await until("the alarm is set for when it is due", async () => {
        key = fresh();
        const at = Date.now() + 10_100;
        await host.invoke(key, "plan", new Date(at), "tick", 1);
        return host.logs.get(key)?.wakeAt === at && at;
      });
      const hasCome = async () => (await done(key)).length === 1;
      await until("it should have rung", hasCome, 30_000);
      expect(Date.now()).to.be.at.least(first);
      expect(host.logs.get(key)?.wakeAt).to.equal(first);
      const next = Date.now() + 600_000;
      await host.invoke(key, "plan", new Date(next), "tick", 2);
      expect(host.logs.get(key)?.wakeAt).to.equal(next);
    });

    it("a delay of parts of a millisecond sets an alarm that can be set", async () => {
      const key = fresh();
      await host.invoke(key, "plan", 600.00015, "tick", 1);
      expect(host.logs.get(key)?.wakeAt).to.satisfy(Number.isInteger);
    });

    it("the last date that a reminder can have sets an alarm", async () => {
      const key = fresh();
      await host.invoke(key, "plan", new Date(REMINDER_AT_MAX), "tick", 1);
      expect(host.logs.get(key)?.wakeAt).to.equal(REMINDER_AT_MAX);
    });

    const bad: [unknown, RegExp][] = [
      ["61 * * * *", /no cron expression/],
      ["0 0 31 2 *", /never due/],
      [-1, /the delay is -1/],
      [new Date(Number.NaN), /the date is invalid/],
      [new Date(REMINDER_AT_MAX + 1), /date is 9999-12-31T00:00:00.001Z, expected one up to 9999/],
      [new Date(8.64e15), /date is \+275760-09-13T00:00:00.000Z, expected one up to 9999-12-31T/],
      ["0 0 12 31 12 * 9999", /never due/],
      [undefined, /expected seconds, a Date or a cron/],
    ];
    for (const [when, message] of bad) {
      it(`refuses ${String(when)}`, async () => {
        expect(await error(host.invoke("Worker/bad", "plan", when, "tick"))).to.match(message);
      });
    }

    it("refuses methods that are not there, and tries that make no sense", async () => {
      expect(await error(host.invoke("Worker/bad", "plan", 1, "missing"))).to.equal(
        "this.missing is not a function",
      );
      expect(await error(host.invoke("Worker/bad", "every", 0, "tick"))).to.match(
        /intervalSeconds is 0/,
      );
      const retry = { maxAttempts: 0 };
      expect(await error(host.invoke("Worker/bad", "plan", 1, "tick", 1, { retry }))).to.match(
        /maxAttempts is 0/,
      );
    });
  });

  describe("the queue", () => {
    it("runs one after the other, and tries again before it goes on", async () => {
      const key = fresh();
      await host.invoke(key, "put", "slowly", { ms: 50, name: "a" });
      await host.invoke(key, "put", "failsOnce", "b");
      await host.invoke(key, "put", "slowly", { ms: 1, name: "c" });
      await until(
        "all are through",
        async () => ((await host.invoke(key, "items")) as unknown[]).length === 0,
      );
      expect(await done(key)).to.deep.equal([
        ["slowly", "a"],
        ["worked", "b"],
        ["slowly", "c"],
      ]);
    });

    it("an item that keeps failing is kept, seen, and can be tried again or taken out", async () => {
      const key = fresh();
      const retry = { maxAttempts: 3, baseDelayMs: 1, maxDelayMs: 2 };
      const id = (await host.invoke(key, "put", "fails", "x", { retry })) as string;
      await host.invoke(key, "put", "slowly", { ms: 1, name: "next" });
      await until("the next is through", async () => (await done(key)).length === 5);
      const [item] = (await host.invoke(key, "items")) as object[];
      expect(item).to.deep.include({
        id,
        callback: "fails",
        payload: "x",
        attempts: 3,
        status: "failed",
        error: "Error: always",
      });
      expect(await host.invoke(key, "retryQueued", id)).to.equal(true);
      await until("it was tried again", async () => (await done(key)).length === 9);
      expect(await host.invoke(key, "dequeue", id)).to.equal(true);
      expect(await host.invoke(key, "items")).to.deep.equal([]);
    });

    it("an item with an id that is there takes its place", async () => {
      const key = fresh();
      await host.invoke(key, "put", "waits", "first");
      for (const name of ["b", "c"])
        await host.invoke(key, "put", "slowly", { ms: 1, name }, { id: "same" });
      expect(await host.invoke(key, "items")).to.have.length(2);
      await host.invoke(key, "letGo");
      await until("all are through", async () => (await done(key)).length === 2);
      expect((await done(key))[1]).to.deep.equal(["slowly", "c"]);
    });

    it("items that a throwing turn has queued run all the same", async () => {
      const key = fresh();
      expect(await error(host.invoke(key, "putAndThrow", { ms: 1, name: "a" }))).to.equal("after");
      await until("it ran", async () => (await done(key)).length === 1);
    });

    it("survives a crash, with the rest of its work", async () => {
      const answer = { type: "answer" as const, answer: { status: 200, headers: [] } };
      let answered = 0;
      // The process ends while it runs the second item.
      const own = await start({
        operate: () => (answered++ === 0 ? Promise.resolve(answer) : new Promise(() => {})),
      });
      let next: MemoryHost | undefined;
      try {
        for (const name of ["a", "b", "c"]) await own.invoke("Worker/q", "put", "asks", name);
        await until("the second is under way", () => own.operations.length === 2);
        expect(await done("Worker/q", own)).to.deep.equal([["asked", "a"]]);
        expect(own.logs.get("Worker/q")?.wakeAt).to.be.a("number");
        next = await own.restart({ operate: async () => answer });
        await next.turn("Worker/q", { type: "wake" });
        await until("the rest is through", async () => (await done("Worker/q", next)).length >= 3);
        expect(await done("Worker/q", next)).to.deep.equal([
          ["asked", "a"],
          ["asked", "b"],
          ["asked", "c"],
        ]);
      } finally {
        await own.stop();
        await next?.stop();
      }
    });
  });

  describe("submissions", () => {
    it("are accepted once, run once, and keep their result", async () => {
      const key = fresh();
      const options = { idempotencyKey: "k", metadata: { m: 1 } };
      const first = (await host.invoke(key, "submit", "outside", "p", options)) as {
        submissionId: string;
      };
      expect(first).to.deep.include({
        accepted: true,
        status: "pending",
        idempotencyKey: "k",
        metadata: { m: 1 },
      });
      const second = await host.invoke(key, "submit", "outside", "other", options);
      expect(second).to.deep.include({ accepted: false, submissionId: first.submissionId });
      const { submissionId } = first;
      const third = await host.invoke(key, "submit", "outside", "another", { submissionId });
      expect(third).to.deep.include({ accepted: false, submissionId, idempotencyKey: "k" });
      const ended = await host.invoke(key, "waitFor", first.submissionId);
      expect(ended).to.deep.include({ status: "completed", result: { of: "p" }, attempts: 1 });
      expect(await done(key)).to.deep.equal([
        ["begun", "p", 1],
        ["ended", "p"],
      ]);
      expect(await host.invoke(key, "listSubmissions", { status: "completed" })).to.have.length(1);
      expect(await host.invoke(key, "cancelSubmission", first.submissionId)).to.deep.equal({
        outcome: "already_terminal",
      });
      expect(await host.invoke(key, "deleteSubmission", first.submissionId)).to.equal(true);
      expect(await host.invoke(key, "inspectSubmission", first.submissionId)).to.equal(undefined);
    });

    it("can be cancelled, and hear of it", async () => {
      const key = fresh();
      const { submissionId } = (await host.invoke(key, "submit", "hangs")) as {
        submissionId: string;
      };
      expect(await error(host.invoke(key, "waitFor", submissionId, { timeoutMs: 20 }))).to.match(
        /not ended within 20 ms/,
      );
      expect(await host.invoke(key, "cancelSubmission", submissionId)).to.deep.equal({
        outcome: "cancelled",
      });
      expect(await host.invoke(key, "waitFor", submissionId)).to.deep.include({
        status: "aborted",
      });
      expect(await host.invoke(key, "cancelSubmission", "none")).to.deep.equal({
        outcome: "not_found",
      });
      await until("it need not stay", () => host.idle.get(key));
    });

    it("report their failure after all of their tries", async () => {
      const key = fresh();
      const retry = { maxAttempts: 2, baseDelayMs: 1, maxDelayMs: 2 };
      const { submissionId } = (await host.invoke(key, "submit", "fails", 1, { retry })) as {
        submissionId: string;
      };
      const ended = await host.invoke(key, "waitFor", submissionId);
      expect(ended).to.deep.include({ status: "error", attempts: 2, error: "Error: always" });
    });

    for (const [name, retry, status, attempts] of [
      ["stay interrupted", undefined, "interrupted", 1],
      ["are tried again where their options say so", { maxAttempts: 3 }, "completed", 2],
    ] as const) {
      it(`a crash in the middle: they ${name}`, async () => {
        const held = Promise.withResolvers<never>();
        const own = await start({ operate: () => held.promise });
        let next: MemoryHost | undefined;
        try {
          await own.invoke("Worker/s", "submit", "outside", "p", {
            submissionId: "s",
            ...(retry && { retry }),
          });
          await until("it is in the middle", () => own.operations.length === 1);
          next = await own.restart({
            operate: async () => ({ type: "answer", answer: { status: 200, headers: [] } }),
          });
          expect(await next.invoke("Worker/s", "waitFor", "s")).to.deep.include({
            status,
            attempts,
          });
          const began = (await done("Worker/s", next)).filter(
            (what) => (what as string[])[0] === "begun",
          );
          expect(began).to.have.length(attempts);
        } finally {
          await own.stop();
          await next?.stop();
        }
      });
    }
  });

  it("retry() tries again, and gives the last error", async () => {
    expect(await host.invoke("Worker/r", "twice", 2)).to.equal(3);
    expect(await error(host.invoke("Worker/r", "twice", 3))).to.equal("try 3");
  });

  it("webhook() is an operation with an id of its own", async () => {
    const own = await start({ operate: async () => ({ type: "nothing" }) });
    try {
      const id = await own.invoke("Worker/w", "hook");
      expect(own.operations).to.deep.equal([
        {
          type: "webhook",
          id,
          url: "https://receiver.example/in",
          payload: '{"a":1}',
          secrets: ["s"],
        },
      ]);
      const most = Array.from({ length: OUTGOING_SECRETS_MAX }, (_, index) => `s${index}`);
      await own.invoke("Worker/w", "hook", most);
      expect(own.operations.at(-1)).to.deep.include({ secrets: most });
      expect(await error(own.invoke("Worker/w", "hook", [...most, "x"]))).to.equal(
        "Cannot send a webhook: expected at most 3 secrets",
      );
    } finally {
      await own.stop();
    }
  });

  it("keepAlive() keeps the agent until it is released", async () => {
    const key = fresh();
    await host.invoke(key, "alive");
    expect(host.idle.get(key)).to.not.equal(true);
    await host.invoke(key, "letGo");
    await until("it is released", () => host.idle.get(key));
    expect(await done(key)).to.deep.equal(["released"]);
  });

  it("work that begins outside of turns keeps the agent: in a constructor, and for a lost socket", async () => {
    const key = "Early/one";
    await host.connect(key, { id: "c", number: 1, gateway: "g" });
    expect(host.idle.get(key)).to.equal(false);
    await host.invoke(key, "end", "prepared");
    await until("the constructor's work has ended", () => host.idle.get(key));
    host.gone(key, "g", [1]);
    await until("the agent is at work", () => host.idle.get(key) === false);
    await host.invoke(key, "end", "closed");
    await until("the socket is handled", () => host.idle.get(key));
  });
});
