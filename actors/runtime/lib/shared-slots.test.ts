import { expect } from "chai";
import { SharedSlots } from "./shared-slots.ts";

describe("shared slots", () => {
  it("tryTake() gives an owner its limit, and others the rest", () => {
    const slots = new SharedSlots<string>({ max: 4, perOwner: 2 });
    const [first] = [slots.tryTake("a"), slots.tryTake("a")];
    expect(slots.tryTake("a")).to.equal(undefined);
    expect([slots.isFull, slots.takenBy("a")]).to.deep.equal([false, 2]);
    expect(slots.isOpenToAll).to.equal(false);
    for (const owner of ["b", "b"]) expect(slots.tryTake(owner)).to.be.a("function");
    expect([slots.isFull, slots.tryTake("c")]).to.deep.equal([true, undefined]);
    first?.();
    first?.();
    expect([slots.taken, slots.takenBy("a")]).to.deep.equal([3, 1]);
    expect(slots.isOpenToAll).to.equal(false);
    expect(slots.tryTake("c")).to.be.a("function");
    expect(slots.isOpenToAll).to.equal(false);
    const open = new SharedSlots<string>({ max: 3, perOwner: 2 });
    open.tryTake("a");
    expect(open.isOpenToAll).to.equal(true);
  });

  it("tryTake() keeps more slots free of an owner the more it has, and none of an owner without one", () => {
    const slots = new SharedSlots<string>({ max: 1_000, perOwner: 750, keptFree: 250 });
    const all = (owner: string) => {
      let taken = 0;
      while (slots.tryTake(owner)) taken += 1;
      return taken;
    };
    const taken = ["a", "b", "c", "d"].map(all);
    // Each owner can take three quarters of the slots that the owners before it left.
    expect(taken).to.deep.equal([750, 188, 47, 12]);
    expect(["e", "f"].map(all)).to.deep.equal([3, 0]);
    expect(slots.isFull).to.equal(true);
  });
});
