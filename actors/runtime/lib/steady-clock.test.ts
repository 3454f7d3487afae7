import { expect } from "chai";
import { SettableClock } from "../../../scripts/testing/settable-clock.ts";
import { systemClock } from "./clock.ts";
import { readSteady } from "./steady-clock.ts";

describe("readSteady()", () => {
  it("returns one id for each clock, and how far its time of day was set", () => {
    const clock = new SettableClock(0);
    const before = readSteady(clock);
    clock.aheadMs = -3_600_000;
    const after = readSteady(clock);
    expect(after.id).to.equal(before.id);
    expect(after.aheadMs - before.aheadMs).to.be.within(-3_600_100, -3_599_900);
    expect(readSteady(new SettableClock(0)).id).to.not.equal(before.id);
  });

  it("takes the fastest of three readings, because the process may be suspended during one", () => {
    const gaps = [700, 300, 0];
    let now = 1_000;
    const clock = {
      ...systemClock,
      monotonic: () => now,
      now: () => {
        now += gaps.shift() ?? 0;
        return 50_000 + now;
      },
    };
    expect(readSteady(clock).aheadMs).to.equal(50_000);
    expect(gaps).to.deep.equal([]);
  });
});
