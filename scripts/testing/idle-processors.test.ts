import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { IdleProcessors } from "./idle-processors.ts";

describe("IdleProcessors", () => {
  /** Simulates processors. `shares` are their idle shares in the first second, the second and so on. */
  function machine(...shares: number[]) {
    let idle = 0;
    let total = 0;
    const processors = new IdleProcessors({
      times: () => ({ idle, total }),
      wait: async () => {
        await setImmediate();
        total += 1_000;
        idle += 1_000 * (shares.shift() ?? 0);
      },
    });
    return { processors, seconds: () => total / 1_000 };
  }

  it("turn() waits until an eighth of the processors' time is idle", async () => {
    const { processors, seconds } = machine(0, 0.124, 0.125);
    await processors.turn(() => false);
    expect(seconds()).to.equal(3);
  });

  it("turn() measures once more for each caller", async () => {
    const { processors, seconds } = machine(0.5, 0, 0.5);
    const turns = [processors.turn(() => false), processors.turn(() => false)];
    expect(await Promise.all(turns.map((turn) => turn.then(seconds)))).to.deep.equal([1, 3]);
  });

  it("turn() ends without idle time when no file is left", async () => {
    const { processors, seconds } = machine();
    await processors.turn(() => seconds() >= 2);
    expect(seconds()).to.equal(2);
  });
});
