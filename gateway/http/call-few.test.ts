import { expect } from "chai";
import { CALLS_OF_REQUEST_MAX, callFew } from "./call-few.ts";

describe("callFew", () => {
  it("makes CALLS_OF_REQUEST_MAX calls at a time, and resolves to the replies in order", async () => {
    let [open, most] = [0, 0];
    const items = Array.from({ length: 3 * CALLS_OF_REQUEST_MAX }, (_, index) => index);
    const replies = await callFew(items, async (item) => {
      open += 1;
      most = Math.max(open, most);
      // The calls end in another order than they began.
      for (let turns = 0; turns <= item % 3; turns += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      open -= 1;
      return item * 2;
    });
    expect(replies).to.deep.equal(items.map((item) => item * 2));
    expect(most).to.equal(CALLS_OF_REQUEST_MAX);
  });

  it("rejects with the error of a call", async () => {
    const failed = callFew([1, 2], async (item) => {
      if (item === 2) throw new Error("refused");
    });
    expect(String(await failed.catch((error: unknown) => error))).to.contain("refused");
    expect(await callFew([], async () => 1)).to.deep.equal([]);
  });
});
