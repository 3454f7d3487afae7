import { setTimeout as wait } from "node:timers/promises";
import { expect } from "chai";
import { declareStreams } from "../../../deploy/streams.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { appLogSubject, STREAMS } from "../../../schemas/subjects.ts";
import { startNats, type TestNatsServer } from "../../../scripts/testing/nats-server.ts";
import { until } from "../../../scripts/testing/until.ts";
import { tell } from "../bus/ask.ts";
import { Bus } from "../bus/bus.ts";
import { BusLines } from "./stored-lines.ts";

describe("stored-lines", function () {
  this.timeout(90_000);
  let nats: TestNatsServer;
  let bus: Bus;
  let lines: BusLines;
  const subject = appLogSubject("a.hooks");
  const { signal } = new AbortController();
  before(async () => {
    nats = await startNats();
    bus = await Bus.connect({ url: nats.url, name: "test" });
    await declareStreams(bus.jetstream, { replicas: 1, layout: FIRST_LAYOUT, tasks: [] });
    lines = new BusLines(bus, STREAMS.appLogs);
  });
  after(async () => {
    await bus.close();
    await nats[Symbol.asyncDispose]();
  });
  const print = async (from: number, to: number, at = subject) => {
    for (let index = from; index <= to; index++) tell(bus, at, `line ${index}`);
    await until("the last one is stored", async () => {
      const stored = await bus.readLast(STREAMS.appLogs, at);
      return stored?.string() === `line ${to}`;
    });
  };
  const texts = async (wanted: { after?: number; count: number; waitMs?: number }) =>
    (await lines.read(subject, { waitMs: 0, signal, ...wanted })).map(({ text }) => text);

  it("read() returns nothing for a subject without lines", async () => {
    expect(await texts({ count: 10 })).to.deep.equal([]);
    expect(await texts({ after: 0, count: 10 })).to.deep.equal([]);
  });

  it("read() returns the newest lines, or those after one, across batches and of no other subject", async () => {
    await print(1, 1_100);
    await print(1, 5, appLogSubject("a.others"));
    expect(await texts({ count: 2 })).to.deep.equal(["line 1099", "line 1100"]);
    const first = await lines.read(subject, { after: 0, count: 600, waitMs: 0, signal });
    expect(first).to.have.lengthOf(600);
    const after = first.at(-1)?.sequence ?? 0;
    const rest = await texts({ after, count: 1_000 });
    expect([rest[0], rest.at(-1), rest.length]).to.deep.equal(["line 601", "line 1100", 500]);
  });

  it("read() marks the first line if the one that the reader had was dropped with others", async () => {
    const at = appLogSubject("a.dropped");
    await print(1, 20, at);
    const read = (after: number, count = 3) => lines.read(at, { after, count, waitMs: 0, signal });
    const [first, second] = await read(0);
    expect(first).to.not.have.property("isAfterGap");
    await bus.jetstream.streams.purge(STREAMS.appLogs, { filter: at, keep: 5 });
    const rest = await read(second?.sequence ?? 0);
    expect(rest.map(({ text }) => text)).to.deep.equal(["line 16", "line 17", "line 18"]);
    expect(rest.map(({ isAfterGap }) => isAfterGap)).to.deep.equal([true, undefined, undefined]);
    const [next] = await read(rest[0]?.sequence ?? 0);
    expect(next).to.include({ text: "line 17" }).and.not.have.property("isAfterGap");
    expect(await read((rest[0]?.sequence ?? 0) + 4)).to.deep.equal([]);
  });

  it("read() waits for the next line until it comes, the time is over or its reader leaves", async () => {
    const [last] = await lines.read(subject, { count: 1, waitMs: 0, signal });
    const after = last?.sequence ?? 0;
    const waiting = texts({ after, count: 10, waitMs: 20_000 });
    await wait(50);
    await print(1_101, 1_101);
    expect(await waiting).to.deep.equal(["line 1101"]);
    expect(await texts({ after: after + 1_000, count: 10, waitMs: 50 })).to.deep.equal([]);
    const left = new AbortController();
    const leaving = lines.read(subject, {
      ...{ after: after + 1_000, count: 1, waitMs: 20_000, signal: left.signal },
    });
    left.abort();
    expect(await leaving).to.deep.equal([]);
  });
});
