import { once } from "node:events";
import { expect } from "chai";
import { systemClock } from "../../runtime/lib/clock.ts";
import { Gathering } from "./gathering.ts";

describe("Gathering", () => {
  /** Returns a Gathering whose clock records each requested pause. A pause ends only by its signal. */
  function world() {
    const asked: number[] = [];
    const clock = {
      ...systemClock,
      async wait(ms: number, signal?: AbortSignal) {
        asked.push(ms);
        if (signal && !signal.aborted) await once(signal, "abort");
      },
    };
    return { asked, gathering: new Gathering(clock, { timeShare: 0.5, msMax: 20 }) };
  }

  it("waits for a part of the last write's time, up to a limit, and not for eight callers", async () => {
    const { asked, gathering } = world();
    await gathering.pause({ answered: 8, tookMs: 10, waiting: 0 });
    expect(asked).to.deep.equal([]);
    for (const [tookMs, ms] of [
      [10, 5],
      [40, 20],
      [41, 20],
    ] as const) {
      const paused = gathering.pause({ answered: 9, tookMs, waiting: 0 });
      gathering.came(9);
      await paused;
      expect(asked.pop()).to.equal(ms);
    }
  });

  it("ends when three quarters of the answered callers are back, besides those that already waited", async () => {
    const { gathering } = world();
    let isOver = false;
    const paused = gathering.pause({ answered: 12, tookMs: 10, waiting: 5 }).then(() => {
      isOver = true;
    });
    gathering.came(13);
    await new Promise(setImmediate);
    expect(isOver).to.equal(false);
    gathering.came(14);
    await paused;
  });
});
