import { expect } from "chai";
import {
  CHECKPOINT_MS,
  ROW_BYTES_MAX,
  TRANSITION_ROW_BYTES_MAX,
  TRANSITION_ROWS_MAX,
} from "../../../schemas/limits.ts";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { HoldingClock } from "../../../scripts/testing/holding-clock.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { until } from "../../../scripts/testing/until.ts";
import { CHANGE_ROWS_MAX } from "../activation/change.ts";
import type { ActorHost } from "../actor-host.ts";

describe("rows", function () {
  this.timeout(60_000);
  let world: World;
  let host: ActorHost;
  const clock = new HoldingClock(CHECKPOINT_MS);
  before(async () => {
    world = await startWorld({ definitions: [probeActor] });
    host = await world.host({ clock, longLease: true });
  });
  after(() => world[Symbol.asyncDispose]());

  const fill = (key: string, from: number, count: number, characters = 20) =>
    world.client.call(probe, key, "fillRows", { from, count, characters });
  const set = (key: string, row: string, value: string | null) =>
    world.client.call(probe, key, "setRow", { row, value });
  /** Counts the stored rows, without the mark that is stored beside them. */
  const stored = async (key: string) =>
    (await world.count(world.subjects.stream, world.subjects.rows(`probe.${key}`))) - 1;

  it("one of thousands is changed by one journal message, and then by the row, the mark and the value", async () => {
    for (let from = 0; from < 4_000; from += TRANSITION_ROWS_MAX) {
      await fill("many", from, TRANSITION_ROWS_MAX);
    }
    clock.release();
    await until("they are in their keys", async () => (await stored("many")) === 4_000);
    clock.hold();
    const written: string[] = [];
    for (const subjects of [world.subjects.all, world.subjects.journals]) {
      world.bus.connection.subscribe(subjects, {
        callback: (_, { subject }) => void written.push(subject),
      });
    }
    const { value, row, rowMark } = world.subjects;
    const last = value("probe.many");
    const inJournal = () => written.filter((subject) => /^journal\./.test(subject));
    for (const row of ["row1", "row2", "row3"]) await set("many", row, "new");
    await until("all are in the journal", () => inJournal().length === 3);
    expect(written).to.not.include(last);
    clock.release();
    await until("the keys hold it", () => written.includes(last));
    const ofActor = written.filter((subject) => subject.startsWith(last));
    expect(ofActor).to.deep.equal([
      ...["row1", "row2", "row3"].map((name) => row("probe.many", name)),
      rowMark("probe.many"),
      last,
    ]);
    expect(await stored("many")).to.equal(4_000);
  });

  it("are all present after a restart of their host, without removed ones", async () => {
    await fill("kept", 0, 500);
    await fill("kept", 500, 500);
    await set("kept", "row7", null);
    await set("kept", "é. *=", "odd name");
    await set("kept", "row8", "changed");
    await host.stop();
    host = await world.host();
    expect(await set("kept", "more", "x")).to.deep.equal({ rows: 1_000 });
    const get = (row: string) => world.client.call(probe, "kept", "getRow", { row });
    expect(await get("é. *=")).to.deep.equal({ value: "odd name" });
    expect(await get("row8")).to.deep.equal({ value: "changed" });
    expect(await get("row7")).to.deep.equal({ value: null });
    await set("kept", "row8", null);
    expect(await set("kept", "row8", "again")).to.deep.equal({ rows: 1_000 });
    expect(await set("many", "row0", "x")).to.deep.equal({ rows: 4_000 });
  });

  it("are read without a consumer where they are few", async () => {
    await fill("few", 0, 500);
    await host.stop();
    host = await world.host();
    let created = 0;
    const subject = `$JS.EVENT.ADVISORY.CONSUMER.CREATED.${world.subjects.stream}.*`;
    const watch = world.bus.connection.subscribe(subject, {
      callback: (_, message) => {
        if (message.subject.includes(".rows-")) created += 1;
      },
    });
    await world.bus.connection.flush();
    expect((await fill("few", 0, 0)).rows).to.equal(500);
    expect((await fill("many", 0, 0)).rows).to.equal(4_000);
    await until("the many are read by a consumer", () => created > 0);
    expect(created).to.equal(1);
    watch.unsubscribe();
  });

  it("are not read from a replica that lags behind, because their mark is older than the value", async () => {
    await fill("late", 0, 10);
    await host.stop();
    const mark = world.subjects.rowMark("probe.late");
    const store = world.bus.jetstream.jetstream();
    await store.publish(mark, "0");
    host = await world.host();
    const answer = fill("late", 0, 0);
    let answered = false;
    void answer.then(() => {
      answered = true;
    });
    expect((await fill("other", 0, 0)).rows).to.equal(0);
    expect(answered).to.equal(false);
    await store.publish(mark, "1");
    expect((await answer).rows).to.equal(10);
  });

  it("that many calls change at once wait for a commit past CHANGE_ROWS_MAX, and none is lost", async () => {
    const each = 100;
    const calls = Math.ceil((CHANGE_ROWS_MAX / each) * 10);
    await Promise.all(
      Array.from({ length: calls }, (_, index) => fill("crowd", index * each, each)),
    );
    await until("the keys hold them", async () => (await stored("crowd")) === calls * each);
    expect((await fill("crowd", 0, 0)).rows).to.equal(calls * each);
  });

  it("may fill two transitions to their limits at once; a transition past them is an internal error", async () => {
    const count = Math.floor(TRANSITION_ROW_BYTES_MAX / ROW_BYTES_MAX);
    const room = ROW_BYTES_MAX - 2;
    await Promise.all([0, 1, 2, 3].map((part) => fill("large", part * count, count, room)));
    await until("the keys hold them", async () => (await stored("large")) === 4 * count);
    for (const [rows, characters] of [
      [count + 1, room],
      [1, room + 1],
      [TRANSITION_ROWS_MAX + 1, 1],
    ] as const) {
      const error = await refusalOf(fill("large", 100, rows, characters));
      expect(error.code).to.equal("internal_error");
    }
    expect((await fill("large", 0, 0)).rows).to.equal(4 * count);
    await Promise.all([0, 500, 1_000].map((from) => fill("wide", from, TRANSITION_ROWS_MAX)));
    const wide = 3 * TRANSITION_ROWS_MAX;
    await until("the keys hold them", async () => (await stored("wide")) === wide);
  });

  it("of a key differ from those of a key with the same beginning", async () => {
    await set("a", "b", "1");
    await set("a.b", "c", "2");
    await set("a.b.c", "d", "3");
    await host.stop();
    host = await world.host();
    for (const key of ["a", "a.b", "a.b.c"]) expect((await fill(key, 0, 0)).rows).to.equal(1);
  });
});
