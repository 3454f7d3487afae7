import { expect } from "chai";
import { FIRST_LAYOUT } from "../../../schemas/data-layout.ts";
import { agentLogsOf } from "../../../schemas/split-streams.ts";
import { STREAMS } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { WriteRefused } from "../../runtime/bus/atomic-batch.ts";
import { systemClock } from "../../runtime/lib/clock.ts";
import { SharedWrites } from "./shared-writes.ts";
import { LogTaken, SubjectLog } from "./subject-log.ts";

describe("SharedWrites", function () {
  this.timeout(90_000);

  it("store simultaneous writes together, return each sequence, and refuse only fenced writes", async () => {
    await using world = await startWorld();
    const writes = new SharedWrites(world.bus, systemClock);
    const subject = (number: number) => agentLogsOf(FIRST_LAYOUT, `w.${number}`).log(`w.${number}`);
    const first = await Promise.all(
      Array.from({ length: 40 }, (_, number) =>
        writes.write({ subject: subject(number), payload: "1", expect: { sequence: 0 } }),
      ),
    );
    for (const [number, sequence] of first.entries()) {
      const stored = await world.bus.readLast(STREAMS.agents, subject(number));
      expect(stored?.seq).to.equal(sequence);
    }
    const second = await Promise.allSettled(
      first.map((sequence, number) => {
        const stale = number === 7 ? 1_000 : 0;
        const expect = { sequence: sequence + stale };
        return writes.write({ subject: subject(number), payload: "2", expect });
      }),
    );
    for (const [number, outcome] of second.entries()) {
      const stored = await world.bus.readLast(STREAMS.agents, subject(number));
      if (outcome.status === "fulfilled") expect(stored?.seq).to.equal(outcome.value);
      else expect(outcome.reason).to.be.instanceOf(WriteRefused);
      expect(outcome.status === "rejected", String(number)).to.equal(number === 7);
      expect(stored?.string()).to.equal(number === 7 ? "1" : "2");
    }
  });
});

describe("SharedWrites of several accounts", function () {
  this.timeout(90_000);

  it("let a write of another account pass those of an account that writes much", async () => {
    await using world = await startWorld();
    const writes = new SharedWrites(world.bus, systemClock);
    const order: string[] = [];
    const write = (agent: string) => {
      const subject = agentLogsOf(FIRST_LAYOUT, agent).log(agent);
      const payload = Buffer.alloc(500_000);
      return writes
        .write({ subject, payload, expect: { sequence: 0 } })
        .then(() => order.push(agent));
    };
    const many = Array.from({ length: 60 }, (_, number) => write(`many.${number}`));
    await Promise.all([...many, write("few.0")]);
    // Without turns it is the last one.
    expect(order.indexOf("few.0")).to.be.below(30);
  });
});

describe("SubjectLog", function () {
  this.timeout(90_000);
  const text = (payload: string) => ({ payload: Buffer.from(payload), headers: { N: payload } });

  it("takes over everything, shuts out the former owner, and goes on after a rollup", async () => {
    await using world = await startWorld();
    const writes = new SharedWrites(world.bus, systemClock);
    const at = {
      stream: STREAMS.agents,
      subject: agentLogsOf(FIRST_LAYOUT, "log").log("log"),
      writes,
    };
    const open = () => SubjectLog.takeOver(world.bus, at, (last) => text(last ? "again" : "first"));
    const read = (messages: readonly { header(name: string): string }[]) =>
      messages.map((message) => message.header("N"));
    const one = await open();
    expect(one.messages).to.deep.equal([]);
    await one.log.append(text("a"));
    const two = await open();
    expect(read(two.messages)).to.deep.equal(["first", "a"]);
    const error = await one.log.append(text("late")).catch((cause: unknown) => cause);
    expect(error).to.be.instanceOf(LogTaken);
    for (let number = 0; number < 600; number++) await two.log.append(text(`b${number}`));
    const three = await open();
    expect(three.messages).to.have.length(603);
    await three.log.append({ ...text("image"), isRollup: true });
    await three.log.append(text("c"));
    expect(read((await open()).messages)).to.deep.equal(["image", "c"]);
    const many = await Promise.all(Array.from({ length: 4 }, open));
    expect(many.filter(({ log }) => log instanceof SubjectLog)).to.have.length(4);
    await world.bus.connection.flush();
  });
});
