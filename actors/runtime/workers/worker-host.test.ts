import { EventEmitter, once } from "node:events";
import { setImmediate as immediate, setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import pino from "pino";
import { envelope } from "../../../schemas/contract.ts";
import {
  BUS_REQUEST_MS,
  CHUNK_BYTES,
  CLOCK_SKEW_MS_MAX,
  LANE_TASKS_MAX,
  TASK_ACK_WAIT_MS,
  TASK_END_MS,
  TASK_RUN_MS_MAX,
  TASK_TRIES_MAX,
} from "../../../schemas/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, STREAMS, shardOf, taskSubject } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { type EchoOrders, echoWorker, patternAt } from "../../../scripts/testing/echo-worker.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { Listeners } from "../bus/bus.ts";
import type { BusActorClient } from "../calls/actor-client.ts";
import { systemClock } from "../lib/clock.ts";
import { listDeadLetters, retryDeadLetter } from "../mail/dead-letters.ts";
import { ServiceCounts } from "../observe/service-counts.ts";
import type { TaskRun } from "../tasks/task-client.ts";
import { CallerGone, CHUNKS_IN_FLIGHT } from "./task-caller.ts";
import { TASK_HEARTBEAT_MS } from "./task-lease.ts";
import { TaskTaken } from "./task-news.ts";
import { WorkerHost } from "./worker-host.ts";

const MIB = 1024 * 1024;

describe("WorkerHost", function () {
  this.timeout(600_000);
  let world: World;
  let worker: WorkerHost;
  /** A client that does not share `listeners` with the worker, as if it ran in another process. */
  let client: BusActorClient;
  /** A client that shares `listeners` with the worker, as if it ran in the worker's process. */
  let neighbour: BusActorClient;
  const listeners: Listeners = new Map();
  const never = new AbortController().signal;
  before(async () => {
    world = await startWorld({ definitions: [probeActor], tasks: [echo] });
    await world.host();
    neighbour = await world.newClient({ listeners });
  });
  beforeEach(() => {
    client = world.client;
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(async () => {
    await worker.stop(0);
    await until("the lanes are empty", async () => (await world.count(STREAMS.tasks)) === 0);
  });

  const work = async (orders: EchoOrders = {}) => {
    worker = await world.worker([echoWorker(orders)], { listeners });
  };
  const say = (text: string, input: object = {}, options: object = {}) =>
    client.run(
      echo,
      "key",
      "say",
      { text, ...input },
      {
        deadlineMs: 300_000,
        signal: never,
        ...options,
      },
    );
  const drawl = (text: string) =>
    world.client.run(echo, "key", "drawl", { text }, { deadlineMs: 60_000, signal: never });
  const ask = (key: string, texts: string[], failing = 0) =>
    world.client.call(probe, key, "ask", { texts, failing });
  const logged = (key: string, count: number) =>
    until(
      `${key} heard ${count}`,
      async () => {
        const { log } = await world.client.call(probe, key, "get", {});
        return log.length >= count && log;
      },
      60_000,
    );
  /** Reads all bytes, checks every byte, and returns their number. */
  async function size({ chunks }: TaskRun<unknown>): Promise<number> {
    let bytes = 0;
    for await (const chunk of chunks) {
      if (!patternAt(bytes, chunk.length).equals(chunk)) throw new Error(`wrong byte at ${bytes}`);
      bytes += chunk.length;
    }
    return bytes;
  }

  for (const inOneProcess of [false, true]) {
    describe(inOneProcess ? "in its asker's process" : "in another process", () => {
      beforeEach(() => {
        if (inOneProcess) client = neighbour;
      });

      it("runs a task for a waiting caller, with or without bytes", async () => {
        await work();
        for (const bytes of [0, 1, 1_000, 3 * MIB + 1]) {
          const run = await say("a", { bytes, pieceBytes: 300_001 });
          expect(run.reply).to.deep.equal({ text: "a", attempt: 1 });
          expect(await size(run)).to.equal(bytes);
        }
      });

      it("takes inputs at CHUNK_BYTES, past it, and of 50 MB", async () => {
        await work();
        const around = CHUNK_BYTES - JSON.stringify({ text: "" }).length;
        for (const length of [around, around + 1, 50 * MIB]) {
          // The large input itself arrives, but the echo of it is too large for a reply in one message.
          const error = await say("x".repeat(length)).then(size, (refused: Error) => refused);
          if (length < MIB) expect(error).to.equal(0);
          else expect(error).to.be.instanceOf(Error);
        }
        const big = await say("a", { padding: "é".repeat(25 * MIB) });
        expect(big.reply).to.deep.equal({ text: "a", attempt: 1 });
        await size(big);
      });

      it("holds bytes back for a slow reader, and delivers them all in order", async () => {
        let made = 0;
        await work({
          made: (bytes) => {
            made = bytes;
          },
        });
        const bytes = 30 * MIB;
        const pieceBytes = 2 * CHUNK_BYTES;
        const run = await say("slow", { bytes, pieceBytes });
        let seen = 0;
        for await (const chunk of run.chunks) {
          if (!patternAt(seen, chunk.length).equals(chunk))
            throw new Error(`wrong byte at ${seen}`);
          // The reader pauses for longer than the bus waits for an acknowledgement. The worker then sends the same
          // bytes again, not new bytes.
          if (seen === 10 * CHUNK_BYTES) await pause(BUS_REQUEST_MS + 600);
          expect(made - seen).to.be.at.most(CHUNKS_IN_FLIGHT * CHUNK_BYTES + 2 * pieceBytes);
          seen += chunk.length;
        }
        expect(seen).to.equal(bytes);
      });

      it("ends a task whose reader leaves in the middle of the answer", async () => {
        await work({ slots: { fast: 1 } });
        const run = await say("left", { bytes: 30 * MIB });
        for await (const chunk of run.chunks) if (chunk.length > 0) break;
        // The slot is free again.
        await size(await say("next"));
      });

      it("goes on when nats-server is restarted in the middle of an answer", async () => {
        await work();
        const bytes = 30 * MIB;
        const run = await say("interrupted", { bytes });
        let seen = 0;
        for await (const chunk of run.chunks) {
          if (!patternAt(seen, chunk.length).equals(chunk))
            throw new Error(`wrong byte at ${seen}`);
          seen += chunk.length;
          if (seen === 32 * chunk.length) await world.nats?.restart();
        }
        expect(seen).to.equal(bytes);
        // The worker's report of completion may be lost with the server. The task is then delivered once more.
        const isOver = async () => (await world.count(STREAMS.tasks)) === 0;
        await until("the task is over", isOver, 10 * TASK_ACK_WAIT_MS);
      });
    });
  }

  it("gives each lane its own slots, so that no lane waits for another", async () => {
    let running = 0;
    let most = 0;
    const gate = Promise.withResolvers<void>();
    await work({
      slots: { fast: 2, slow: 1 },
      async before(text) {
        if (!text.startsWith("held")) return;
        running += 1;
        most = Math.max(most, running);
        await gate.promise;
        running -= 1;
      },
    });
    const held = Array.from({ length: 5 }, (_, index) => say(`held ${index}`).then(size));
    await until("two run", () => running === 2);
    expect((await drawl("free")).reply.text).to.equal("free");
    expect(most).to.equal(2);
    gate.resolve();
    await Promise.all(held);
    expect(most).to.equal(2);
  });

  it("keeps a task that runs longer than a worker may be silent", async () => {
    const attempts: number[] = [];
    await work({
      async before(_, { attempt }) {
        attempts.push(attempt);
        await pause(TASK_ACK_WAIT_MS + 1_500);
      },
    });
    const run = await say("long");
    await size(run);
    expect(attempts).to.deep.equal([1]);
  });

  it("reports once to the asking actor that a task is done, refused, or given up after TASK_TRIES_MAX", async () => {
    const attempts = new Map<string, number>();
    await work({
      slots: { slow: 3 },
      before: (text, { attempt }) => void attempts.set(text, attempt),
    });
    await ask("done", ["a", "b"]);
    await ask("late", ["last try"], TASK_TRIES_MAX - 1);
    await ask("gone", ["given up"], TASK_TRIES_MAX);
    await ask("refused", ["no"], -1);
    expect([...(await logged("done", 2))].sort()).to.deep.equal(["a", "b"]);
    expect(await logged("refused", 1)).to.deep.equal(["no: conflict"]);
    expect(await logged("late", 1)).to.deep.equal(["last try"]);
    expect(await logged("gone", 1)).to.deep.equal(["given up: internal_error"]);
    expect(attempts.get("last try")).to.equal(TASK_TRIES_MAX);
    expect(attempts.get("given up")).to.equal(TASK_TRIES_MAX);
    expect(attempts.get("no")).to.equal(1);
  });

  it("shows operators a task that failed at every try, once for each kind and key, and runs it again on demand", async () => {
    const attempts = new Map<string, number>();
    await work({
      slots: { slow: 1 },
      before: (text, { attempt }) => void attempts.set(text, attempt),
    });
    const before = (await Array.fromAsync(listDeadLetters(world.bus))).length;
    await ask("stuck", ["broken"], TASK_TRIES_MAX);
    expect(await logged("stuck", 1)).to.deep.equal(["broken: internal_error"]);
    await ask("stuck", ["broken"], TASK_TRIES_MAX);
    expect(await logged("stuck", 2)).to.have.length(2);
    await ask("fine", ["no"], -1);
    expect(await logged("fine", 1)).to.deep.equal(["no: conflict"]);
    const letters = (await Array.fromAsync(listDeadLetters(world.bus))).slice(before);
    expect(letters.map(({ address }) => address)).to.deep.equal(["echo.stuck"]);
    const [letter] = letters;
    if (!letter) throw new Error("no letter");
    expect(letter).to.include({ message: "tell", tries: TASK_TRIES_MAX });
    attempts.clear();
    await retryDeadLetter(world.bus, letter);
    await until("it ran again", () => attempts.get("broken") === TASK_TRIES_MAX);
    expect(await logged("stuck", 3)).to.have.length(3);
    const [again] = (await Array.fromAsync(listDeadLetters(world.bus))).slice(before);
    expect(again?.sequence).to.be.greaterThan(letter.sequence);
  });

  it("ends a task at its first worker when another worker has it", async () => {
    const reasons: unknown[] = [];
    const attempts: number[] = [];
    const orders: EchoOrders = {
      slots: { slow: 1 },
      async before(_, { attempt, signal }) {
        attempts.push(attempt);
        if (attempt > 1)
          return until("the first has ended", () => reasons.length > 0 || undefined).then(() => {});
        await new Promise<void>((resolve) => {
          signal.addEventListener("abort", () => {
            reasons.push(signal.reason);
            resolve();
          });
        });
        signal.throwIfAborted();
      },
    };
    // The first worker sends no heartbeats, as if it were suspended.
    const silent = {
      ...systemClock,
      wait: (ms: number, signal?: AbortSignal) =>
        systemClock.wait(ms === TASK_HEARTBEAT_MS ? 10 * TASK_ACK_WAIT_MS : ms, signal),
    };
    const parts = {
      bus: world.bus,
      logger: pino({ level: "silent" }),
      counts: new ServiceCounts(new Map()),
    };
    const first = new WorkerHost({ ...parts, clock: silent, definitions: [echoWorker(orders)] });
    first.start();
    await ask("taken", ["x"]);
    await until("the first has it", () => attempts.length === 1);
    await work(orders);
    expect(await logged("taken", 1)).to.deep.equal(["x"]);
    expect(attempts).to.deep.equal([1, 2]);
    expect(reasons[0]).to.be.instanceOf(TaskTaken);
    await first.stop(0);
  });

  it("ends a task after TASK_RUN_MS_MAX and not before, and goes on although the task ignores that", async () => {
    const clock = new SkippingClock();
    const counts = new ServiceCounts(new Map());
    const deaf = Promise.withResolvers<void>();
    const heard = Promise.withResolvers<AbortSignal>();
    const orders: EchoOrders = {
      slots: { slow: 1 },
      async before(text, { signal }) {
        if (text !== "deaf") return;
        heard.resolve(signal);
        await deaf.promise;
      },
    };
    const { bus } = world;
    const logger = pino({ level: "silent" });
    worker = new WorkerHost({ bus, definitions: [echoWorker(orders)], clock, logger, counts });
    worker.start();
    await ask("deaf", ["deaf"]);
    const signal = await heard.promise;
    clock.skip(TASK_RUN_MS_MAX - 5_000);
    await immediate();
    expect(signal.aborted).to.equal(false);
    clock.skip(5_000);
    await until("it is told", () => signal.aborted);
    expect(await logged("deaf", 1)).to.deep.equal(["deaf: deadline_exceeded"]);
    await ask("next", ["next"]);
    await logged("next", 1);
    deaf.resolve();
  });

  it("gives a task the time that its worker sets", async () => {
    const clock = new SkippingClock();
    const heard = Promise.withResolvers<AbortSignal>();
    const ended = Promise.withResolvers<void>();
    const orders: EchoOrders = {
      slots: { slow: 1 },
      async before(_text, { signal }) {
        heard.resolve(signal);
        await Promise.race([once(signal, "abort"), ended.promise]);
      },
    };
    const runMsMax = 3 * TASK_RUN_MS_MAX;
    const definitions = [{ ...echoWorker(orders), runMsMax }];
    const counts = new ServiceCounts(new Map());
    const logger = pino({ level: "silent" });
    worker = new WorkerHost({ bus: world.bus, definitions, clock, logger, counts });
    worker.start();
    await ask("long", ["long"]);
    const signal = await heard.promise;
    clock.skip(runMsMax - 5_000);
    await immediate();
    expect(signal.aborted).to.equal(false);
    clock.skip(5_000);
    await until("it is told", () => signal.aborted);
    ended.resolve();
    await logged("long", 1);
  });

  it("sends a task's messages once although the task is delivered twice", async () => {
    await work();
    const task = { id: "same", from: "test", key: "doubled", message: "tell" };
    const payload = JSON.stringify({ ...task, input: { text: "once", failing: 0 } });
    const jetstream = world.bus.jetstream.jetstream();
    for (let copies = 0; copies < 3; copies++) {
      await jetstream.publish(taskSubject("echo", "slow"), payload);
    }
    await until("all are done", async () => (await world.count(STREAMS.tasks)) === 0);
    await ask("doubled", ["after"]);
    expect(await logged("doubled", 2)).to.deep.equal(["once", "after"]);
  });

  it("sends durable results before the task ends, and once although a later try repeats them", async () => {
    const early = (text: string) => envelope(probe, "early", "note", { text });
    await work({
      async before(_, { attempt, send }) {
        // The order differs and another send lies between: repeated sends are recognized by their content.
        await send(attempt === 1 ? [early("a"), early("b")] : [early("c"), early("b"), early("a")]);
        await send([early("a")]);
        await send([early(`named ${attempt}`)], { id: "named" });
        expect((await logged("early", attempt === 1 ? 4 : 5)).length).to.equal(3 + attempt);
      },
    });
    await ask("early-asker", ["x"], 1);
    expect(await logged("early-asker", 1)).to.deep.equal(["x"]);
    expect(await logged("early", 5)).to.deep.equal(["a", "b", "a", "named 1", "c"]);
  });

  it("reports by call, and by mail if the call fails", async () => {
    const address = addressOf(probe.kind, "told");
    const mail = world.bus.connection.subscribe(mailIn(0).to(shardOf(address), address));
    const dead = world.bus.connection.subscribe("dead.>");
    const note = (input: object) => envelope(probe, "told", "note", input as { text: string });
    await work({
      async before(_, { tell }) {
        expect(await tell(note({ text: "a" }))).to.equal(true);
        expect(await logged("told", 1)).to.deep.equal(["a"]);
        expect(mail.getReceived()).to.equal(0);
        expect(await tell(note({ wrong: true }))).to.equal(false);
      },
    });
    await ask("told-asker", ["x"]);
    expect(await logged("told", 1)).to.deep.equal(["a"]);
    // The actor cannot read the mail either, so the mail becomes a dead letter for operators.
    await until("it is a dead letter", () => dead.getReceived() > 0);
    expect(mail.getReceived()).to.equal(1);
    for (const one of [mail, dead]) one.unsubscribe();
  });

  it("reports a finished task's messages to tell by call, and each by mail if the call fails", async () => {
    const address = addressOf(probe.kind, "told-last");
    const mail = world.bus.connection.subscribe(mailIn(0).to(shardOf(address), address));
    const note = (input: object) => envelope(probe, "told-last", "note", input as { text: string });
    const tells = [note({ text: "a" }), note({ wrong: 1 }), note({ wrong: 2 })];
    await work({ tells: () => tells });
    await drawl("x");
    expect(await logged("told-last", 1)).to.deep.equal(["a"]);
    await until("both that failed are mail", () => mail.getReceived() >= 2);
    expect(mail.getReceived()).to.equal(2);
    mail.unsubscribe();
  });

  it("sends what it still has to tell as mail when it stops, and its task is done", async () => {
    // No host runs in this world. The calls would take TELL_MS_MAX each.
    await using lonely = await startWorld({ definitions: [probeActor], tasks: [echo] });
    const tells = ["a", "b", "c", "d", "e"].map((text) =>
      envelope(probe, "away", "note", { text }),
    );
    const telling = await lonely.worker([echoWorker({ tells: () => tells })]);
    const options = { deadlineMs: 60_000, signal: never };
    const { chunks } = await lonely.client.run(echo, "key", "drawl", { text: "x" }, options);
    for await (const _ of chunks); // The task has answered then, and only reports.
    await telling.stop(0);
    expect(await lonely.count(STREAMS.mail)).to.equal(tells.length);
    await until("the task is done", async () => (await lonely.count(STREAMS.tasks)) === 0);
    await work();
  });

  it("reports by call alone, and rejects if the call fails", async () => {
    const address = addressOf(probe.kind, "called");
    const mail = world.bus.connection.subscribe(mailIn(0).to(shardOf(address), address));
    const note = (input: object) => envelope(probe, "called", "note", input as { text: string });
    let failed: unknown;
    await work({
      async before(_, { tellByCall }) {
        await tellByCall(note({ text: "a" }));
        expect(await logged("called", 1)).to.deep.equal(["a"]);
        failed = await tellByCall(note({ wrong: true })).catch((error: unknown) => error);
      },
    });
    await ask("called-asker", ["x"]);
    await logged("called-asker", 1);
    expect(failed).to.be.an("error");
    expect(mail.getReceived()).to.equal(0);
    mail.unsubscribe();
  });

  it("asks actors: a refusal ends the task, an unanswered call is repeated at the next try", async () => {
    let tries = 0;
    await work({
      async before(text, { attempt, call }) {
        tries = attempt;
        // A call so late is not answered.
        const deadlineMs = text === "late" && attempt === 1 ? -2 * CLOCK_SKEW_MS_MAX : 30_000;
        if (text === "refused") await call(probe, "asked", "refuse", { text });
        const { log } = await call(probe, "asked", "append", { text }, { deadlineMs });
        expect(log).to.include(text);
      },
    });
    expect((await drawl("well")).reply).to.deep.equal({ text: "well", attempt: 1 });
    expect((await refusalOf(drawl("refused"))).code).to.equal("rate_limited");
    expect(tries).to.equal(1);
    expect((await drawl("late")).reply).to.deep.equal({ text: "late", attempt: 2 });
    const { log } = await world.client.call(probe, "asked", "get", {});
    expect(log).to.deep.equal(["well", "late"]);
  });

  it("gives up a task under which TASK_TRIES_MAX workers died", async () => {
    // Each pull stands for a worker that died: it is returned to the queue without a result.
    await ask("deadly", ["poison"]);
    await until("it waits", async () => (await world.count(STREAMS.tasks)) === 1);
    const consumer = await world.bus.jetstream
      .jetstream()
      .consumers.get(STREAMS.tasks, "echo-slow");
    for (let death = 0; death < TASK_TRIES_MAX; death++) {
      const message = await consumer.next({ expires: 20_000, bind: true });
      message?.nak();
    }
    await work();
    expect(await logged("deadly", 1)).to.deep.equal(["poison: internal_error"]);
  });

  it("drops an unreadable task, and refuses a task that no worker knows", async () => {
    await work();
    await world.bus.jetstream.jetstream().publish(taskSubject("echo", "fast"), "{");
    const unknown = {
      kind: "echo",
      lanes: ["fast"],
      messages: { shout: { ...echo.messages.say } },
    };
    const error = await refusalOf(
      world.client.run(
        unknown,
        "key",
        "shout",
        { text: "a" },
        { deadlineMs: 60_000, signal: never },
      ),
    );
    expect(error).to.include({ code: "invalid_request" });
    expect(error.message).to.equal('Cannot run task: echo has no "shout"');
    const invalid = await refusalOf(say("a", { bytes: "x" }));
    expect(invalid.details.faults?.map(({ pointer }) => pointer)).to.deep.equal(["/bytes"]);
  });

  it("withdraws a task that has not started, and ends a running one", async () => {
    const started = Promise.withResolvers<AbortSignal>();
    const waiting = new AbortController();
    await work({ slots: {} });
    const run = refusalOf(say("waiting", {}, { signal: waiting.signal }));
    await until("it waits", async () => (await world.count(STREAMS.tasks)) === 1);
    waiting.abort();
    expect((await run).code).to.equal("cancelled");
    await until("it is gone", async () => (await world.count(STREAMS.tasks)) === 0);

    await work({
      slots: { fast: 1 },
      async before(_, { signal }) {
        started.resolve(signal);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        signal.throwIfAborted();
      },
    });
    const leaving = new AbortController();
    const running = refusalOf(say("running", {}, { signal: leaving.signal }));
    const signal = await started.promise;
    leaving.abort();
    expect((await running).code).to.equal("cancelled");
    await until("the worker hears of it", () => signal.aborted);
    const before = refusalOf(say("before", {}, { signal: AbortSignal.abort() }));
    expect((await before).code).to.equal("cancelled");
  });

  it("refuses at the deadline: unavailable if no worker started, else deadline_exceeded", async () => {
    await work({ slots: {} });
    const idle = await refusalOf(say("idle", {}, { deadlineMs: 200 }));
    expect(idle).to.include({ code: "unavailable" });
    await until("it is gone", async () => (await world.count(STREAMS.tasks)) === 0);
    const started = Promise.withResolvers<void>();
    await work({
      slots: { fast: 1 },
      before(_, { signal }) {
        started.resolve();
        return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
      },
    });
    const clock = new SkippingClock({ stands: true });
    client = await world.newClient({ clock });
    const deadlineMs = 60_000;
    const late = refusalOf(say("late", {}, { deadlineMs }));
    await started.promise;
    clock.skip(deadlineMs);
    expect(await late).to.include({ code: "deadline_exceeded" });
    // A worker that stops before it learns of the deadline would hand the task back.
    await until("it is given up", async () => (await world.count(STREAMS.tasks)) === 0);
  });

  it("runs a task whose caller waits, although the time of day has jumped past the deadline", async () => {
    await work();
    const behindMs = 3_600_000;
    const clock = { ...systemClock, now: () => systemClock.now() - behindMs };
    client = await world.newClient({ clock });
    expect((await say("in time")).reply).to.deep.equal({ text: "in time", attempt: 1 });
  });

  it("drops a task whose caller died before it started, whatever its deadline", async () => {
    const texts: string[] = [];
    await work({ before: (text) => void texts.push(text) });
    for (const deadlineAt of [Date.now() + 60_000, Date.now() - 60_000]) {
      const caller = { inbox: "_INBOX.nobody" };
      const task = {
        id: String(deadlineAt),
        from: "x",
        key: "k",
        message: "say",
        caller,
        deadlineAt,
      };
      const payload = JSON.stringify({ ...task, input: { text: "lost" } });
      await world.bus.jetstream.jetstream().publish(taskSubject("echo", "fast"), payload);
    }
    await until("both are gone", async () => (await world.count(STREAMS.tasks)) === 0);
    expect(texts).to.deep.equal([]);
  });

  it("refuses one more than LANE_TASKS_MAX at once, while other lanes and actors go on", async () => {
    await work({ slots: {} });
    const task = { from: "x", key: "filler", message: "tell", input: { text: "f", failing: 0 } };
    const subject = taskSubject("echo", "slow");
    const jetstream = world.bus.jetstream.jetstream();
    // Each write waits for all writes before it, so a thousand at once could exceed the time limit of a request.
    for (let from = 0; from < LANE_TASKS_MAX; from += 50) {
      const some = Array.from({ length: 50 }, (_, index) =>
        JSON.stringify({ ...task, id: `f${from + index}` }),
      );
      await Promise.all(some.map((one) => jetstream.publish(subject, one, { timeout: 60_000 })));
    }
    // If the task were queued, it would end at its deadline with another code.
    const full = await refusalOf(drawl("one more"));
    expect(full).to.include({ code: "queue_full" });
    expect(full.details.retryAfterS).to.be.above(0);
    // The actor's task waits in the outbox of its shard, while calls to the actor and mail of other shards continue.
    await ask("patient", ["waits"]);
    await world.client.call(probe, "patient", "append", { text: "call" });
    await world.client.send(probe, "neighbour", "note", { text: "mail" });
    expect(await logged("neighbour", 1)).to.deep.equal(["mail"]);
    await work({ slots: { fast: 1, slow: 8 } });
    await size(await say("other lane"));
    expect(await logged("patient", 2)).to.deep.equal(["call", "waits"]);
    for (let done = 100; done <= LANE_TASKS_MAX; done += 100) await logged("filler", done);
  });

  it("runs a task whose input is in its lane: gateways of the first release queue it so", async () => {
    await work();
    const inbox = `${world.bus.inboxes.tasks}.firstRelease`;
    const steps: string[] = [];
    const listening = world.bus.answerBelow(inbox, (question) => {
      question.respond();
      steps.push(`${question.subject.split(".").at(-1)} ${question.string()}`);
    });
    const task = { id: "first", from: "x", key: "key", message: "say", input: { text: "a" } };
    const payload = JSON.stringify({ ...task, caller: { inbox } });
    await world.bus.jetstream.jetstream().publish(taskSubject("echo", "fast"), payload);
    await until("it is done", () => steps.length === 3);
    expect(steps).to.deep.equal(["started ", 'reply {"text":"a","attempt":1}', "end "]);
    listening.close();
  });

  it("ends the work behind an answer whose caller has left before the reply", async () => {
    const inbox = `${world.bus.inboxes.tasks}.leaves`;
    const listening = world.bus.answerBelow(inbox, (question) => question.respond());
    let [given, made] = [never, 0];
    await work({
      async before(_, { signal }) {
        given = signal;
        listening.close();
        await world.bus.connection.flush();
      },
      made: (bytes) => {
        made = bytes;
      },
    });
    const task = { id: "leaves", from: "x", key: "key", message: "say" };
    const input = { text: "a", bytes: MIB };
    const payload = JSON.stringify({ ...task, input, caller: { inbox } });
    await world.bus.jetstream.jetstream().publish(taskSubject("echo", "fast"), payload);
    await until("the task is over", async () => (await world.count(STREAMS.tasks)) === 0);
    expect([given.reason instanceof CallerGone, made]).to.deep.equal([true, 0]);
  });

  it("hands over unfinished tasks at once when it stops, without counting a try", async () => {
    const attempts: number[] = [];
    let runs = TASK_TRIES_MAX + 2;
    const started = new EventEmitter();
    const orders: EchoOrders = {
      slots: { fast: 1 },
      async before(_, { attempt, signal }) {
        attempts.push(attempt);
        if (--runs === 0) return;
        started.emit("run");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        signal.throwIfAborted();
      },
    };
    let running = once(started, "run");
    await work(orders);
    const run = say("handed over");
    while (runs > 1) {
      await running;
      running = once(started, "run");
      const leaving = worker;
      await work(orders);
      await leaving.stop(0);
    }
    await size(await run);
    expect(attempts).to.deep.equal(Array(TASK_TRIES_MAX + 2).fill(1));
  });

  it("stops in time although a task ignores its signal, and hands it over", async () => {
    const attempts: number[] = [];
    const deaf = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    const orders: EchoOrders = {
      slots: { fast: 1 },
      async before(_, { attempt }) {
        attempts.push(attempt);
        if (attempts.length > 1) return;
        first.resolve();
        await deaf.promise;
      },
    };
    await work(orders);
    const run = say("not heard");
    await first.promise;
    const leaving = worker;
    const startedAt = performance.now();
    await leaving.stop(100);
    // The limit allows for a slow machine, but is far below the time that the task would take.
    expect(performance.now() - startedAt).to.be.below(TASK_END_MS + 20_000);
    await work(orders);
    await size(await run);
    expect(attempts).to.deep.equal([1, 1]);
    // The task ends when no caller waits for it any more.
    deaf.resolve();
  });
});
