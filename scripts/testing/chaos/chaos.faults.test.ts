import { expect } from "chai";
import { runChaos } from "./run-chaos.ts";

/**
 * Duration of the faults: two rounds of server faults on an idle machine. On a busy machine there are fewer faults,
 * and each load must still succeed.
 */
const BROKEN_MS = 90_000;
/**
 * Decides the kinds, the order and the durations of the faults. It does not decide which requests are in flight at
 * each fault.
 */
const SEED = 23;

describe("a cluster under all loads and all faults", function () {
  // The start, the last fault and the check take minutes on a machine that is ten times slower.
  this.timeout(1_500_000);

  it("loses and doubles nothing, and leaves nothing behind", async () => {
    const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SEED);
    console.log(`      TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`);
    const print = (line: string) => console.log(`      ${line}`);
    expect(await runChaos({ ms: BROKEN_MS, seed, print })).to.deep.equal([]);
  });
});
