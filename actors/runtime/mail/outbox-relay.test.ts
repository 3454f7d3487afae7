import { expect } from "chai";
import pino from "pino";
import { z } from "zod";
import { defineContract, defineTasks, envelope } from "../../../schemas/contract.ts";
import { CALL_DEADLINE_MS_MAX, LANE_TASKS_MAX } from "../../../schemas/limits.ts";
import { mailIn } from "../../../schemas/split-streams.ts";
import {
  addressOf,
  STREAMS,
  shardOf,
  taskSubject,
  turnSubject,
} from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { answerWrites } from "../../../scripts/testing/answer-writes.ts";
import { echo } from "../../../scripts/testing/echo.ts";
import { echoWorker } from "../../../scripts/testing/echo-worker.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { ActorHost } from "../actor-host.ts";
import { defineActor } from "../kinds/define-actor.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { defineWorker } from "../workers/define-worker.ts";
import { FULL_PAUSE_MS } from "./full-queues.ts";
import { OutboxRelay } from "./outbox-relay.ts";

/** nats-server's error code for a subject that has as many messages as it may. */
const QUEUE_IS_FULL = 10_123;

describe("OutboxRelay", function () {
  this.timeout(180_000);
  let world: World;
  let host: ActorHost;
  beforeEach(async () => {
    world = await startWorld({ definitions: [probeActor], tasks: [echo] });
    host = await world.host();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const shardOfKey = (key: string) => shardOf(addressOf("probe", key));
  const scatter = (from: string, to: string[], text: string, times = 1) =>
    world.client.call(probe, from, "scatter", { to, text, times });
  const log = async (key: string) => (await world.client.call(probe, key, "get", {})).log;
  const logged = (key: string, count: number) =>
    until(
      `${key} has ${count} notes`,
      async () => {
        const lines = await log(key);
        return lines.length >= count && lines;
      },
      60_000,
    );
  /** Keys that all live on one shard. */
  function neighbours(count: number): string[] {
    const keys = ["seed"];
    for (let number = 0; keys.length < count; number++) {
      const key = `neighbour-${number}`;
      if (shardOfKey(key) === shardOfKey("seed")) keys.push(key);
    }
    return keys;
  }

  function newRelay(clock: Clock): OutboxRelay {
    const logger = pino({ level: "silent" });
    const ignore = () => {};
    const rest = { drained: ignore, owns: async () => true, reloaded: ignore };
    return new OutboxRelay({ bus: world.bus, clock, logger, ...rest });
  }
  function shardWith(number: number, entries: readonly object[]): Shard {
    const outbox = new Outbox(JSON.stringify({ entries }));
    const { subjects } = world;
    return new Shard({ number, epoch: 1, host: "test", subjects, outbox, sentRevisions: [0] });
  }

  it("publishes mail that several actors of a shard send at once, also past OUTBOX_BYTES_MAX together", async () => {
    const senders = neighbours(8);
    // Each text is near the limit of one transition, because a letter outside ASCII takes two bytes or more.
    const text = "é".repeat(140_000);
    await Promise.all(
      senders.flatMap((from) => [0, 1].map(() => scatter(from, [`to-${from}`], text))),
    );
    for (const from of senders) await logged(`to-${from}`, 2);
  });

  it("keeps sends that the mail stream refuses, refuses no caller wrongly, and drains when there is room", async () => {
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(STREAMS.mail);
    await streams.update(STREAMS.mail, { ...config, max_bytes: 1_000 });
    const from = neighbours(2);
    const text = "x".repeat(50_000);
    const calls = Array.from({ length: 12 }, (_, index) =>
      scatter(from[index % 2] ?? "", ["reader"], `${index} ${text}`),
    );
    await world.client.call(probe, "elsewhere", "append", { text: "goes on" });
    await streams.update(STREAMS.mail, { ...config, max_bytes: -1 });
    await Promise.all(calls);
    const lines = await logged("reader", 12);
    expect(lines.map((line) => Number.parseInt(line, 10)).sort((a, b) => a - b)).to.deep.equal(
      Array.from({ length: 12 }, (_, index) => index),
    );
  });

  for (const published of [false, true]) {
    it(`a new owner doubles no mail of an outbox whose sends were ${published ? "" : "not "}published`, async () => {
      const [key = ""] = neighbours(1);
      const shard = shardOfKey(key);
      await scatter(key, ["r"], "before");
      await logged("r", 1);
      await host.stop();
      // Recreates the state after a host died between its commit and the mark of its published mail.
      const mark = await world.bus.readLast(STREAMS.mail, mailIn(0).sent(shard));
      const sent = mark?.json<{ sent: number }>().sent ?? 0;
      const from = addressOf("probe", key);
      const message = { to: "actor", kind: "probe", key: "r", message: "note" } as const;
      const entries = ["one", "two"].map((text, index) => ({
        number: sent + 1 + index,
        from,
        ...message,
        input: { text },
      }));
      const jetstream = world.bus.jetstream.jetstream();
      await jetstream.publish(world.subjects.outbox(shard), JSON.stringify({ entries }));
      if (published) {
        const subject = mailIn(0).to(shardOfKey("r"), addressOf("probe", "r"));
        for (const { input } of entries) {
          await jetstream.publish(subject, JSON.stringify({ from, message: "note", input }));
        }
        await jetstream.publish(mailIn(0).sent(shard), JSON.stringify({ sent: sent + 2 }));
      }
      host = await world.host();
      await logged("r", 3);
      await scatter(key, ["r"], "after");
      expect(await logged("r", 4)).to.deep.equal(["before", "one", "two", "after"]);
    });
  }

  it("goes on after a shard whose last commit succeeded although the shard was lost meanwhile", async () => {
    const relay = newRelay(systemClock);
    const message = { to: "actor", kind: "probe", key: "r", message: "note" } as const;
    const entry = { number: 1, from: "probe.x", ...message, input: { text: "one" } };
    const lost = shardWith(1, [entry]);
    lost.status = "gone";
    relay.add(lost);
    relay.add(shardWith(2, [entry]));
    expect(await logged("r", 1)).to.deep.equal(["one"]);
  });

  it("tries one refused task of a full queue after each pause, and more as long as the queue takes them", async () => {
    const clock = new SkippingClock({ stands: true });
    const message = {
      to: "worker",
      kind: "echo",
      key: "k",
      message: "tell",
      lane: "slow",
    } as const;
    const entries = Array.from({ length: 25 }, (_, index) => ({
      ...{ number: index + 1, from: "probe.x", ...message, input: { text: "t", failing: 0 } },
    }));
    let tries = 0;
    const isTask = (subject: string) => {
      if (!subject.startsWith("task.")) return false;
      tries += 1;
      return true;
    };
    const full = (count: number) => new Array<number>(count).fill(QUEUE_IS_FULL);
    // All 50 are tried once, because an earlier owner may have queued some. Then one after each pause, until one is taken.
    const answers = [...full(25), ...full(26), ...full(2), "bus", "bus", ...full(1)] as const;
    answerWrites(world.bus, isTask, answers);
    const relay = newRelay(clock);
    relay.add(shardWith(1, entries));
    relay.add(shardWith(2, entries));
    for (const tried of [25, 51, 52, 53, 56]) {
      await until("it pauses", () => tries >= tried && clock.isAwaited(FULL_PAUSE_MS));
      expect(tries).to.equal(tried);
      clock.skip(FULL_PAUSE_MS);
    }
    const subject = taskSubject("echo", "slow");
    await until("all are queued", async () => {
      return (await world.count(STREAMS.tasks, subject)) === 2 * entries.length;
    });
    expect(tries).to.equal(answers.length + 2 * entries.length - 2);
  });

  it("tasks for a full lane have half of an outbox, and delay no mail of the shard's other actors", async () => {
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(STREAMS.tasks);
    await streams.update(STREAMS.tasks, { ...config, max_msgs_per_subject: 1 });
    const filler = { id: "f", from: "x", key: "filler", message: "tell" };
    const payload = JSON.stringify({ ...filler, input: { text: "f", failing: 0 } });
    await world.bus.jetstream.jetstream().publish(taskSubject("echo", "slow"), payload);
    const [writer = "", other = "", ...askers] = neighbours(14);
    // Together they would fill the outbox, and leave less room than the mail needs.
    const asks = askers.map((key, index) => {
      const texts = index < 4 ? new Array<string>(3).fill("x".repeat(48_000)) : ["y".repeat(6_000)];
      const options = { deadlineMs: CALL_DEADLINE_MS_MAX };
      return world.client.call(probe, key, "ask", { texts, failing: 0 }, options);
    });
    await world.client.call(probe, other, "append", { text: "commits after them" });
    await scatter(writer, ["reader"], "z".repeat(12_000));
    await logged("reader", 1);
    await streams.update(STREAMS.tasks, config);
    await world.worker([echoWorker({ slots: { slow: 8 } })]);
    await Promise.all(asks);
    for (const [index, key] of askers.entries()) await logged(key, index < 4 ? 3 : 1);
  });

  it("a full lane delays no mail, not even of the same shard, and its tasks run once, also under a new owner", async () => {
    const jetstream = world.bus.jetstream.jetstream();
    const filler = { from: "x", key: "filler", message: "tell", input: { text: "f", failing: 0 } };
    await Promise.all(
      Array.from({ length: LANE_TASKS_MAX }, (_, index) =>
        jetstream.publish(
          taskSubject("echo", "slow"),
          JSON.stringify({ ...filler, id: `f${index}` }),
        ),
      ),
    );
    await world.client.call(probe, "asker", "ask", { texts: ["a", "b", "c"], failing: 0 });
    const others = Array.from({ length: 200 }, (_, index) => `other-${index}`);
    expect(others.some((key) => shardOfKey(key) === shardOfKey("asker"))).to.equal(true);
    await Promise.all(others.map((key) => scatter(key, [`${key}-to`], "passes")));
    await Promise.all(others.map((key) => logged(`${key}-to`, 1)));
    expect(await log("asker")).to.deep.equal([]);
    await host.stop();
    host = await world.host();
    await world.worker([echoWorker({ slots: { slow: 8 } })]);
    expect([...(await logged("asker", 3))].sort()).to.deep.equal(["a", "b", "c"]);
    await logged("filler", LANE_TASKS_MAX);
    expect(await log("asker")).to.have.length(3);
  });
});

const keyed = defineTasks({
  kind: "keyed",
  lanes: ["all"],
  inTurns: true,
  messages: { note: { lane: "all", input: z.object({ text: z.string() }) } },
});

const sender = defineContract({
  kind: "sender",
  messages: { ask: { input: z.object({ keys: z.array(z.string()) }), reply: z.object({}) } },
});

const senderActor = defineActor(sender, {
  state: z.object({ asked: z.int() }),
  initial: { asked: 0 },
  handlers: {
    ask(state, { keys }) {
      const send = keys.map((key) => envelope(keyed, key, "note", { text: key }));
      return { state: { asked: state.asked + 1 }, send, reply: {} };
    },
  },
});

describe("OutboxRelay, of tasks in a lane that serves keys in turn", function () {
  this.timeout(180_000);

  it("queues each with its key, and a key's full queue holds up no other key of the shard", async () => {
    await using world = await startWorld({ definitions: [senderActor], tasks: [keyed] });
    await world.host();
    const jetstream = world.bus.jetstream.jetstream();
    const queued = (key: string) => world.count(STREAMS.tasks, turnSubject("keyed", "all", key));
    const task = { from: "x", key: "full", message: "note", input: { text: "filler" } };
    await Promise.all(
      Array.from({ length: LANE_TASKS_MAX }, (_, index) =>
        jetstream.publish(
          turnSubject("keyed", "all", "full"),
          JSON.stringify({ ...task, id: `f${index}` }),
        ),
      ),
    );
    await world.client.call(sender, "one", "ask", { keys: ["full", "other"] });
    await world.client.call(sender, "one", "ask", { keys: ["full", "other", "third"] });
    await until("the others are queued", async () => {
      return (await queued("other")) === 2 && (await queued("third")) === 1;
    });
    expect(await queued("full")).to.equal(LANE_TASKS_MAX);
    const ran: string[] = [];
    const note = async ({ text }: { text: string }) => {
      ran.push(text);
      return {};
    };
    await world.worker([
      defineWorker(keyed, {
        slots: { all: 8 },
        handlers: { note },
        failures: { note: () => [] },
      }),
    ]);
    await until("all have run", () => ran.length === LANE_TASKS_MAX + 5, 100_000);
    const counts = ["full", "other", "third"].map((key) => ran.filter((one) => one === key).length);
    expect(counts).to.deep.equal([2, 2, 1]);
  });
});
