import { once } from "node:events";
import { expect } from "chai";
import { ActorError } from "../../../schemas/errors.ts";
import {
  CALL_DEADLINE_MS,
  CALL_RETRY_MS_MAX,
  MAILBOX_MAX,
  MESSAGE_BYTES_MAX,
} from "../../../schemas/limits.ts";
import {
  addressOf,
  callSubject,
  openedSubject,
  STREAMS,
  shardOf,
} from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { answerWrites, ID_IN_PROCESS } from "../../../scripts/testing/answer-writes.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import { Bus } from "../bus/bus.ts";
import { encodeRefusal } from "../bus/refusal.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { BusActorClient, CALL_RETRY_MS, CALL_SWEEP_MS, CALL_TRY_MS } from "./actor-client.ts";
import { CLIENT_CALLS_MAX, callsOf, VISITORS_CALLS_MAX } from "./call-places.ts";
import { REPLIES_PER_CLIENT_MAX } from "./remembered-replies.ts";

describe("BusActorClient", function () {
  this.timeout(60_000);
  let world: World;
  before(async () => {
    world = await startWorld({ definitions: [counterActor, probeActor], tasks: [echo] });
  });
  after(() => world[Symbol.asyncDispose]());

  const increment = (key: string, options = {}) =>
    world.client.call(counter, key, "increment", { by: 1 }, options);
  const codes = async (calls: Promise<unknown>[]) => {
    const outcomes = await Promise.allSettled(calls);
    const counts = new Map<string, number>();
    for (const outcome of outcomes) {
      const error = outcome.status === "rejected" ? outcome.reason : undefined;
      const code = error instanceof ActorError ? error.code : String(error ?? "ok");
      counts.set(code, (counts.get(code) ?? 0) + 1);
    }
    return Object.fromEntries(counts);
  };

  describe("without a host", () => {
    it("call() refuses at its deadline, or when its caller leaves", async () => {
      const startedAt = performance.now();
      const late = await refusalOf(increment("a", { deadlineMs: 300 }));
      expect(late).to.include({ code: "unavailable" });
      // The call's own deadline applies, which is far shorter than the default.
      expect(performance.now() - startedAt).to.be.within(300, 0.8 * CALL_DEADLINE_MS);
      const leaving = new AbortController();
      const left = refusalOf(increment("a", { signal: leaving.signal }));
      leaving.abort();
      expect(await left).to.include({ code: "cancelled" });
      const before = refusalOf(increment("a", { signal: AbortSignal.abort() }));
      expect(await before).to.include({ code: "cancelled" });
    });

    it("call() takes CLIENT_CALLS_MAX calls, and refuses one more at once", async () => {
      const client = await world.newClient();
      const calls = Array.from({ length: CLIENT_CALLS_MAX }, () =>
        client.call(counter, "crowd", "get", {}, { deadlineMs: 500 }),
      );
      const error = await refusalOf(client.call(counter, "crowd", "get", {}));
      expect(error).to.include({ code: "busy" });
      expect(await codes(calls)).to.deep.equal({ unavailable: CLIENT_CALLS_MAX });
    });

    it("call() counts for its account until it is settled", async () => {
      const client = await world.newClient();
      const call = (accountId: string, signal?: AbortSignal) =>
        callsOf({ accountId, isVisitor: true }, () =>
          client.call(counter, "crowd", "get", {}, { deadlineMs: 500, ...(signal && { signal }) }),
        );
      const left = new AbortController();
      const calls = Array.from({ length: VISITORS_CALLS_MAX }, () => call("a", left.signal));
      expect(await refusalOf(call("a"))).to.include({ code: "busy" });
      const other = refusalOf(call("b"));
      left.abort();
      const after = refusalOf(call("a"));
      expect(await codes(calls)).to.deep.equal({ cancelled: VISITORS_CALLS_MAX });
      expect([(await other).code, (await after).code]).to.deep.equal([
        "unavailable",
        "unavailable",
      ]);
    });

    it("call() begins with the shortest pause again when another host opens the shard", async () => {
      const pauses: number[] = [];
      const wait: Clock["wait"] = (ms, signal) => {
        if (ms !== CALL_SWEEP_MS) pauses.push(ms);
        return systemClock.wait(Math.min(ms, CALL_RETRY_MS), signal);
      };
      const client = await world.newClient({ clock: { ...systemClock, wait } });
      const leaving = new AbortController();
      // Nobody owns the shard, so each try is answered at once.
      const call = client.call(counter, "moved", "get", {}, { signal: leaving.signal });
      await until("the pauses are long", () => pauses.at(-1) === CALL_RETRY_MS_MAX);
      pauses.length = 0;
      world.bus.connection.publish(openedSubject(shardOf(addressOf("counter", "moved"))));
      await until("the first pause is the shortest again", () => pauses.includes(CALL_RETRY_MS));
      leaving.abort();
      expect(await refusalOf(call)).to.include({ code: "cancelled" });
    });

    it("call() retries under the same number when the actor is busy after a try with unknown outcome", async () => {
      const address = addressOf("counter", "busy");
      const numbers: number[] = [];
      const stub = world.bus.connection.subscribe(callSubject(shardOf(address), address), {
        callback: (_, message) => {
          numbers.push(message.json<{ number: number }>().number);
          // The first try gets no answer. The second is refused as busy, so the effect of the first is still unknown.
          if (numbers.length === 1) return;
          if (numbers.length > 2) message.respond('{"count":1}');
          else {
            const { headers, payload } = encodeRefusal(new ActorError("busy", "Cannot: full"));
            message.respond(payload, { headers });
          }
        },
      });
      const startedAt = performance.now();
      expect(await increment("busy")).to.deep.equal({ count: 1 });
      expect(performance.now() - startedAt).to.be.above(CALL_TRY_MS);
      expect(new Set(numbers).size).to.equal(1);
      // There are more than three tries if this process stalls before it receives the answer to the second.
      expect(numbers.length).to.be.at.least(3);
      stub.unsubscribe();
    });

    it("call() keeps its deadline where a host may have run it, although the time of day jumps", async () => {
      const address = addressOf("counter", "kept");
      const deadlines: number[] = [];
      const stub = world.bus.connection.subscribe(callSubject(shardOf(address), address), {
        callback: (_, message) => {
          deadlines.push(message.json<{ deadlineAt: number }>().deadlineAt);
          if (deadlines.length > 1) {
            message.respond('{"count":1}');
            return;
          }
          const { headers, payload } = encodeRefusal(new ActorError("unavailable", "moved"));
          headers.set("Nats-Service-Error-Code", "421");
          offsetMs = 86_400_000;
          message.respond(payload, { headers });
        },
      });
      await world.bus.connection.flush();
      let offsetMs = 0;
      const clock = { ...systemClock, now: () => systemClock.now() + offsetMs };
      const client = await world.newClient({ clock });
      expect(await client.call(counter, "kept", "get", {})).to.deep.equal({ count: 1 });
      stub.unsubscribe();
      expect(deadlines).to.have.length(2);
      expect(deadlines[1]).to.equal(deadlines[0]);
    });

    it("call() that waits for its next try retries when the shard has an owner; one that was just sent does not", async () => {
      await using other = await startWorld({ definitions: [counterActor] });
      // With this clock no try times out. A pause ends only when the client learns of the shard's owner.
      const clock = {
        ...systemClock,
        monotonic: () => 0,
        wait: async (ms: number, signal?: AbortSignal) => {
          if (signal && !signal.aborted) await once(signal, "abort");
          else await systemClock.wait(ms);
        },
      };
      const client = await other.newClient({ clock });
      const address = addressOf("counter", "silent");
      const silent = other.bus.connection.subscribe(callSubject(shardOf(address), address), {
        callback: () => {},
      });
      await other.bus.connection.flush();
      const leaving = new AbortController();
      const add = (key: string, signal?: AbortSignal) =>
        client.call(counter, key, "increment", { by: 1 }, signal && { signal });
      const underWay = refusalOf(add("silent", leaving.signal));
      const paused = add("missing");
      await until("one is heard", () => silent.getReceived() === 1);
      await other.host();
      expect(await paused).to.deep.equal({ count: 1 });
      // The first call to this actor is not sent again, so the host has only this call.
      expect(await add("silent")).to.deep.equal({ count: 1 });
      leaving.abort();
      expect(await underWay).to.include({ code: "cancelled" });
    });

    it("call() that the shard's former owner left unanswered goes to the new owner at once", async () => {
      await using other = await startWorld({ definitions: [counterActor] });
      // With this clock no call is sent again because it has waited for too long.
      const client = await other.newClient({ clock: new HoldingClock(CALL_SWEEP_MS) });
      const address = addressOf("counter", "a");
      const former = other.bus.connection.subscribe(callSubject(shardOf(address), address), {
        callback: () => {},
      });
      await other.bus.connection.flush();
      let reply: unknown;
      void client.call(counter, "a", "increment", { by: 1 }).then((given) => {
        reply = given;
      });
      await until("the former owner has received it", () => former.getReceived() === 1);
      const receivedAt = performance.now();
      await until("it was not just sent", () => performance.now() - receivedAt > CALL_RETRY_MS);
      former.unsubscribe();
      await other.host();
      await until("it is answered", () => reply !== undefined);
      expect(reply).to.deep.equal({ count: 1 });
    });

    it("call() waits for its deadline when its connection is closed, without an unhandled rejection", async () => {
      const bus = await Bus.connect({ url: world.url, name: "closing" });
      const client = new BusActorClient(bus, systemClock);
      const call = refusalOf(
        client.call(counter, "a", "get", {}, { deadlineMs: CALL_TRY_MS + 300 }),
      );
      await bus.close();
      expect(await call).to.include({ code: "unavailable" });
    });

    it("run() refuses at its deadline when its connection is closed, without an unhandled rejection", async () => {
      const bus = await Bus.connect({ url: world.url, name: "closing" });
      const clock = new SkippingClock({ stands: true });
      const client = new BusActorClient(bus, clock);
      const input = { text: "a", bytes: 0, pieceBytes: 1 };
      const signal = new AbortController().signal;
      const deadlineMs = 60_000;
      const run = refusalOf(client.run(echo, "a", "say", input, { deadlineMs, signal }));
      const { streams } = world.bus.jetstream;
      const queued = async () => (await streams.info(STREAMS.tasks)).state.messages > 0;
      await until("the task is queued", queued);
      await bus.close();
      clock.skip(deadlineMs);
      expect(await run).to.include({ code: "unavailable" });
    });

    it("call() refuses a message past MESSAGE_BYTES_MAX also while the bus is away", async () => {
      const bus = await Bus.connect({ url: world.url, name: "away" });
      Object.defineProperty(bus, "isAway", { value: true });
      const client = new BusActorClient(bus, systemClock);
      const text = "x".repeat(MESSAGE_BYTES_MAX);
      const called = await refusalOf(client.call(probe, "a", "append", { text }));
      expect(called).to.include({ code: "body_too_large" });
      await bus.close();
    });

    it("call() and send() refuse a message past MESSAGE_BYTES_MAX", async () => {
      const text = "x".repeat(MESSAGE_BYTES_MAX);
      const called = await refusalOf(world.client.call(probe, "a", "append", { text }));
      expect(called).to.include({ code: "body_too_large" });
      const sent = await refusalOf(world.client.send(probe, "a", "note", { text }));
      expect(sent).to.include({ code: "body_too_large" });
    });
  });

  describe("with a host", () => {
    before(() => world.host());

    it("call() is refused past MAILBOX_MAX waiting messages, and has one effect otherwise", async () => {
      const more = 500;
      const outcome = await codes(
        Array.from({ length: MAILBOX_MAX + more }, () => increment("hot")),
      );
      expect(Object.keys(outcome)).to.include("ok").and.not.include("unavailable");
      expect(outcome.ok).to.be.at.least(MAILBOX_MAX);
      const { count } = await world.client.call(counter, "hot", "get", {});
      expect(count).to.equal(outcome.ok);
    });

    it("call() is refused past REPLIES_PER_CLIENT_MAX unsettled calls", async () => {
      const address = addressOf("counter", "unsettled");
      const ask = (number: number, settled: number) =>
        world.bus.request(
          callSubject(shardOf(address), address),
          JSON.stringify({
            message: "increment",
            input: { by: 1 },
            client: "c",
            number,
            settled,
            deadlineAt: Date.now() + 10_000,
          }),
        );
      for (let number = 1; number <= REPLIES_PER_CLIENT_MAX; number += 1_024) {
        await Promise.all(Array.from({ length: 1_024 }, (_, index) => ask(number + index, 1)));
      }
      const full = await ask(REPLIES_PER_CLIENT_MAX + 1, 1);
      expect(full.json()).to.deep.include({ code: "busy" });
      expect((await ask(7, 1)).json()).to.have.property("count");
      expect((await ask(REPLIES_PER_CLIENT_MAX + 2, 2)).json()).to.deep.equal({
        count: REPLIES_PER_CLIENT_MAX + 1,
      });
    });

    it("call() has its effect although the time of day jumps by a day while it is under way", async () => {
      let offsetMs = -86_400_000;
      const clock = { ...systemClock, now: () => systemClock.now() + offsetMs };
      const client = await world.newClient({ clock });
      const call = client.call(counter, "jump", "increment", { by: 1 });
      offsetMs = 0;
      expect(await call).to.deep.equal({ count: 1 });
      expect(await client.call(counter, "jump", "get", {})).to.deep.equal({ count: 1 });
    });

    it("send() repeats mail of which the stream has an earlier copy in process", async () => {
      const isMail = (subject: string) => subject.startsWith("mail.");
      const end = answerWrites(world.bus, isMail, ["none", ID_IN_PROCESS, ID_IN_PROCESS]);
      await world.client.send(probe, "in-process", "note", { text: "once" }).finally(end);
      const log = async () => (await world.client.call(probe, "in-process", "get", {})).log;
      await until("it came", async () => (await log()).length > 0);
      expect(await log()).to.deep.equal(["once"]);
    });

    it("send() and call() of many clients at once have one effect each", async () => {
      const clients = await Promise.all(Array.from({ length: 8 }, () => world.newClient()));
      await Promise.all(
        clients.flatMap((client, index) =>
          Array.from({ length: 100 }, () =>
            client.call(counter, `many-${index % 3}`, "increment", { by: 1 }),
          ),
        ),
      );
      const counts = await Promise.all(
        [0, 1, 2].map((index) => world.client.call(counter, `many-${index}`, "get", {})),
      );
      expect(counts.map(({ count }) => count)).to.deep.equal([300, 300, 200]);
    });
  });
});
