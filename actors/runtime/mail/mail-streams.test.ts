import { expect } from "chai";
import pino from "pino";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";
import { systemClock } from "../lib/clock.ts";
import { NOTHING_SENT, Outbox } from "../shards/outbox.ts";
import { Shard } from "../shards/shard.ts";
import { listDeadLetters } from "./dead-letters.ts";
import { mailStreamOf, OutboxRelay } from "./outbox-relay.ts";

describe("several streams of mail", function () {
  this.timeout(120_000);
  let world: World;
  beforeEach(async () => {
    const definitions = [probeActor, counterActor];
    world = await startWorld({ definitions, layout: { mailStreams: 2 } });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  /** Returns a key whose mail is in this stream. */
  function keyIn(stream: number, kind = "probe"): string {
    for (let number = 0; ; number++) {
      const key = `key-${number}`;
      if (world.bus.shardOf(addressOf(kind, key)) % 2 === stream) return key;
    }
  }
  const logged = (key: string, count: number) =>
    until(`${key} has ${count} notes`, async () => {
      const { log } = await world.client.call(probe, key, "get", {});
      return log.length >= count && log;
    });

  it("a new owner publishes exactly the mail that each stream lacks", async () => {
    const [first, second] = [keyIn(0), keyIn(1)];
    const from = addressOf("probe", "sender");
    const shard = world.bus.shardOf(from);
    const entries = [first, second, first, second].map((key, index) => ({
      ...{ number: index + 1, from, to: "actor", kind: "probe", key, message: "note" },
      input: { text: String(index + 1) },
    }));
    const jetstream = world.bus.jetstream.jetstream();
    await jetstream.publish(world.subjects.outbox(shard), JSON.stringify({ entries }));
    // The former owner died after the second stream had its first mail.
    const { to, sent, stream } = mailIn(1);
    const payload = { from, message: "note", input: { text: "2" } };
    const subject = to(world.bus.shardOf(addressOf("probe", second)), addressOf("probe", second));
    await jetstream.publish(subject, JSON.stringify(payload));
    await jetstream.publish(sent(shard), JSON.stringify({ sent: 2, waiting: [] }));
    await world.host();
    expect(await logged(first, 2)).to.deep.equal(["1", "3"]);
    expect(await logged(second, 2)).to.deep.equal(["2", "4"]);
    const mark = await world.bus.readLast(stream, sent(shard));
    expect(mark?.json()).to.deep.equal({ sent: 4, waiting: [] });
  });

  it("a stream that refuses mail delays only its own, which arrives once when there is room", async () => {
    await world.host();
    const [first, second] = [keyIn(0), keyIn(1)];
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(mailIn(1).stream);
    await streams.update(mailIn(1).stream, { ...config, max_bytes: 1 });
    const to = [first, second];
    await world.client.call(probe, "sender", "scatter", { to, text: "one", times: 1 });
    expect(await logged(first, 1)).to.deep.equal(["one"]);
    await world.client.call(probe, "sender", "scatter", { to, text: "two", times: 1 });
    expect(await logged(first, 2)).to.deep.equal(["one", "two"]);
    expect((await world.client.call(probe, second, "get", {})).log).to.deep.equal([]);
    await streams.update(mailIn(1).stream, { ...config, max_bytes: -1 });
    expect(await logged(second, 2)).to.deep.equal(["one", "two"]);
  });

  it("a stream that refuses mail leaves its host's knowledge of published mail as it is", async () => {
    const { streams } = world.bus.jetstream;
    const { config } = await streams.info(mailIn(1).stream);
    await streams.update(mailIn(1).stream, { ...config, max_bytes: 1 });
    const failures: string[] = [];
    const reloads: number[] = [];
    const relay = new OutboxRelay({
      ...{ bus: world.bus, clock: systemClock },
      logger: pino({}, { write: (line) => void failures.push(line) }),
      drained: () => {},
      owns: async () => true,
      reloaded: ({ number }) => void reloads.push(number),
    });
    const mail = { number: 1, from: "probe.x", to: "actor", kind: "probe", key: keyIn(1) };
    const stored = JSON.stringify({ entries: [{ ...mail, message: "note", input: { text: "" } }] });
    const outbox = new Outbox(stored, [NOTHING_SENT, NOTHING_SENT], mailStreamOf(world.bus));
    const { subjects } = world;
    const shard = { number: 1, epoch: 1, host: "test", subjects, outbox, sentRevisions: [0, 0] };
    relay.add(new Shard(shard));
    await until("it was refused several times", () => failures.length > 2);
    await streams.update(mailIn(1).stream, { ...config, max_bytes: -1 });
    await until("it is published", () => outbox.entries.length === 0);
    expect(reloads).to.deep.equal([]);
  });

  it("mail with the same sequence in two streams becomes two dead letters", async () => {
    const keys = [keyIn(0, "counter"), keyIn(1, "counter")];
    for (const key of keys) await world.client.send(counter, key, "stumble", { times: -1 });
    await world.host();
    const letters = await until("both are dead", async () => {
      const found = await Array.fromAsync(listDeadLetters(world.bus));
      return (await world.mailWaiting()) === 0 && found;
    });
    expect(letters.map(({ address }) => address)).to.have.members(
      keys.map((key) => addressOf("counter", key)),
    );
  });
});
