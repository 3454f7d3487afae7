import { expect } from "chai";
import { growthOf, type Sample } from "./platform-soak.ts";

const MB = 2 ** 20;

/** Returns the samples of a run of 60, each made of the steady one by `change`. */
function samplesOf(change: (sample: Sample, index: number) => Partial<Sample>): Sample[] {
  return Array.from({ length: 60 }, (_, index) => {
    const steady: Sample = {
      atS: index,
      memory: { gateway: 200 * MB },
      descriptors: { gateway: 60 },
      files: 11,
      children: 4,
      streams: { MAIL: 20_000, TRACES: 24 * MB, CRAWL: index * MB },
    };
    return { ...steady, ...change(steady, index) };
  });
}

describe("growthOf()", () => {
  it("accepts steady figures, and the streams that grow with what is stored", () => {
    expect(growthOf(samplesOf(() => ({})))).to.deep.equal([]);
  });

  for (const [what, change] of [
    [
      "memory of gateway",
      (_: Sample, at: number) => ({ memory: { gateway: (200 + 20 * at) * MB } }),
    ],
    [
      "descriptors of gateway",
      (_: Sample, at: number) => ({ descriptors: { gateway: 60 + 3 * at } }),
    ],
    ["files", (_: Sample, at: number) => ({ files: 11 + 5 * at })],
    ["child processes", (_: Sample, at: number) => ({ children: 4 + 3 * at })],
    [
      "bytes of MAIL",
      ({ streams }: Sample, at: number) => ({ streams: { ...streams, MAIL: 2 * at * MB } }),
    ],
  ] as const) {
    it(`names ${what} if they grow`, () => {
      const problems = growthOf(samplesOf(change));
      expect(problems).to.have.length(1);
      expect(problems[0]).to.match(new RegExp(`^${what} grew from \\d+ to \\d+; \\d+ would be`));
    });
  }
});
