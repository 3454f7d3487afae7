import { expect } from "chai";
import { lfsLockMessages } from "../../../schemas/repositories/lfs-lock.ts";
import {
  LFS_LOCK_NAME_CHARS_MAX,
  LFS_LOCK_PATH_CHARS_MAX,
  LFS_LOCKS_MAX,
} from "../../../schemas/repositories/limits.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { repoActor } from "./repo.ts";
import { createLock, listLocks, removeLock } from "./repo-locks.ts";
import type { LiveRepo, RepoRow } from "./repo-state.ts";

const ADDRESS = { accountId: "a".repeat(32), namespace: "space", name: "repo" };
const ONE = { id: "one", name: "One" };
const OTHER = { id: "other", name: "Other" };

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
  const key = "repo0000repo0000";
  const made = runHandler(repoActor, "create", repoActor.initial, input, { key });
  if (made.state.life !== "live") throw new Error("it is not live");
  return { ...made.state, ...more };
}

describe("locks of a repo", () => {
  let rows: Map<string, RepoRow>;
  let made: number;
  beforeEach(() => {
    rows = new Map();
    made = 0;
  });
  const newId = () => (made++).toString(16).padStart(32, "0");
  function create(path: string, owner = ONE, state = live()) {
    const { reply, rows: written = {} } = createLock(
      state,
      rows,
      { path, owner },
      { now: 7, newId },
    );
    for (const [name, row] of Object.entries(written)) rows.set(name, row);
    return reply;
  }

  it("createLock() locks a path once, and names its owner to others", () => {
    const { lock, isNew } = create("a.bin");
    expect(lock).to.deep.equal({
      id: newId().replace(/1$/, "0"),
      path: "a.bin",
      owner: ONE,
      lockedAt: 7,
    });
    expect(isNew).to.equal(true);
    expect(create("a.bin", OTHER)).to.deep.equal({ lock, isNew: false });
    expect(create("a.bin")).to.deep.equal({ lock, isNew: false });
    expect(rows.size).to.equal(1);
  });

  it("createLock() accepts LFS_LOCKS_MAX locks and refuses one more, and refuses in a read-only repository", () => {
    for (let i = 0; i < LFS_LOCKS_MAX; i++) create(`${i}`);
    expect(rows.size).to.equal(LFS_LOCKS_MAX);
    expect(refusal(() => create("past")).code).to.equal("limit_reached");
    expect(create("0").isNew).to.equal(false);
    expect(refusal(() => create("x", ONE, live({ readOnly: true }))).code).to.equal("forbidden");
  });

  it("removeLock() removes a token's own lock, another's only with force, and no lock twice", () => {
    const { id } = create("a.bin").lock;
    const remove = (owner: typeof ONE, isForced = false) =>
      removeLock(rows, { id, owner, isForced });
    const refused = refusal(() => remove(OTHER));
    expect([refused.code, refused.message]).to.deep.equal([
      "forbidden",
      'Cannot unlock "a.bin": "One" locked it with another token; --force removes the lock',
    ]);
    for (const removed of [remove(ONE), remove(OTHER, true)]) {
      expect(removed.reply.lock.path).to.equal("a.bin");
      expect(removed.rows).to.deep.equal({ [`lock.${id}`]: null });
    }
    rows.clear();
    expect(refusal(() => remove(ONE)).code).to.equal("not_found");
  });

  it("listLocks() lists by id, in pages, and finds by path and id", () => {
    const locks = ["a", "b", "c"].map((path) => create(path).lock);
    const pathsOf = (listed: { locks: { path: string }[] }) => listed.locks.map(({ path }) => path);
    const page = listLocks(rows, { limit: 2 });
    expect([pathsOf(page), page.more]).to.deep.equal([["a", "b"], true]);
    const rest = listLocks(rows, { limit: 2, after: page.locks.at(-1)?.id });
    expect([pathsOf(rest), rest.more]).to.deep.equal([["c"], false]);
    expect(pathsOf(listLocks(rows, { limit: 2, path: "b" }))).to.deep.equal(["b"]);
    expect(pathsOf(listLocks(rows, { limit: 2, id: locks[2]?.id }))).to.deep.equal(["c"]);
  });

  it("paths and names have length limits", () => {
    const { input } = lfsLockMessages.createLfsLock;
    const isValid = (path: string, name = "x") =>
      input.safeParse({ address: ADDRESS, path, owner: { id: "x", name } }).success;
    expect(isValid("p".repeat(LFS_LOCK_PATH_CHARS_MAX))).to.equal(true);
    expect(isValid("p".repeat(LFS_LOCK_PATH_CHARS_MAX + 1))).to.equal(false);
    expect(isValid("")).to.equal(false);
    expect(isValid("p", "n".repeat(LFS_LOCK_NAME_CHARS_MAX))).to.equal(true);
    expect(isValid("p", "n".repeat(LFS_LOCK_NAME_CHARS_MAX + 1))).to.equal(false);
  });
});
