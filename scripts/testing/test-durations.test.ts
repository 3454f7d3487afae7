import { expect } from "chai";
import { longestFirst, mergeDurations, readDurations } from "./test-durations.ts";
import { allTestFiles } from "./test-selection.ts";

describe("test durations", () => {
  it("longestFirst() starts the longest files first, and those without a record last in their order", () => {
    const files = ["a", "new", "b", "other", "c"];
    expect(longestFirst(files, { a: 2, b: 30, c: 7 })).to.deep.equal([
      "b",
      "c",
      "a",
      "new",
      "other",
    ]);
  });

  it("mergeDurations() replaces measured files, keeps the rest, and drops short and deleted files", () => {
    const measured = new Map([
      ["b", 3.4],
      ["short", 0.4],
      ["c", 0.6],
    ]);
    const merged = mergeDurations({ a: 5, b: 9, gone: 4 }, measured, (file) => file !== "gone");
    expect(merged).to.deep.equal({ a: 5, b: 3, c: 1 });
  });

  it("readDurations() names only files that exist", () => {
    expect(allTestFiles()).to.include.members(Object.keys(readDurations()));
  });
});
