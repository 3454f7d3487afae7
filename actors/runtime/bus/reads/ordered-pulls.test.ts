import { headers, nanos } from "@nats-io/transport-node";
import { expect } from "chai";
import { startNats, type TestNatsServer } from "../../../../scripts/testing/nats-server.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { Bus } from "../bus.ts";
import { LARGE_PULL_MS, OrderedPulls } from "./ordered-pulls.ts";
import { readInOrder } from "./read-in-order.ts";

const STREAM = "LINES";

describe("OrderedPulls", function () {
  this.timeout(240_000);
  let nats: TestNatsServer;
  let writer: Bus;
  const slow: string[] = [];
  before(async () => {
    const onLine = (line: string) => void (/slow consumer/i.test(line) && slow.push(line));
    nats = await startNats({ config: "max_pending: 8MB", onLine });
    writer = await Bus.connect({ url: nats.url, name: "writer" });
    await writer.jetstream.streams.add({ name: STREAM, subjects: ["lines.>"] });
  });
  after(async () => {
    await writer?.close();
    await nats?.stop();
  });

  const write = (subject: string, text: string) =>
    writer.jetstream.jetstream().publish(subject, text);

  /** Reads `count` messages of a subject, and returns their texts. */
  async function read(
    bus: Bus,
    subject: string,
    {
      count,
      prefetch = 256,
      bytes = 128_000,
    }: { count: number; prefetch?: number; bytes?: number },
  ) {
    const texts: string[] = [];
    const done = new AbortController();
    const messages = readInOrder(bus, {
      ...{ stream: STREAM, name: "test", select: { filter_subjects: subject } },
      ...{ prefetch, prefetchBytes: bytes, signal: done.signal },
    });
    for await (const message of messages) {
      texts.push(message.string());
      if (texts.length === count) break;
    }
    done.abort();
    return texts;
  }

  it("reads many small messages, some large ones between them, and empty ones, in their order", async () => {
    const sent: string[] = [];
    for (let index = 0; index < 400; index++) {
      const text =
        index % 40 === 7 ? String(index).repeat(60_000) : index % 9 === 0 ? "" : `${index}`;
      sent.push(text);
      await write("lines.mixed", text);
    }
    for (const prefetch of [1, 5, 256]) {
      const texts = await read(writer, "lines.mixed", { count: 400, prefetch });
      expect(texts.every((text, index) => text === sent[index])).to.equal(true);
      expect(texts).to.have.length(400);
    }
  });

  it("reads on where the messages fill a request to the last byte", async () => {
    for (let index = 0; index < 100; index++) await write("lines.even", "x".repeat(1_000));
    // The reply subject has the name of the consumer and the position of the message, so its length varies.
    for (let bytes = 1_050; bytes < 1_150; bytes++) {
      expect(await read(writer, "lines.even", { count: 9, bytes })).to.have.length(9);
    }
  });

  it("keeps the large messages of many readers below what a connection may have", async () => {
    const bus = await Bus.connect({ url: nats.url, name: "host" });
    const readers = 64;
    for (let index = 0; index < readers; index++) {
      await write(`lines.large.${index}`, "x".repeat(600_000));
      await write(`lines.large.${index}`, "y".repeat(600_000));
    }
    const texts = await Promise.all(
      Array.from({ length: readers }, (_, index) =>
        read(bus, `lines.large.${index}`, { count: 2 }),
      ),
    );
    expect(texts.map(([one = "", two = ""]) => `${one[0]}${two[0]}`)).to.deep.equal(
      Array.from({ length: readers }, () => "xy"),
    );
    expect(bus.disconnections).to.equal(0);
    expect(slow).to.deep.equal([]);
    await bus.close();
  });

  it("waits for a large message that the server does not count as pending", async () => {
    const subject = "$JS.API.CONSUMER.MSG.NEXT.FAKE.reader";
    const queries: object[] = [];
    writer.connection.subscribe(subject, {
      callback: (_, message) => {
        queries.push(message.json<object>());
        const tooLarge = headers(409, "Message Size Exceeds MaxBytes");
        // The answer to the second request is the last one.
        if (queries.length === 1) message.respond("", { headers: tooLarge });
      },
    });
    const limits = { messagesMax: 8, bytesMax: 1_000, expiresMs: 30_000, heartbeatMs: 10_000 };
    const pulls = new OrderedPulls(writer, { stream: "FAKE", consumer: "reader", ...limits });
    await until("it asks for the large message", () => queries.length === 2);
    pulls.stop();
    expect(queries[1]).to.deep.equal({ batch: 1, expires: nanos(LARGE_PULL_MS) });
  });

  it("gives a turn back that comes when the reader is stopped", async () => {
    const bus = await Bus.connect({ url: nats.url, name: "stopped" });
    const { largeMessages } = bus.readLimits;
    const size = largeMessages.free;
    const never = new AbortController().signal;
    const turns = await Promise.all(Array.from({ length: size }, () => largeMessages.take(never)));
    await write("lines.waits", "x".repeat(600_000));
    const stop = new AbortController();
    const readers = Array.from({ length: 2 * size }, async () => {
      const messages = readInOrder(bus, {
        ...{ stream: STREAM, name: "test", select: { filter_subjects: "lines.waits" } },
        ...{ prefetch: 256, prefetchBytes: 128_000, signal: stop.signal },
      });
      for await (const _ of messages) throw new Error("a stopped reader has read");
    });
    await until("all readers wait", () => largeMessages.waiting === readers.length);
    for (const giveBack of turns) giveBack();
    stop.abort();
    await Promise.all(readers);
    expect(largeMessages.free).to.equal(size);
    await bus.close();
  });
});
