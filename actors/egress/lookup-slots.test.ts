import { expect } from "chai";
import { LookupSlots, lookupsMax, lookupsOfOwnerMax } from "./lookup-slots.ts";

const never = new AbortController().signal;

describe("lookup slots", () => {
  it("lookupsMax() leaves a quarter of the threads that libuv has for lookups to the rest of the process", () => {
    expect(["64", "128", "4", undefined, "1", "x"].map(lookupsMax)).to.deep.equal([
      24, 48, 2, 2, 2, 2,
    ]);
  });

  it("tryTake() gives one owner a third of the slots, and another owner goes on", () => {
    const slots = new LookupSlots(24);
    expect(lookupsOfOwnerMax(24)).to.equal(8);
    const held = Array.from({ length: 8 }, () => slots.tryTake("a"));
    expect(held).to.not.include(undefined);
    expect(slots.tryTake("a")).to.equal(undefined);
    expect(slots.tryTake("b")).to.be.a("function");
    held[0]?.();
    expect(slots.tryTake("a")).to.be.a("function");
    expect(slots.taken).to.equal(9);
  });

  it("tryTake() keeps a third of the slots for owners that have none, one for each", () => {
    const slots = new LookupSlots(24);
    for (const owner of ["a", "b"]) for (let one = 0; one < 8; one += 1) slots.tryTake(owner);
    const owners = Array.from({ length: 8 }, () => ({}));
    expect(owners.map((owner) => slots.tryTake(owner))).to.not.include(undefined);
    expect(slots.taken).to.equal(24);
    expect(slots.tryTake({})).to.equal(undefined);
  });

  it("take() waits for a slot of its owner, and other owners pass it", async () => {
    const slots = new LookupSlots(6);
    const held = [slots.tryTake("a"), slots.tryTake("a")];
    const waiting = slots.take("a", never);
    (await slots.take("b", never))();
    held[0]?.();
    held[0]?.();
    expect(slots.taken).to.equal(2);
    (await waiting)();
    held[1]?.();
    expect(slots.taken).to.equal(0);
  });

  it("an owner has half of its share while two others have all of theirs, and more owners have less", () => {
    const slots = new LookupSlots(24);
    const all = (owner: string) => {
      let taken = 0;
      while (slots.tryTake(owner)) taken += 1;
      return taken;
    };
    expect(["a", "b", "c", "d", "e"].map(all)).to.deep.equal([8, 8, 4, 2, 1]);
  });

  it("take() rejects when its signal aborts, and then holds nothing", async () => {
    const slots = new LookupSlots(2);
    const first = slots.tryTake("a");
    const given = new AbortController();
    const outcome = slots.take("a", given.signal).then(
      () => "taken",
      (reason: unknown) => reason,
    );
    given.abort("gone");
    expect(await outcome).to.equal("gone");
    first?.();
    expect(slots.taken).to.equal(0);
    const aborted = slots.take("a", given.signal).then(
      () => "taken",
      (reason: unknown) => reason,
    );
    expect(await aborted).to.equal("gone");
    expect(slots.taken).to.equal(0);
  });

  it("a process with few threads still has a slot for a second owner", () => {
    const slots = new LookupSlots(lookupsMax("1"));
    expect(slots.tryTake("a")).to.be.a("function");
    expect(slots.tryTake("a")).to.equal(undefined);
    expect(slots.tryTake("b")).to.be.a("function");
    expect(slots.tryTake("c")).to.equal(undefined);
  });
});
