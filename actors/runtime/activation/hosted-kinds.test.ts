import { expect } from "chai";
import { startWorld, type World } from "../../../scripts/testing/actor-world.ts";
import { logbook, logbookKind } from "../../../scripts/testing/logbook.ts";
import { refusalOf } from "../../../scripts/testing/refusal.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import type { Bus } from "../bus/bus.ts";
import { systemClock } from "../lib/clock.ts";

const hosted = (bus: Bus) => [logbookKind(bus)];
const KEYS = 24;

describe("hosted kinds on the bus", function () {
  this.timeout(180_000);

  it("take calls and mail as every kind does, leave memory when idle, and open again from their log", async () => {
    const clock = new SkippingClock();
    await using world = await startWorld({ hosted, clock });
    const host = await world.host();
    const write = (text: string) => world.client.call(logbook, "a.b", "write", { text });
    const written = await Promise.all(["one", "two", "three"].map(write));
    expect(written.map(({ line }) => line)).to.deep.equal([1, 2, 3]);
    for (const text of ["four", "five"]) await world.client.send(logbook, "a.b", "note", { text });
    const all = ["one", "two", "three", "four", "five"];
    await until("the mail is there", async () => (await lines(world, "a.b")).length === 5);
    expect(await lines(world, "a.b")).to.deep.equal(all);
    await until("the mail is gone", async () => (await world.mailWaiting()) === 0);
    expect(host.activations).to.equal(1);
    clock.skip(60_001);
    await until("it has left memory", () => host.activations === 0);
    expect(await lines(world, "a.b")).to.deep.equal(all);
  });

  it("refuse invalid messages, and are unknown to a host that does not define them", async () => {
    await using world = await startWorld({ hosted });
    await world.host();
    const wrong = await refusalOf(
      world.client.call(logbook, "a", "write", { text: 1 } as unknown as { text: string }),
    );
    expect(wrong.code).to.equal("invalid_request");
    await using other = await startWorld();
    await other.host();
    expect((await refusalOf(other.client.call(logbook, "a", "read", {}))).code).to.equal(
      "not_found",
    );
  });

  it("write each line once and in order while hosts join, leave, lose their lease and are cut off", async () => {
    await using world = await startWorld({ hosted });
    const clocks = [new SkippingClock(), new SkippingClock(), new SkippingClock()];
    const hosts = [
      await world.host({ name: "first", clock: clocks[0] ?? systemClock }),
      await world.host({ name: "second", clock: clocks[1] ?? systemClock }),
    ];
    let writing = true;
    const told = new Map<string, string[]>();
    const writers = Array.from({ length: KEYS }, async (_, number) => {
      const key = `k${number}`;
      const mine: string[] = [];
      told.set(key, mine);
      for (let count = 0; writing; count++) {
        const write = { text: `c${count}` };
        await world.client.call(logbook, key, "write", write, { deadlineMs: 60_000 });
        mine.push(`c${count}`);
        if (count % 5 !== 0) continue;
        await world.client.send(logbook, key, "note", { text: `m${count}` });
        mine.push(`m${count}`);
      }
    });
    const more = (by: number) => {
      const goal = total(told) + by;
      return until("more is written", () => total(told) > goal, 60_000);
    };
    await more(100);
    hosts.push(await world.host({ name: "third", clock: clocks[2] ?? systemClock }));
    await more(100);
    // By its own clock, the first host was away for longer than its lease. So it must verify its ownership before it
    // answers, and must take shards again.
    clocks[0]?.skip(20_000);
    await more(100);
    await hosts[1]?.stop();
    await more(100);
    await world.nats?.restart();
    await more(100);
    clocks[2]?.skip(20_000);
    await more(100);
    writing = false;
    await Promise.all(writers);
    await until("all mail is there", async () => (await world.mailWaiting()) === 0);
    for (const [key, mine] of told) {
      const found = await lines(world, key);
      expect(found.toSorted(), key).to.deep.equal(mine.toSorted());
      for (const kind of ["c", "m"]) {
        const ofKind = (all: readonly string[]) => all.filter((line) => line.startsWith(kind));
        expect(ofKind(found), key).to.deep.equal(ofKind(mine));
      }
    }
  });
});

const total = (told: ReadonlyMap<string, readonly string[]>) =>
  [...told.values()].reduce((sum, { length }) => sum + length, 0);

const lines = async (world: World, key: string) =>
  (await world.client.call(logbook, key, "read", {})).lines;
