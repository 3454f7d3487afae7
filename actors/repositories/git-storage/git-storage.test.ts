import { expect } from "chai";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { GIT_HELD_MAX, GIT_HELD_MS, gitStorageActor } from "./git-storage.ts";

const id = (number: number) => number.toString(16).padStart(32, "0");
type State = Parameters<(typeof gitStorageActor)["handlers"]["get"]>[0];
const hold = (state: State, bytes: number, { bytesMax = 100, number = 1, now = 0 } = {}) =>
  runHandler(gitStorageActor, "hold", state, { id: id(number), bytes, bytesMax }, { now });
const settle = (state: State, bytes: number, stored: boolean, number = 1) =>
  runHandler(gitStorageActor, "settle", state, { id: id(number), bytes, stored }).state;
const get = (state: State, now = 0) => runHandler(gitStorageActor, "get", state, {}, { now }).reply;
const { initial } = gitStorageActor;

describe("git-storage", () => {
  it("hold() reserves bytes up to the limit and not one more; 0 means no limit", () => {
    const { state, reply } = hold(initial, 100);
    expect(reply).to.deep.equal({ bytes: 0, heldBytes: 100 });
    const full = refusal(() => hold(state, 1, { number: 2 }));
    expect(full.code).to.equal("storage_full");
    expect(full.message)
      .to.contain("may have 100 (TRUNKLINE_GIT_BYTES_PER_ACCOUNT)")
      .and.to.contain("has 100");
    expect(hold(state, 1_000, { number: 2, bytesMax: 0 }).reply.heldBytes).to.equal(1_100);
    expect(refusal(() => hold(initial, 101)).code).to.equal("storage_full");
    // A repeated hold counts once.
    expect(hold(state, 100).reply.heldBytes).to.equal(100);
  });

  it("settle() counts stored bytes and frees the rest of a reservation, also when it arrives twice or late", () => {
    const { state } = hold(initial, 60);
    const stored = settle(state, 60, true);
    expect(get(stored)).to.deep.equal({ bytes: 60, heldBytes: 0 });
    expect(get(settle(state, 60, false))).to.deep.equal({ bytes: 0, heldBytes: 0 });
    expect(get(settle(stored, 60, false))).to.deep.equal({ bytes: 60, heldBytes: 0 });
    // The bytes of a stored pack count even if its reservation has expired.
    expect(get(settle(initial, 60, true)).bytes).to.equal(60);
  });

  it("an unsettled reservation expires after GIT_HELD_MS", () => {
    const { state } = hold(initial, 100);
    expect(get(state, GIT_HELD_MS - 1).heldBytes).to.equal(100);
    expect(get(state, GIT_HELD_MS).heldBytes).to.equal(0);
    const at = (now: number) => () => hold(state, 100, { number: 2, now });
    expect(refusal(at(GIT_HELD_MS - 1)).code).to.equal("storage_full");
    expect(at(GIT_HELD_MS)().state.held).to.have.length(1);
  });

  it("hold() accepts GIT_HELD_MAX reservations at a time and refuses one more", () => {
    let state: State = initial;
    for (let number = 0; number < GIT_HELD_MAX; number++) state = hold(state, 0, { number }).state;
    const one = refusal(() => hold(state, 0, { number: GIT_HELD_MAX }));
    expect(one.code).to.equal("busy");
  });

  it("add() and removed() count up and down, and never below 0", () => {
    const { state, reply } = runHandler(gitStorageActor, "add", initial, { bytes: 10 });
    expect(reply.bytes).to.equal(10);
    const removed = (bytes: number) =>
      runHandler(gitStorageActor, "removed", state, { bytes }).state.bytes;
    expect([removed(4), removed(10), removed(11)]).to.deep.equal([6, 0, 0]);
  });
});
