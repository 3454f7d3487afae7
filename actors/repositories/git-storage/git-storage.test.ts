import { expect } from "chai";
import { IMPORTS_PER_ACCOUNT_MAX } from "../../../schemas/repositories/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { GIT_HELD_MAX, GIT_HELD_MS, gitStorageActor, IMPORT_HELD_MS } from "./git-storage.ts";

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

  const repoId = (number: number) => number.toString(36).padStart(16, "0");
  const holdImport = (state: State, number: number, now = 0) =>
    runHandler(gitStorageActor, "holdImport", state, { id: repoId(number) }, { now }).state;
  const importEnded = (state: State, number: number) =>
    runHandler(gitStorageActor, "importEnded", state, { id: repoId(number) });
  const atLimit = () =>
    Array.from({ length: IMPORTS_PER_ACCOUNT_MAX }, (_, number) => number).reduce(
      (state: State, number) => holdImport(state, number),
      initial,
    );

  it("holdImport() accepts IMPORTS_PER_ACCOUNT_MAX imports, each once, and refuses one more", () => {
    const full = atLimit();
    const refused = refusal(() => holdImport(full, IMPORTS_PER_ACCOUNT_MAX));
    expect(refused.code).to.equal("limit_reached");
    expect(refused.message).to.contain("16 imports of the account run or wait");
    expect(holdImport(full, 0).imports).to.have.length(IMPORTS_PER_ACCOUNT_MAX);
    // Uploads do not change the number of imports.
    const stored = settle(hold(full, 60).state, 60, true);
    expect(stored.imports).to.deep.equal(full.imports);
  });

  it("importEnded() frees the place of an import once, also of an import that is not known", () => {
    const { state } = importEnded(atLimit(), 3);
    expect(state.imports).to.have.length(IMPORTS_PER_ACCOUNT_MAX - 1);
    expect(importEnded(state, 3).changed).to.equal(false);
    expect(importEnded(initial, 3).changed).to.equal(false);
    expect(holdImport(state, IMPORTS_PER_ACCOUNT_MAX).imports).to.have.length(
      IMPORTS_PER_ACCOUNT_MAX,
    );
  });

  it("an import whose end was not reported stops counting after IMPORT_HELD_MS", () => {
    const full = atLimit();
    const at = (now: number) => () => holdImport(full, IMPORTS_PER_ACCOUNT_MAX, now);
    expect(refusal(at(IMPORT_HELD_MS - 1)).code).to.equal("limit_reached");
    expect(at(IMPORT_HELD_MS)().imports).to.have.length(1);
  });
});
