import { connect, createServer, type Socket } from "node:net";
import { expect } from "chai";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { Bus } from "../../runtime/bus/bus.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { writersOf } from "./shared-writes.ts";
import { SubjectLog } from "./subject-log.ts";

const STREAM = "AGENTS";
const subjectOf = (name: string) => `agentlog.${name}`;

/** A server whose clients may have `pendingMegabytes` unsent, and a writer to its stream of logs. */
async function startLogs(pendingMegabytes: number, onLine = (_line: string) => {}) {
  const parts = new AsyncDisposableStack();
  const nats = await startNats({ config: `max_pending: ${pendingMegabytes}MB`, onLine });
  parts.defer(() => nats.stop());
  const open = async (name: string, url = nats.url) => {
    const bus = await Bus.connect({ url, name });
    parts.defer(() => bus.close());
    return bus;
  };
  const writer = await open("writer");
  const config = { name: STREAM, subjects: [subjectOf(">")], allow_direct: true };
  await writer.jetstream.streams.add({ ...config, allow_atomic: true, allow_rollup_hdrs: true });
  const write = (name: string, record: string | Uint8Array) =>
    writer.jetstream.jetstream().publish(subjectOf(name), record);
  const takeOver = async (bus: Bus, name: string) => {
    const writes = writersOf(bus, systemClock)(STREAM);
    const at = { stream: STREAM, subject: subjectOf(name), writes };
    return SubjectLog.takeOver(bus, at, () => ({ payload: new Uint8Array(), headers: {} }));
  };
  return { nats, open, write, takeOver, [Symbol.asyncDispose]: () => parts.disposeAsync() };
}

/** Passes everything on to a server, but loses the first message from it that `isLost` selects. */
async function losingProxy(url: string, isLost: (frame: Buffer) => boolean) {
  const target = new URL(url);
  const port = Number(target.port);
  const sockets = new Set<Socket>();
  let lost = 0;
  const server = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    let rest = Buffer.alloc(0);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket
        .on("error", () => {})
        .on("close", () => [client, upstream].map((end) => end.destroy()));
    }
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes) => {
      rest = Buffer.concat([rest, Buffer.from(bytes as Buffer)]);
      for (;;) {
        const line = rest.indexOf("\r\n");
        if (line < 0) return;
        const words = rest.subarray(0, line).toString().split(" ");
        const isMessage = words[0] === "MSG" || words[0] === "HMSG";
        const end = line + 2 + (isMessage ? Number(words.at(-1)) + 2 : 0);
        if (rest.length < end) return;
        const frame = rest.subarray(0, end);
        rest = rest.subarray(end);
        if (lost === 0 && isMessage && isLost(frame)) lost += 1;
        else client.write(Buffer.from(frame));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (typeof address === "object" && address) target.port = String(address.port);
  return {
    url: target.href,
    lost: () => lost,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("SubjectLog", function () {
  this.timeout(240_000);

  it("takeOver() reads large logs without more bytes at once than the connection may have", async () => {
    const lines: string[] = [];
    const isSlow = (line: string) => /slow consumer/i.test(line) && lines.push(line);
    // Without a limit, the answers for these logs have 120 MB. All bytes that wait for a connection count.
    await using logs = await startLogs(32, isSlow);
    const record = Buffer.alloc(800_000, "x");
    const names = ["a", "b", "c"];
    for (const name of names) for (let at = 0; at < 50; at++) await logs.write(name, record);
    const host = await logs.open("host");
    const taken = await Promise.all(names.map((name) => logs.takeOver(host, name)));
    expect(taken.map(({ messages }) => messages.length)).to.deep.equal([50, 50, 50]);
    expect(host.disconnections).to.equal(0);
    expect(lines).to.deep.equal([]);
  });

  it("takeOver() reads again when a message of an answer is lost", async () => {
    await using logs = await startLogs(64);
    const texts = ["one", "two", "three", "four", "five"];
    for (const text of texts) await logs.write("a", text);
    await using proxy = await losingProxy(
      logs.nats.url,
      (frame) => frame.includes("Nats-Sequence: 3\r\n") && frame.includes("Nats-Num-Pending"),
    );
    const host = await logs.open("host", proxy.url);
    const { messages } = await logs.takeOver(host, "a");
    expect(proxy.lost()).to.equal(1);
    expect(messages.map(({ data }) => Buffer.from(data).toString())).to.deep.equal(texts);
    await host.close();
  });

  it("takeOver() lets the log of another account pass those of an account that opens many", async () => {
    await using logs = await startLogs(64);
    const host = await logs.open("host");
    const names = Array.from({ length: 40 }, (_, index) => `many.app.A.${index}`);
    for (const name of [...names, "few.app.A.0"]) await logs.write(name, "record");
    const order: string[] = [];
    const open = (name: string) => logs.takeOver(host, name).then(() => order.push(name));
    await Promise.all([...names, "few.app.A.0"].map(open));
    // Without turns it is the last one.
    expect(order.indexOf("few.app.A.0")).to.be.below(30);
  });
});
