import { once } from "node:events";
import { PassThrough } from "node:stream";
import { expect } from "chai";
import { HeldBytes } from "./held-bytes.ts";

describe("HeldBytes", () => {
  it("admits bytes up to the limit and not one more, and admits more when a response ends", async () => {
    const held = new HeldBytes(10);
    const [first, second] = [new PassThrough(), new PassThrough()];
    held.hold(6, first);
    held.hold(4, second);
    expect(() => held.hold(1, second))
      .to.throw()
      .with.property("code", "busy");
    first.destroy();
    await once(first, "close");
    expect(held.bytes).to.equal(4);
    held.hold(6, second);
    second.destroy();
    await once(second, "close");
    expect(held.bytes).to.equal(0);
  });

  it("admits a single response of any size, and nothing for a client that has left", async () => {
    const held = new HeldBytes(10);
    const [alone, left] = [new PassThrough(), new PassThrough().destroy()];
    held.hold(1, left);
    expect(held.bytes).to.equal(0);
    held.hold(11, alone);
    expect(() => held.hold(1, left))
      .to.throw()
      .with.property("code", "busy");
    alone.destroy();
    await once(alone, "close");
    expect(held.bytes).to.equal(0);
  });
});
