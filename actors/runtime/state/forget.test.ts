import { expect } from "chai";
import { mailIn } from "../../../schemas/split-streams.ts";
import { addressOf, callSubject, STREAMS, shardOf } from "../../../schemas/subjects.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { until } from "../../../scripts/testing/until.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import { systemClock } from "../lib/clock.ts";
import { FORGOTTEN_KEPT_MS } from "./stored-actor.ts";

/** With this clock, a forgotten actor is gone after eight seconds instead of FORGOTTEN_KEPT_MS. */
const behind = { ...systemClock, now: () => systemClock.now() - FORGOTTEN_KEPT_MS + 8_000 };

describe("an actor that forgets", function () {
  this.timeout(90_000);
  let world: World;
  beforeEach(async () => {
    world = await startWorld({ definitions: [probeActor] });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const call = (key: string, message: "get" | "forget" | "append", text = "x") =>
    message === "append"
      ? world.client.call(probe, key, "append", { text })
      : message === "forget"
        ? world.client.call(probe, key, "forget", { to: `${key}-heir` })
        : world.client.call(probe, key, "get", {});
  const fill = async (key: string, rows: number) => {
    for (let from = 0; from < rows; from += 400) {
      const count = Math.min(400, rows - from);
      await world.client.call(probe, key, "fillRows", { from, count, characters: 10 });
    }
  };
  const rowsOf = async (key: string) => {
    const answer = await world.client.call(probe, key, "setRow", { row: "none", value: null });
    return answer.rows;
  };
  /** Returns the stored value; an empty text if the value was removed and only a marker is left. */
  const stored = async (key: string) => {
    const subject = world.subjects.value(addressOf(probe.kind, key));
    return (await world.bus.readLast(world.subjects.stream, subject))?.string() ?? "";
  };
  const storedRows = (key: string) =>
    world.count(world.subjects.stream, world.subjects.rows(addressOf(probe.kind, key)));
  const reminders = (key: string) =>
    world.count(
      world.subjects.stream,
      world.subjects.remind(shardOf(addressOf(probe.kind, key)), addressOf(probe.kind, key), "*"),
    );

  it("replies, sends and updates live, and the next message finds no state", async () => {
    await world.host();
    await call("a", "append");
    await fill("a", 1_300);
    const due = Date.now() + 8_000;
    await world.client.call(probe, "a", "remind", { early: due, late: null });
    expect(await call("a", "forget")).to.deep.equal({ log: ["x"] });
    expect(await call("a", "get")).to.deep.equal({ log: [] });
    await until("its rows are gone", async () => (await storedRows("a")) === 0);
    expect(await rowsOf("a")).to.equal(0);
    await until("its heir heard", async () => (await call("a-heir", "get")).log.length === 1);
    await call("a", "append", "again");
    await world.client.call(probe, "a", "setRow", { row: "new", value: "1" });
    await world.client.call(probe, "b", "remind", { early: due + 200, late: null });
    await until("a later reminder has come", async () => (await call("b", "get")).log.length > 0);
    expect(await call("a", "get")).to.deep.equal({ log: ["again"] });
    expect(await rowsOf("a")).to.equal(1);
  });

  it("leaves nothing in the end, but an actor that lives again by then stays", async () => {
    await world.host({ clock: behind });
    for (const key of ["gone", "again"]) {
      await call(key, "append");
      await fill(key, 3);
      await call(key, "forget");
      await until("it is forgotten", async () => (await stored(key)).includes('"forgotten":true'));
    }
    await call("again", "append", "new");
    await fill("again", 2);
    await until("nothing of it is stored", async () => (await stored("gone")) === "");
    expect((await storedRows("gone")) + (await reminders("gone"))).to.equal(0);
    await until("the other's reminder has come", async () => (await reminders("again")) === 0);
    expect(await call("again", "get")).to.deep.equal({ log: ["new"] });
    expect(await rowsOf("again")).to.equal(2);
    expect(await call("gone", "get")).to.deep.equal({ log: [] });
    await call("gone", "append", "reborn");
    expect(await call("gone", "get")).to.deep.equal({ log: ["reborn"] });
  });

  it("gives a repeated call the same answer, also on another host", async () => {
    let host = await world.host();
    const address = addressOf(probe.kind, "repeated");
    const forgetOnce = async () => {
      const id = { client: "c", number: 1, settled: 1 };
      const payload = JSON.stringify({ message: "forget", input: { to: "heir" }, ...id });
      return (await world.bus.request(callSubject(shardOf(address), address), payload)).json();
    };
    await call("repeated", "append");
    expect(await forgetOnce()).to.deep.equal({ log: ["x"] });
    expect(await forgetOnce()).to.deep.equal({ log: ["x"] });
    await call("repeated", "append", "new");
    await host.stop();
    host = await world.host({ name: "next" });
    expect(await forgetOnce()).to.deep.equal({ log: ["x"] });
    expect(await call("repeated", "get")).to.deep.equal({ log: ["new"] });
    await until("its heir heard", async () => (await call("heir", "get")).log.length > 0);
    expect(await call("heir", "get")).to.deep.equal({ log: ["forgotten"] });
  });

  it("does not handle its mail a second time, although it arrives again", async () => {
    const first = await world.host();
    const address = addressOf(probe.kind, "mailed");
    const subject = mailIn(0).to(shardOf(address), address);
    const post = (message: string, input: object) =>
      writeAtomically(world.bus, [
        { subject, payload: JSON.stringify({ from: "test", message, input }) },
      ]);
    await post("note", { text: "before" });
    await post("forgetLater", {});
    await post("note", { text: "after" });
    const { log } = await until("it has had its mail", async () => {
      const answer = await call("mailed", "get");
      return answer.log.length === 1 && answer.log[0] === "after" && answer;
    });
    expect(log).to.deep.equal(["after"]);
    // Stops the host, most likely before the mail's reader has removed the mail, so that the next host reads it
    // again.
    await first.stop();
    await world.host({ name: "next" });
    await call("mailed", "append", "later");
    expect(await call("mailed", "get")).to.deep.equal({ log: ["after", "later"] });
  });

  it("is cleared away by the next owner if its host died meanwhile", async () => {
    const address = addressOf(probe.kind, "died");
    const subject = mailIn(0).to(shardOf(address), address);
    let host = await world.host();
    await call("died", "append");
    await fill("died", 600);
    await host.stop();
    // The keys that remain when a host is killed in the middle of deleting an actor: the value, earlier rows, and
    // applied mail.
    const payload = JSON.stringify({ from: "t", message: "note", input: { text: "again" } });
    const sequence = await writeAtomically(world.bus, [{ subject, payload }]);
    const value = `{"forgotten":true,"mail":${sequence},"reminders":{},"replies":{}}`;
    await writeAtomically(world.bus, [{ subject: world.subjects.value(address), payload: value }]);
    host = await world.host({ name: "next" });
    expect(await call("died", "get")).to.deep.equal({ log: [] });
    expect(await storedRows("died")).to.equal(0);
    expect(await rowsOf("died")).to.equal(0);
    expect(await world.count(STREAMS.mail, subject)).to.equal(0);
    await fill("died", 5);
    await host.stop();
    await world.host({ name: "third" });
    expect(await rowsOf("died")).to.equal(5);
  });

  it("shows no row of its last life in the next one, although a replica that lags behind has it", async () => {
    const address = addressOf(probe.kind, "late");
    const { subjects, bus } = world;
    const mark = subjects.rowMark(address);
    const jetstream = bus.jetstream.jetstream();
    const first = await world.host();
    await fill("late", 3);
    await until("its rows have a mark", async () => (await storedRows("late")) > 3);
    await call("late", "forget");
    await call("late", "append", "new");
    await first.stop();
    // Writes an old row and an old mark, as a replica holds them that has not purged the old rows yet.
    const newer = (await bus.readLast(subjects.stream, mark))?.string() ?? "";
    await jetstream.publish(subjects.row(address, "0"), '"old"');
    await jetstream.publish(mark, "1");
    await world.host({ name: "next" });
    let answered = false;
    const rows = rowsOf("late").finally(() => {
      answered = true;
    });
    expect(await rowsOf("other")).to.equal(0);
    expect(answered).to.equal(false);
    const old = { filter: subjects.row(address, "0") };
    await bus.jetstream.streams.purge(subjects.stream, old);
    await jetstream.publish(mark, newer);
    expect(await rows).to.equal(0);
    expect(await call("late", "get")).to.deep.equal({ log: ["new"] });
  });

  it("finds one life or the other, never a mixture, for many messages at once around it", async () => {
    await world.host();
    for (let round = 0; round < 20; round++) {
      const calls = ["append", "append", "forget", "append", "forget", "append"] as const;
      const answers = await Promise.all(calls.map((message) => call("busy", message, `${round}`)));
      expect(answers.map(({ log }) => log.length)).to.deep.equal(
        round === 0 ? [1, 2, 2, 1, 1, 1] : [2, 3, 3, 1, 1, 1],
      );
    }
  });
});
