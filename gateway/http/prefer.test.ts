import { expect } from "chai";
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
    const startedAt = performance.now();
    expect(prefersAsync(field.repeat(10))).to.equal(false);
    const longMs = performance.now() - startedAt;
    expect(prefersAsync(field.repeat(100))).to.equal(false);
    // Ten times as long a field. A parser that reads each quote to the end would need a hundred times as long.
    expect(performance.now() - startedAt - longMs).to.be.below(50 * Math.max(longMs, 1));
    expect(prefersAsync(`${"respond-async ".repeat(1_000)}`)).to.equal(false);
  });
});
