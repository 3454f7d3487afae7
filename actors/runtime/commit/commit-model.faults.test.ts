/** Explores the model of commits. No order of steps breaks a promise, and each rule is necessary. */
import { expect } from "chai";
import { follow, search } from "../../../scripts/testing/commit-model/search.ts";
import {
  type Bounds,
  initialState,
  type ModelState,
  RULES,
  type Rule,
} from "../../../scripts/testing/commit-model/state.ts";

const SMALL: Bounds = { commits: 2, lost: 0, deaths: 1, epochs: 2 };

/** Other bounds and first steps for rules whose fault the default search does not reach soon. */
const FAULTS: Partial<Record<Rule, { bounds: Partial<Bounds>; steps?: readonly string[] }>> = {
  checkpointsExpectTheLast: { bounds: { lost: 1, deaths: 0, epochs: 1 } },
  commitsWaitForRoom: { bounds: { commits: 3 } },
  replaysAreFenced: {
    bounds: { deaths: 2, epochs: 3 },
    steps: [
      "a0 commits to 0",
      "a commit of a0 arrives",
      "a0 has its commit stored",
      "the lease of a0 ends",
      "b0 looks at the epoch of 0",
      "b0 claim 0",
      "b0 seal 0",
      "b0 sealJournal 0",
      "the lease of b0 ends",
      "a0 goes on anew",
    ],
  },
  sourcesAreKept: {
    bounds: { commits: 1, deaths: 2, epochs: 3 },
    steps: [
      "a0 commits to 0",
      "a commit of a0 arrives",
      "a0 has its commit stored",
      "the lease of a0 ends",
      "b0 looks at the epoch of 0",
      "b0 claim 0",
      "the lease of b0 ends",
      "b0 goes on anew",
      "a0 goes on anew",
    ],
  },
  replaysReadTheEpoch: {
    bounds: { commits: 3, epochs: 6 },
    steps: [
      "a0 commits to 0",
      "a commit of a0 arrives",
      "a0 has its commit stored",
      "a0 writes a checkpoint",
      "a0 commits to 1",
      "a commit of a0 arrives",
      "a0 has its commit stored",
      "a checkpoint of a0 arrives",
      "a0 has its checkpoint stored",
      "a0 drops, to give it back, 0",
      "a0 leave 0",
      "b0 looks at the epoch of 0",
      "b0 claim 0",
      "b0 load 0",
      "b0 commits to 0",
      "a commit of b0 arrives",
      "b0 has its commit stored",
      "b0 writes a checkpoint",
      "a checkpoint of b0 arrives",
      "b0 has its checkpoint stored",
      "b0 drops, to give it back, 0",
      "b0 leave 0",
    ],
  },
  epochsAreCompared: { bounds: { deaths: 0, epochs: 3 } },
  givenBackInKeys: { bounds: { deaths: 0, epochs: 3 } },
};

const start = (bounds: Partial<Bounds>, without?: Rule): ModelState =>
  initialState({ ...SMALL, ...bounds }, without);

describe("the model of commits", function () {
  this.timeout(1_200_000);

  const bounds: Bounds[] = [
    SMALL,
    { commits: 2, lost: 1, deaths: 0, epochs: 1 },
    { commits: 1, lost: 1, deaths: 1, epochs: 2 },
    { commits: 1, lost: 0, deaths: 2, epochs: 2 },
    { commits: 1, lost: 0, deaths: 0, epochs: 3 },
  ];
  for (const of of bounds) {
    it(`keeps its promises in every order of steps within ${JSON.stringify(of)}`, () => {
      const { fault, states, steps } = search(initialState(of));
      expect(fault, steps.join("; ")).to.equal(null);
      console.log(`      ${states} states`);
    });
  }

  for (const rule of Object.keys(RULES) as Rule[]) {
    const { bounds: own = {}, steps = [] } = FAULTS[rule] ?? {};
    it(`needs the rule: ${RULES[rule]}`, () => {
      const found = search(follow(start(own, rule), steps, rule), rule);
      expect(found.fault).to.be.a("string");
      if (steps.length === 0) return;
      // The first steps are no fault themselves: with the rule in force, the search finds no fault after them.
      const kept = search(follow(start(own), steps));
      expect(kept.fault, kept.steps.join("; ")).to.equal(null);
    });
  }
});
