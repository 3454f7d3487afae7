import { expect } from "chai";
import { ACTIVATION_IDLE_MS, ACTIVATIONS_MAX, VOLATILE_IDLE_MS } from "../../schemas/limits.ts";
import { startWorld } from "../../scripts/testing/actor-world.ts";
import { counter, counterActor } from "../../scripts/testing/counter.ts";
import { tally, tallyActor } from "../../scripts/testing/probe.ts";
import { SkippingClock } from "../../scripts/testing/skipping-clock.ts";
import { until } from "../../scripts/testing/until.ts";

const definitions = [counterActor, tallyActor];

describe("Activations", function () {
  this.timeout(60_000);

  it("leave memory after their time without a message, kinds in memory alone later; state stays", async () => {
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

  it("at ACTIVATIONS_MAX idle ones leave for new ones, for calls and for mail", async () => {
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
