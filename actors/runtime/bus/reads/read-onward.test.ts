import { JetStreamApiError } from "@nats-io/jetstream";
import { expect } from "chai";
import { startNats, type TestNatsServer } from "../../../../scripts/testing/nats-server.ts";
import { connectPatiently } from "../../../../scripts/testing/patient-bus.ts";
import type { Bus } from "../bus.ts";
import { readOnward } from "./read-onward.ts";

const STREAM = "LINES";
/** More than the server puts into one answer. */
const MESSAGES = 1_030;

describe("readOnward()", function () {
  this.timeout(60_000);
  let server: TestNatsServer;
  let bus: Bus;
  before(async () => {
    server = await startNats();
    bus = await connectPatiently(server.url);
    await bus.jetstream.streams.add({ name: STREAM, subjects: ["lines.*"], allow_direct: true });
    const jetstream = bus.jetstream.jetstream();
    const publish = (subject: string, text: string) => jetstream.publish(subject, text);
    await Promise.all(
      Array.from({ length: MESSAGES }, (_, index) => publish("lines.many", String(index))),
    );
    // No answer holds two of these.
    for (const letter of ["a", "b", "c"]) {
      await publish("lines.other", "-");
      await publish("lines.large", letter.repeat(900_000));
    }
  });
  after(async () => {
    await bus?.close();
    await server?.stop();
  });

  const read = async (subject: string, from = 1) => {
    const messages = await Array.fromAsync(readOnward(bus, STREAM, subject, from));
    return messages.map((message) => message.string());
  };

  it("reads all messages of the subject in order, from a sequence on", async () => {
    const all = Array.from({ length: MESSAGES }, (_, index) => String(index));
    expect(await read("lines.many")).to.deep.equal(all);
    expect(await read("lines.many", 1_020)).to.deep.equal(all.slice(1_019));
    expect(await read("lines.many", MESSAGES + 1)).to.deep.equal([]);
    expect(await read("lines.none")).to.deep.equal([]);
  });

  it("reads messages that are larger than an answer", async () => {
    const read3 = await read("lines.large");
    expect(read3.map((text) => [text[0], text.length])).to.deep.equal([
      ["a", 900_000],
      ["b", 900_000],
      ["c", 900_000],
    ]);
  });

  it("takes few requests for many messages", async () => {
    const { requests } = bus;
    const subjects: string[] = [];
    const askForMany = requests.askForMany.bind(requests);
    requests.askForMany = (...asked) => {
      subjects.push(asked[0]);
      return askForMany(...asked);
    };
    try {
      expect(await read("lines.many")).to.have.length(MESSAGES);
    } finally {
      requests.askForMany = askForMany;
    }
    // Two answers hold all, and a third holds nothing; then the leader has no more.
    expect(subjects).to.have.length(3);
  });

  it("reads from the leader what a replica lacks", async () => {
    const { requests } = bus;
    const askForMany = requests.askForMany.bind(requests);
    // A replica that has not got the last messages yet.
    requests.askForMany = async (subject, query, isLast, options) => {
      const { seq } = JSON.parse(query) as { seq: number };
      const beyond = JSON.stringify({ ...JSON.parse(query), seq: 1_000_000 });
      return askForMany(subject, seq > 1_020 ? beyond : query, isLast, options);
    };
    try {
      expect(await read("lines.many", 1_025)).to.have.length(MESSAGES - 1_024);
    } finally {
      requests.askForMany = askForMany;
    }
  });

  it("reads from the leader where no replica answers, and rejects where there is no stream", async () => {
    const info = await bus.jetstream.streams.info(STREAM);
    await bus.jetstream.streams.update(STREAM, { ...info.config, allow_direct: false });
    expect(await read("lines.large")).to.have.length(3);
    const error = await Array.fromAsync(readOnward(bus, "NONE", "lines.many", 1)).catch((e) => e);
    expect(error).to.be.instanceOf(JetStreamApiError);
  });
});
