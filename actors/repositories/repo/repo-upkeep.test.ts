import { expect } from "chai";
import { COMPACT_PACKS, PRUNE_INTERVAL_MS } from "../../../schemas/repositories/limits.ts";
import { packRow } from "../../../schemas/repositories/repo.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { REPO_PACKS_MAX } from "./judge-push.ts";
import type { LiveRepo, RepoRow } from "./repo-state.ts";
import {
  afterRefusal,
  beginUpkeep,
  checkHeld,
  compact,
  continueUpkeep,
  endUpkeep,
  makeRoom,
  PRUNE_FOR_ROOM_MS,
  requestPrune,
  UPKEEP_FULL_MS,
  UPKEEP_LOST_MS,
  UPKEEP_RETRY_MS,
} from "./repo-upkeep.ts";

const ID = "repo0000repo0000";
const NOW = 1_000_000_000;
const sha = (number: number) => number.toString(16).padStart(64, "0");
const live = (more: Partial<LiveRepo> = {}): LiveRepo => ({
  life: "live",
  accountId: "a".repeat(32),
  namespace: "space",
  name: "repo",
  description: null,
  defaultBranch: "main",
  readOnly: false,
  protectedRefs: [],
  source: null,
  status: "ready",
  failure: null,
  createdAt: 0,
  updatedAt: 0,
  lastPushAt: null,
  seed: "seed",
  version: 7,
  generation: 2,
  packsRemovedVersion: 0,
  refs: 1,
  refNamesBytes: 20,
  packs: 3,
  packsBytes: 300,
  treeDepth: 0,
  lfsObjects: 0,
  lfsBytes: 0,
  staged: [],
  ...more,
});

describe("upkeep of a repository", () => {
  it("starts at COMPACT_PACKS and not at one less, and once at a time", () => {
    const before = live({ packs: COMPACT_PACKS - 1 });
    expect(beginUpkeep(before, ID, NOW)).to.deep.equal({ state: before });
    const { state, send = [], remind } = beginUpkeep(live({ packs: COMPACT_PACKS }), ID, NOW);
    expect(send).to.have.length(1);
    expect(send[0]).to.include({ kind: "git-upkeep", key: ID, message: "compact" });
    expect(remind).to.deep.equal({ upkeepDue: NOW + UPKEEP_LOST_MS });
    expect(beginUpkeep(state, ID, NOW + UPKEEP_LOST_MS - 1).send).to.equal(undefined);
    expect(beginUpkeep(state, ID, NOW + UPKEEP_LOST_MS).send).to.have.length(1);
  });

  it("ends, and is retried after a pause if work remains", () => {
    const begun = beginUpkeep(live({ packs: COMPACT_PACKS }), ID, NOW).state;
    const failed = endUpkeep(begun, { pruned: false }, NOW);
    expect(failed.remind).to.deep.equal({ upkeepDue: NOW + UPKEEP_RETRY_MS });
    expect(beginUpkeep(failed.state, ID, NOW + UPKEEP_RETRY_MS - 1).send).to.equal(undefined);
    expect(beginUpkeep(failed.state, ID, NOW + UPKEEP_RETRY_MS).send).to.have.length(1);
    const full = endUpkeep(begun, { pruned: false, isFull: true }, NOW);
    expect(full.remind).to.deep.equal({ upkeepDue: NOW + UPKEEP_FULL_MS });
    expect(beginUpkeep(full.state, ID, NOW + UPKEEP_FULL_MS - 1).send).to.equal(undefined);
    const done = endUpkeep({ ...begun, packs: 2 }, { pruned: false }, NOW);
    expect(done.remind).to.deep.equal({ upkeepDue: null });
    expect(endUpkeep(done.state, { pruned: false }, NOW)).to.deep.equal(done);
  });

  it("keeps a pending prune until it is done", () => {
    const { state, send = [] } = beginUpkeep(live({ toPrune: true }), ID, NOW);
    expect(send[0]?.input).to.include({ prune: true });
    expect(endUpkeep(state, { pruned: false }, NOW).state.toPrune).to.equal(true);
    expect(endUpkeep({ ...state, packs: 0 }, { pruned: true }, NOW).state.toPrune).to.equal(
      undefined,
    );
  });

  it("prunes again if a request arrives between the commit of a prune and its end", () => {
    const all = { ...input, prune: true, replaced: [sha(1), sha(2), sha(3)] };
    const begun = beginUpkeep(live({ toPrune: true }), ID, NOW).state;
    const { state: pruned } = compact(begun, rows, all, NOW);
    expect(pruned.toPrune).to.equal(undefined);
    expect(endUpkeep(pruned, { pruned: true }, NOW).remind).to.deep.equal({ upkeepDue: null });
    const { state: asked, remind } = endUpkeep({ ...pruned, toPrune: true }, { pruned: true }, NOW);
    expect(remind).to.deep.equal({ upkeepDue: NOW + PRUNE_INTERVAL_MS });
    const { send = [] } = beginUpkeep(asked, ID, NOW + PRUNE_INTERVAL_MS);
    expect(send[0]?.input).to.include({ prune: true });
    const rolledUp = compact(begun, rows, { ...input }, NOW).state;
    expect(rolledUp.toPrune).to.equal(true);
  });

  it("prunes at once the first time, and then at most once in PRUNE_INTERVAL_MS", () => {
    const first = requestPrune(live(), ID, NOW);
    expect(first.at).to.equal(NOW);
    expect(first.send?.[0]?.input).to.include({ prune: true });
    const dueAt = NOW + PRUNE_INTERVAL_MS;
    const { state, send, remind, at } = requestPrune(live({ prunedAt: NOW }), ID, NOW + 1);
    expect([send, remind, at]).to.deep.equal([undefined, { upkeepDue: dueAt }, dueAt]);
    expect(requestPrune(state, ID, NOW + 2)).to.deep.equal({ state, remind, at });
    // A push changes neither the request nor the reminder.
    expect(beginUpkeep(state, ID, NOW + 2)).to.deep.equal({ state });
    const early = continueUpkeep(state, ID, dueAt - 1);
    expect([early.send, early.remind]).to.deep.equal([undefined, { upkeepDue: dueAt }]);
    expect(continueUpkeep(state, ID, dueAt).send?.[0]?.input).to.include({ prune: true });
    const late = requestPrune(live({ prunedAt: NOW }), ID, dueAt);
    expect([late.at, late.send?.length]).to.deep.equal([dueAt, 1]);
  });

  it("joins packs while a requested prune is not due", () => {
    const dueAt = NOW + PRUNE_INTERVAL_MS;
    const full = live({ prunedAt: NOW, toPrune: true, packs: COMPACT_PACKS });
    const { state, send = [] } = beginUpkeep(full, ID, NOW + 1);
    expect(send[0]?.input).to.include({ prune: false });
    // A request during the compaction waits for its end, for which a reminder is set.
    const asked = requestPrune(state, ID, NOW + 2);
    expect([asked.at, asked.send, asked.remind]).to.deep.equal([dueAt, undefined, undefined]);
    const failed = endUpkeep(asked.state, { pruned: false }, NOW + 3);
    expect(failed.remind).to.deep.equal({ upkeepDue: NOW + 3 + UPKEEP_RETRY_MS });
    const joined = endUpkeep({ ...asked.state, packs: 2 }, { pruned: false }, NOW + 3);
    expect(joined.remind).to.deep.equal({ upkeepDue: dueAt });
    expect(beginUpkeep({ ...joined.state, packs: COMPACT_PACKS }, ID, NOW + 4).send).to.have.length(
      1,
    );
    expect(continueUpkeep(joined.state, ID, dueAt).send?.[0]?.input).to.include({ prune: true });
  });

  it("prunes once a day for a push that found no room", () => {
    expect(makeRoom(live(), ID, NOW).send).to.have.length(1);
    const pruned = live({ prunedAt: NOW });
    expect(makeRoom(pruned, ID, NOW + PRUNE_FOR_ROOM_MS - 1).send).to.equal(undefined);
    expect(makeRoom(pruned, ID, NOW + PRUNE_FOR_ROOM_MS).send).to.have.length(1);
  });

  it("starts a compaction after a push was refused for too many packs", () => {
    const full = live({ packs: REPO_PACKS_MAX });
    expect(afterRefusal(full, "ok", ID, NOW).send?.[0]?.input).to.include({ prune: false });
    expect(afterRefusal(full, "of", ID, NOW)).to.deep.equal({ state: full });
    expect(afterRefusal(full, "q", ID, NOW).send?.[0]?.input).to.include({ prune: true });
    const { state } = endUpkeep(full, { pruned: false }, NOW);
    expect(afterRefusal(state, "k", ID, NOW + UPKEEP_RETRY_MS - 1).send).to.equal(undefined);
    expect(afterRefusal(state, "k", ID, NOW + UPKEEP_RETRY_MS).send).to.have.length(1);
  });

  const rows = new Map<string, RepoRow>(
    [1, 2, 3].map((n) => [
      packRow(sha(n)),
      { row: "pack" as const, version: n, bytes: 100, indexBytes: 10 },
    ]),
  );
  const input = {
    version: 7,
    generation: 2,
    replaced: [sha(1), sha(2)],
    packs: [{ sha256: sha(9), bytes: 150, indexBytes: 15, heldMs: 0 }],
    prune: false,
  };

  it("compact() replaces packs, whatever was pushed meanwhile", () => {
    const { state, rows: changed } = compact(live({ version: 8 }), rows, input, NOW);
    expect(state).to.include({ version: 9, packs: 2, packsBytes: 250, generation: 2 });
    expect(changed[packRow(sha(1))]).to.equal(null);
    expect(changed[packRow(sha(9))]).to.include({ row: "pack", version: 9, bytes: 150 });
  });

  it("compact() refuses missing packs, another generation, and packs whose hold expired", () => {
    const repeated = { ...input, replaced: [sha(1), sha(5)] };
    const code = (given: typeof input, more = {}) =>
      refusal(() => compact(live(more), rows, given, NOW)).code;
    expect(code(repeated)).to.equal("conflict");
    expect(code(input, { generation: 3 })).to.equal("conflict");
    const late = { ...input, packs: input.packs.map((pack) => ({ ...pack, heldMs: -1 })) };
    expect(code(late)).to.equal("unavailable");
  });

  it("compact() refuses if a pack with the left-out objects is missing", () => {
    const given = { ...input, kept: [sha(3)] };
    expect(compact(live(), rows, given, NOW).state).to.include({ packs: 2 });
    const code = refusal(() => compact(live(), rows, { ...given, kept: [sha(4)] }, NOW)).code;
    expect(code).to.equal("conflict");
  });

  it("compact() prunes only an unchanged repository, as a new generation", () => {
    const all = { ...input, prune: true, replaced: [sha(1), sha(2), sha(3)] };
    const { state } = compact(live(), rows, all, NOW);
    expect(state).to.include({ generation: 3, packs: 1, prunedAt: NOW });
    const changed = () => compact(live({ version: 8 }), rows, all, NOW);
    expect(refusal(changed).code).to.equal("conflict");
    const some = () => compact(live(), rows, { ...all, replaced: [sha(1)] }, NOW);
    expect(refusal(some).code).to.equal("conflict");
  });

  it("checkHeld() accepts a pack until its hold expires", () => {
    const [pack] = input.packs;
    if (!pack) throw new Error("no pack");
    checkHeld([pack, { ...pack, heldMs: 1 }]);
    expect(refusal(() => checkHeld([pack, { ...pack, heldMs: -1 }])).code).to.equal("unavailable");
  });
});
