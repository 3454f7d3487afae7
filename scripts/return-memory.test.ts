import { expect } from "chai";
import { returnMemory } from "./return-memory.ts";

describe("returnMemory()", () => {
  it("collects garbage", () => {
    returnMemory();
    const before = bytesWith(400_000);
    returnMemory();
    expect(before - process.memoryUsage().heapUsed).to.be.above(10_000_000);
  });
});

/** Returns the heap in use while that many objects exist. */
function bytesWith(count: number): number {
  const objects = Array.from({ length: count }, (_, index) => ({ index, text: String(index) }));
  const { heapUsed } = process.memoryUsage();
  expect(objects).to.have.length(count);
  return heapUsed;
}
