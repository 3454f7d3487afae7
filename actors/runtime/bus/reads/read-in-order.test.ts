import { expect } from "chai";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../../scripts/testing/actor-world.ts";
import { startCluster } from "../../../../scripts/testing/nats-server.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { Bus, BusLost } from "../bus.ts";
import { isSingleServer, readInOrder, UNUSED_CONSUMER_MS_MAX } from "./read-in-order.ts";

const SUBJECT = "mail.0.counter.a";

/** Reads as the reader of a shard does: after each interruption it continues with the next message. */
function startReading(world: World, read: number[], signal: AbortSignal) {
  return (async () => {
    let lost = 0;
    let next = 1;
    while (!signal.aborted) {
      try {
        const messages = readInOrder(world.bus, {
          stream: STREAMS.mail,
          name: "test",
          select: { filter_subjects: SUBJECT, opt_start_seq: next },
          prefetch: 256,
          signal,
        });
        for await (const message of messages) {
          next = message.seq + 1;
          read.push(Number(message.string()));
        }
      } catch (error) {
        if (!(error instanceof BusLost)) throw error;
        lost += 1;
        await until("the bus is back", () => world.bus.connected);
      }
    }
    return lost;
  })();
}

describe("readInOrder", function () {
  this.timeout(180_000);

  it("reads everything in order, and at once after the server was killed and came back", async () => {
    await using world = await startWorld();
    const stopped = new AbortController();
    const read: number[] = [];
    const reading = startReading(world, read, stopped.signal);
    const publish = async (from: number, to: number) => {
      for (let number = from; number <= to; number++) {
        await world.bus.jetstream.jetstream().publish(SUBJECT, String(number));
      }
    };
    await publish(1, 10);
    await until("the first ten are read", () => read.length === 10);
    await world.nats?.kill();
    await world.nats?.start();
    await until("the bus is back", () => world.bus.connected);
    await publish(11, 40);
    await until("the others are read too", () => read.length === 40);
    expect(read).to.deep.equal(Array.from({ length: 40 }, (_, index) => index + 1));
    stopped.abort();
    // The reader started again because the connection was lost, without waiting for the consumer's idle timeout.
    expect(await reading).to.be.at.least(1);
  });

  it("makes another consumer at once where no server knows yet where its first one is", async () => {
    await using world = await startWorld();
    const client = world.bus.jetstream.jetstream();
    for (let number = 1; number <= 3; number++) await client.publish(SUBJECT, String(number));
    let unheard = 3;
    // Deletes the consumer: the server then answers as a server of a cluster does that does not know the consumer
    // yet.
    const get: typeof client.consumers.get = async (...asked) => {
      const consumer = await client.consumers.get(...asked);
      if (unheard > 0) await consumer.delete();
      unheard -= 1;
      return consumer;
    };
    world.bus.jetstream.jetstream = () =>
      Object.assign(Object.create(client), { consumers: { get } });
    const read: string[] = [];
    const messages = readInOrder(world.bus, {
      stream: STREAMS.mail,
      name: "test",
      select: { filter_subjects: SUBJECT },
      prefetch: 256,
      signal: new AbortController().signal,
    });
    for await (const message of messages) {
      read.push(message.string());
      if (read.length === 3) break;
    }
    expect(read).to.deep.equal(["1", "2", "3"]);
    expect(unheard).to.equal(-1);
  });

  it("leaves a consumer behind for UNUSED_CONSUMER_MS_MAX at most when its process is killed", async () => {
    await using world = await startWorld();
    const stopped = new AbortController();
    const reading = startReading(world, [], stopped.signal);
    const { consumers } = world.bus.jetstream;
    const list = () => Array.fromAsync(consumers.list(STREAMS.mail));
    const own = async () => (await list()).find(({ name }) => name.startsWith("test-"));
    const { config } = await until("the consumer is there", own);
    expect(config.inactive_threshold).to.equal(UNUSED_CONSUMER_MS_MAX * 1e6);
    stopped.abort();
    await reading;
  });

  it("requests few heartbeats from a single server, because its consumer dies with the connection", async () => {
    await using world = await startWorld();
    const asked: { idle_heartbeat: number }[] = [];
    world.bus.connection.subscribe("$JS.API.CONSUMER.MSG.NEXT.MAIL.*", {
      callback: (_error, message) => void asked.push(message.json()),
    });
    const stopped = new AbortController();
    const reading = startReading(world, [], stopped.signal);
    const [first] = await until("a request", () => asked.length > 0 && asked);
    stopped.abort();
    await reading;
    expect(first?.idle_heartbeat).to.be.at.least(10_000 * 1e6);
  });

  it("requests a heartbeat a second from a server of a cluster, because its consumer may die alone", async () => {
    await using cluster = await startCluster(2);
    const bus = await Bus.connect({ url: cluster.urls.join(","), name: "test" });
    expect(isSingleServer(bus)).to.equal(false);
    await bus.close();
  });
});
