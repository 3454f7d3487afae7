import { expect } from "chai";
import { lineKey } from "./app/apps/line-key.ts";

describe("lineKey", () => {
  it("differs for a line, the line that marks dropped lines after it, and the next line", () => {
    const before = { id: 7, time: "2026-11-27T10:00:00.000Z" };
    const after = { id: 90, time: "2026-11-27T10:05:00.000Z" };
    const mark = { id: before.id, time: after.time };
    expect(new Set([before, mark, after].map(lineKey)).size).to.equal(3);
  });
});
