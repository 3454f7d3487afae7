import { expect } from "chai";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../../scripts/testing/counter.ts";
import { probe, probeActor, tally, tallyActor } from "../../../scripts/testing/probe.ts";
import { SkippingClock } from "../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  ACTIVATION_IDLE_MS,
  ACTIVATIONS_MAX,
  PASSIVATION_SWEEP_MS,
  VOLATILE_IDLE_MS,
} from "./activations.ts";

const definitions = [counterActor, probeActor, tallyActor];

describe("Activations", function () {
  this.timeout(300_000);

  it("leave memory after an idle time, kinds without stored state after a longer one; the state stays", async () => {
    const clock = new SkippingClock();
    await using world = await startWorld({ definitions, clock });
    const host = await world.host();
    await world.client.call(counter, "idle", "increment", { by: 5 });
    await world.client.call(tally, "idle", "add", {});
    clock.skip(ACTIVATION_IDLE_MS / 2);
    await world.client.call(counter, "busy", "increment", { by: 1 });
    clock.skip(ACTIVATION_IDLE_MS / 2 + 1);
    await until("the idle counter has left", () => host.activations === 2);
    expect(await world.client.call(tally, "idle", "add", {})).to.deep.equal({ count: 2 });
    clock.skip(VOLATILE_IDLE_MS + 1);
    await until("all have left", () => host.activations === 0);
    expect(await world.client.call(counter, "idle", "get", {})).to.deep.equal({ count: 5 });
    expect(await world.client.call(tally, "idle", "add", {})).to.deep.equal({ count: 1 });
  });

  it("leave while the rows in memory exceed their limit, the longest idle first, and come back complete", async () => {
    await using world = await startWorld({ definitions });
    const host = await world.host({ rowBytesMax: 40_000 });
    const fill = (key: string, from: number, count: number) =>
      world.client.call(probe, key, "fillRows", { from, count, characters: 98 });
    // Each row has 98 characters and two quotes: 100 bytes.
    for (const key of ["a", "b", "c", "d"]) await fill(key, 0, 100);
    await world.client.call(counter, "none", "increment", { by: 1 });
    const settled = host.activations;
    await new Promise((resolve) => setTimeout(resolve, 2 * PASSIVATION_SWEEP_MS));
    expect(host.activations, "at the bound").to.equal(settled);
    await fill("d", 100, 1);
    await until("the longest idle has left", () => host.activations === settled - 1);
    expect(await fill("a", 100, 1)).to.deep.equal({ rows: 100 });
    await until("the next has left", () => host.activations === settled - 1);
    for (let from = 0; from < 400; from += 100) await fill("big", from, 100);
    await until("all others with rows have left", () => host.activations === 2);
    expect(await fill("b", 100, 1)).to.deep.equal({ rows: 100 });
  });

  it("at ACTIVATIONS_MAX idle actors make room for new ones, for calls and for mail", async () => {
    await using world = await startWorld({ definitions });
    const host = await world.host();
    await each(ACTIVATIONS_MAX, (number) => world.client.call(tally, `a${number}`, "add", {}));
    expect(host.activations).to.equal(ACTIVATIONS_MAX);
    await world.client.call(counter, "one-more", "increment", { by: 1 });
    expect(host.activations).to.be.below(ACTIVATIONS_MAX);
    const left = ACTIVATIONS_MAX - host.activations;
    await each(left, (number) => world.client.call(tally, `b${number}`, "add", {}));
    expect(host.activations).to.equal(ACTIVATIONS_MAX);
    await world.client.send(tally, "by-mail", "addLater", {});
    await until("mail made room", () => host.activations < ACTIVATIONS_MAX);
    expect(await world.client.call(counter, "one-more", "get", {})).to.deep.equal({ count: 1 });
  });
});

async function each(count: number, call: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: 64 }, async () => {
      while (next < count) await call(next++);
    }),
  );
}
