import { expect } from "chai";
import { HeldLfsObject, lfsRow } from "../../../schemas/repositories/lfs.ts";
import {
  LFS_NAMED_MAX,
  LFS_OBJECT_BYTES_MAX,
  LFS_OBJECTS_MAX,
  REPO_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { repoActor } from "./repo.ts";
import { findLfsObjects, listLfsObjects, nameLfsObjects } from "./repo-lfs.ts";
import type { LiveRepo, RepoRow } from "./repo-state.ts";

const NOW = 1_000;
const KEY = "repo0000repo0000";
const ADDRESS = { accountId: "a".repeat(32), namespace: "space", name: "repo" };
const oid = (number: number) => number.toString(16).padStart(64, "0");
const object = (number: number, bytes = 10) => ({ oid: oid(number), bytes, heldMs: 0 });

function live(more: Partial<LiveRepo> = {}): LiveRepo {
  const input = {
    ...ADDRESS,
    description: null,
    defaultBranch: "main",
    readOnly: false,
    protectedRefs: [],
    source: null,
    status: "ready" as const,
  };
  const made = runHandler(repoActor, "create", repoActor.initial, input, { key: KEY });
  if (made.state.life !== "live") throw new Error("it is not live");
  return { ...made.state, ...more };
}

describe("large files of a repo", () => {
  it("nameLfsObjects() adds each object once, and objects can be found and listed", () => {
    const rows = new Map<string, RepoRow>();
    const first = nameLfsObjects(live(), rows, [object(1), object(2), object(1)]);
    expect(first.state).to.include({ lfsObjects: 2, lfsBytes: 20 });
    for (const [row, value] of Object.entries(first.rows ?? {})) rows.set(row, value);
    expect([...rows.keys()]).to.deep.equal([lfsRow(oid(1)), lfsRow(oid(2))]);
    const again = nameLfsObjects(first.state, rows, [{ ...object(1), heldMs: -1 }]);
    expect(again).to.deep.equal({ state: first.state });
    const { objects, room } = findLfsObjects(first.state, rows, [oid(2), oid(3), oid(2)]);
    expect(objects).to.deep.equal([{ oid: oid(2), bytes: 10 }]);
    expect(room).to.equal(REPO_BYTES_MAX - 20);
    expect(listLfsObjects(rows, oid(1))).to.deep.equal({
      objects: [{ oid: oid(2), bytes: 10 }],
      more: false,
    });
  });

  it("nameLfsObjects() refuses objects stored too long ago, and a read-only repository", () => {
    const name = (state: LiveRepo, heldMs = 0) =>
      refusal(() => nameLfsObjects(state, new Map(), [{ ...object(1), heldMs }])).code;
    expect(name(live(), -1)).to.equal("unavailable");
    expect(name(live({ readOnly: true }))).to.equal("forbidden");
    expect(name(live({ status: "importing" }))).to.equal("import_in_progress");
    // An import adds its own large files, but only while it runs.
    const bring = (state: LiveRepo) =>
      nameLfsObjects(state, new Map(), [object(1)], { ofImport: true });
    expect(bring(live({ status: "importing" })).state.lfsObjects).to.equal(1);
    expect(refusal(() => bring(live())).code).to.equal("conflict");
  });

  it("nameLfsObjects() accepts LFS_OBJECTS_MAX objects and REPO_BYTES_MAX bytes with the packs, and refuses more", () => {
    const name = (state: LiveRepo, bytes = 10) =>
      nameLfsObjects(state, new Map(), [object(1, bytes)]);
    expect(name(live({ lfsObjects: LFS_OBJECTS_MAX - 1 })).state.lfsObjects).to.equal(
      LFS_OBJECTS_MAX,
    );
    expect(refusal(() => name(live({ lfsObjects: LFS_OBJECTS_MAX }))).code).to.equal(
      "limit_reached",
    );
    const full = { packsBytes: REPO_BYTES_MAX - 100, lfsBytes: 40 };
    expect(name(live(full), 60).state.lfsBytes).to.equal(100);
    expect(refusal(() => name(live(full), 61)).code).to.equal("storage_full");
  });

  it("a large file may have LFS_OBJECT_BYTES_MAX bytes and not one more", () => {
    expect(HeldLfsObject.safeParse(object(1, LFS_OBJECT_BYTES_MAX)).success).to.equal(true);
    expect(HeldLfsObject.safeParse(object(1, LFS_OBJECT_BYTES_MAX + 1)).success).to.equal(false);
  });

  it("one message names LFS_NAMED_MAX objects, and one reply lists as many", () => {
    const many = (count: number) => Array.from({ length: count }, (_, i) => object(i + 1));
    const input = (count: number) => ({ address: ADDRESS, objects: many(count) });
    const { rows } = runHandler(repoActor, "nameLfsObjects", live(), input(LFS_NAMED_MAX), {
      now: NOW,
    });
    const known = new Map(Object.entries(rows)) as Map<string, RepoRow>;
    expect(known.size).to.equal(LFS_NAMED_MAX);
    expect(listLfsObjects(known)).to.include({ more: false });
    known.set(lfsRow(oid(LFS_NAMED_MAX + 1)), { row: "lfs", bytes: 1 });
    const { objects, more } = listLfsObjects(known);
    expect([objects.length, more]).to.deep.equal([LFS_NAMED_MAX, true]);
    expect(() =>
      runHandler(repoActor, "nameLfsObjects", live(), input(LFS_NAMED_MAX + 1), { now: NOW }),
    ).to.throw();
  });

  it("a push may use the bytes that large files leave", () => {
    const push = (lfsBytes: number) =>
      runHandler(
        repoActor,
        "swap",
        live({ lfsBytes }),
        {
          push: "1".repeat(32),
          commands: [`${"0".repeat(40)} ${"a".repeat(40)} refs/heads/main`],
          parts: 0,
          atomic: false,
          generation: 0,
          forward: [],
          packs: [{ sha256: oid(1), bytes: 100, indexBytes: 1 }],
        },
        { key: KEY },
      ).reply.results;
    expect(push(REPO_BYTES_MAX - 100)).to.equal("o");
    expect(push(REPO_BYTES_MAX - 99)).to.equal("q");
  });
});
