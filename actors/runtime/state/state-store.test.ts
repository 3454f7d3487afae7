import { expect } from "chai";
import { allStreams } from "../../../deploy/stream-declarations.ts";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { stateBucket, stateSubjects } from "../../../schemas/subjects.ts";
import { startNats } from "../../../scripts/testing/nats-server.ts";
import { probeActor } from "../../../scripts/testing/probe.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import { Bus } from "../bus/bus.ts";
import { StateStore } from "./state-store.ts";

const ACTORS = 24;
const ROWS = 30;
const ROW_BYTES = 100_000;

describe("StateStore", function () {
  this.timeout(240_000);

  it("load() of many actors with many rows has no more bytes on the way than the connection may have", async () => {
    await using parts = new AsyncDisposableStack();
    const slow: string[] = [];
    const onLine = (line: string) => void (/slow consumer/i.test(line) && slow.push(line));
    // All rows have 72 MB.
    const nats = await startNats({ config: "max_pending: 24MB", onLine });
    parts.defer(() => nats.stop());
    const open = async (name: string) => {
      const bus = await Bus.connect({ url: nats.url, name });
      parts.defer(() => bus.close());
      return bus;
    };
    const writer = await open("writer");
    const subjects = stateSubjects(stateBucket(0));
    const streams = allStreams({ replicas: 1, layout: FIRST_LAYOUT, tasks: [] });
    const stream = streams.find(({ name }) => name === subjects.stream);
    if (stream) await writer.jetstream.streams.add(stream as never);
    const addresses = Array.from({ length: ACTORS }, (_, index) => `probe.actor${index}`);
    const payload = JSON.stringify("x".repeat(ROW_BYTES));
    const value = '{"rows":1,"state":{"log":[]},"mail":0,"reminders":{},"replies":{}}';
    for (const address of addresses) {
      const rows = Array.from({ length: ROWS }, (_, index) => ({
        subject: subjects.row(address, `row${index}`),
        payload,
      }));
      await writeAtomically(writer, [
        ...rows,
        { subject: subjects.rowMark(address), payload: "1" },
        { subject: subjects.value(address), payload: value },
      ]);
    }
    const host = await open("host");
    const store = new StateStore(host, subjects);
    const loaded = await Promise.all(addresses.map((address) => store.load(probeActor, address)));
    expect(loaded.map(({ rows }) => rows.size)).to.deep.equal(addresses.map(() => ROWS));
    expect(host.disconnections).to.equal(0);
    expect(slow).to.deep.equal([]);
  });
});
