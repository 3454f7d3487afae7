import { expect } from "chai";
import { addressOf, shardOf } from "../../../schemas/subjects.ts";
import { startWorld } from "../../../scripts/testing/actor-world.ts";
import { probe, probeActor } from "../../../scripts/testing/probe.ts";
import { SettableClock } from "../../../scripts/testing/settable-clock.ts";
import { until } from "../../../scripts/testing/until.ts";

const HOURS_MS = 3 * 3_600_000;

describe("reminders after the time of day was set back", function () {
  this.timeout(120_000);

  it("come early if they may, and all others at their time", async () => {
    // The bus follows the machine's clock. So a clock that is ahead at first is one that is set back later.
    const clock = new SettableClock(HOURS_MS);
    const definition = { ...probeActor, mayComeEarly: ["early" as const] };
    await using world = await startWorld({ definitions: [definition], clock });
    await world.host();
    const { stream, remind } = world.subjects;
    const keys = Array.from({ length: 250 }, (_, index) => `key ${index}`);
    const scheduled = (key: string, message: string) => {
      const address = addressOf("probe", key);
      return world.count(stream, remind(shardOf(address), address, message));
    };
    const log = async (key: string) => (await world.client.call(probe, key, "get", {})).log;
    const at = clock.now() + 1_000_000;
    await Promise.all(
      keys.map((key) => world.client.call(probe, key, "remind", { early: at, late: at })),
    );
    for (const key of keys) {
      await until(`${key} is scheduled`, async () => (await scheduled(key, "late")) === 1);
    }
    for (const key of keys) expect(await log(key)).to.deep.equal([]);
    clock.aheadMs = 0;
    for (const key of keys) {
      await until(`${key} hears early`, async () => (await log(key)).join() === "early", 30_000);
    }
    const warned = world.log.filter(({ msg }) => msg.startsWith("time of day was set back"));
    expect(warned).to.have.length(1);
    expect(warned[0]?.setBackMs).to.be.within(HOURS_MS - 100, HOURS_MS + 100);
    // What is left on the bus does nothing when it fires, and a new reminder comes at its time.
    const [key = ""] = keys;
    await world.client.call(probe, key, "remind", { early: clock.now() + 500 });
    await until("it hears the new one", async () => (await log(key)).join() === "early,early");
    expect(await scheduled(key, "late")).to.equal(1);
  });
});
