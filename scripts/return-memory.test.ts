import { expect } from "chai";
import { returnMemory } from "./return-memory.ts";

describe("returnMemory()", () => {
  it("collects the garbage of the start", () => {
    let kept = Array.from({ length: 400_000 }, (_, index) => ({ index }));
    const before = process.memoryUsage().heapUsed;
    expect(kept).to.have.length(400_000);
    kept = [];
    returnMemory();
    expect(before - process.memoryUsage().heapUsed).to.be.above(10_000_000);
  });
});
