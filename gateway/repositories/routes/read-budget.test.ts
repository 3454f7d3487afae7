import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import { SMALL_BODY_BYTES_MAX as SMALL } from "../../../schemas/memory-limits.ts";
import { ReadBudget } from "./read-budget.ts";

describe("ReadBudget", () => {
  /** The largest number of bytes is twenty of this unit; half of them are for one account. */
  const UNIT = 2 * SMALL;
  const isRefused = (run: () => unknown) => expect(run).to.throw().with.property("code", "busy");

  it("admits bytes up to an account's share and not one more, and admits more when a response ends", async () => {
    const held = new ReadBudget(20 * UNIT);
    const [first, second, late] = [new PassThrough(), new PassThrough(), new PassThrough()];
    held.hold(6 * UNIT, "a", first);
    held.hold(4 * UNIT, "a", second);
    isRefused(() => held.hold(1, "a", second));
    isRefused(() => held.hold(UNIT, "a", late));
    first.destroy();
    await once(first, "close");
    expect(held.bytes).to.equal(4 * UNIT);
    held.hold(6 * UNIT, "a", second);
    second.destroy();
    await once(second, "close");
    expect(held.bytes).to.equal(0);
  });

  it("admits other accounts, and small reads of the same, while one account holds its whole share", () => {
    const held = new ReadBudget(20 * UNIT);
    held.hold(10 * UNIT, "a", new PassThrough());
    isRefused(() => held.hold(UNIT, "a", new PassThrough()));
    held.hold(SMALL, "a", new PassThrough());
    held.hold(10 * UNIT, "b", new PassThrough());
    isRefused(() => held.hold(UNIT, "c", new PassThrough()));
    held.hold(SMALL, "c", new PassThrough());
  });

  it("admits a single response of any size, and nothing for a client that has left", async () => {
    const held = new ReadBudget(20 * UNIT);
    const [alone, left] = [new PassThrough(), new PassThrough().destroy()];
    held.hold(1, "a", left);
    expect(held.bytes).to.equal(0);
    held.hold(21 * UNIT, "a", alone);
    isRefused(() => held.hold(UNIT, "b", new PassThrough()));
    alone.destroy();
    await once(alone, "close");
    expect(held.bytes).to.equal(0);
  });
});
