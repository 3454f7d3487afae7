import { expect } from "chai";
import { processorTime } from "../../scripts/testing/processor-time.ts";
import { prefersAsync } from "./prefer.ts";

describe("prefersAsync", () => {
  for (const field of [
    "respond-async",
    "Respond-Async",
    "respond-async, wait=10",
    "wait=10,respond-async",
    'handling=lenient; x="a, b" , respond-async',
    "respond-async; foo=bar",
    'respond-async=""',
    "respond-async =",
  ]) {
    it(`is true for ${field}`, () => expect(prefersAsync(field)).to.equal(true));
  }

  for (const field of [
    undefined,
    "",
    "wait=10",
    "respond-asynchronously",
    "x-respond-async",
    'foo="respond-async"',
    'foo="a, respond-async, b"',
    "foo; respond-async",
    "return=respond-async",
  ]) {
    it(`is false for ${field}`, () => expect(prefersAsync(field)).to.equal(false));
  }

  it("takes a long field in linear time", () => {
    const field = `"${'\\\\"'.repeat(8_000)}respond-async`;
    const takes = (times: number) => {
      const tries = Array.from({ length: 5 }, () => {
        const processorMs = processorTime();
        expect(prefersAsync(field.repeat(times))).to.equal(false);
        return processorMs();
      });
      return Math.min(...tries);
    };
    takes(10); // Until then the code is not compiled.
    // The second field is ten times as long. A parser that reads to the end of the field for each quote would need a
    // hundred times as long.
    expect(takes(100)).to.be.below(50 * Math.max(takes(10), 1));
    expect(prefersAsync(`${"respond-async ".repeat(1_000)}`)).to.equal(false);
  });
});
