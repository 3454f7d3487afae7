import { expect } from "chai";
import { SeededRandom } from "../seeded-random.ts";
import { initialState, type ModelState } from "./state.ts";
import { keyOf } from "./state-key.ts";
import { stepsFrom } from "./steps.ts";

const WALKS = 100;
const STEPS_MAX = 40;
const BOUNDS = { commits: 3, lost: 1, deaths: 2, epochs: 4 };

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

/** Swaps the number of the shard in the name of a step, for example "a0 commits to 1". */
const swapped = (step: string) =>
  step.replace(/ ([01])$/, (_, shard) => ` ${shard === "0" ? 1 : 0}`);

type Next = { step: string; state: ModelState };

/** Returns the keys of the states that can follow, each with the name of its step. */
const keysOf = (next: readonly Next[], nameOf = (step: string) => step) =>
  next.map(({ step, state }) => `${nameOf(step)}: ${keyOf(state)}`).sort();

describe("keys of the model's states", function () {
  this.timeout(120_000);

  // The swapped state comes from swapped steps, so the test also covers fields that state-key.ts does not know.
  it("keyOf() gives a state and the same state with swapped shards the same key", () => {
    console.log(`      TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`);
    const random = new SeededRandom(seed);
    let differing = 0;
    for (let walk = 0; walk < WALKS; walk++) {
      let [state, other] = [initialState(BOUNDS), initialState(BOUNDS)];
      const steps: string[] = [];
      while (steps.length < STEPS_MAX) {
        const [next, ofOther] = [[...stepsFrom(state)], [...stepsFrom(other)]];
        expect(keysOf(ofOther, swapped), steps.join("; ")).to.deep.equal(keysOf(next));
        if (next.length === 0) break;
        const { step, state: chosen } = random.pick(next);
        // Several writes in flight may have steps of the same name. Their order is the same in both states.
        const at = next.filter((one) => one.step === step).findIndex((one) => one.state === chosen);
        const mirrored = ofOther.filter((one) => swapped(one.step) === step)[at];
        if (mirrored === undefined) throw new Error(`Cannot swap the shards of step "${step}"`);
        [state, other] = [chosen, mirrored.state];
        steps.push(step);
        expect(keyOf(other), steps.join("; ")).to.equal(keyOf(state));
        if (JSON.stringify(other) !== JSON.stringify(state)) differing += 1;
      }
    }
    expect(differing).to.be.above(WALKS);
  });
});
