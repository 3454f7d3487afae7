import { hash } from "node:crypto";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import {
  EVENT_OTHERS_MAX,
  EVENT_REFS_MAX,
  PRUNE_INTERVAL_MS,
  PUSH_PARTS_MAX,
  REF_DEPTH_MAX,
  REF_NAME_BYTES_MAX,
  REF_NAMES_BYTES_MAX,
  REFS_MAX,
  REPO_BYTES_MAX,
  REPO_REMOVED_MS,
  REPO_SHALLOW_MAX,
  REPO_TOKENS_MAX,
  STAGED_MS,
  STAGED_PUSHES_MAX,
  TREE_DEPTH_MAX,
} from "../../../schemas/repositories/limits.ts";
import { type Pack, packBlob, repoTokenId } from "../../../schemas/repositories/repo.ts";
import type { RepoEvent } from "../../../schemas/repositories/repo-event.ts";
import { refusal } from "../../../scripts/testing/refusal.ts";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { REPO_PACKS_MAX } from "./judge-push.ts";
import { FORK_MS_MAX, repoActor } from "./repo.ts";
import type { RepoRow, RepoState } from "./repo-state.ts";
import { TOKEN_USED_MS } from "./repo-tokens.ts";

const [A, B, C] = ["a", "b", "c"].map((digit) => digit.repeat(40)) as [string, string, string];
const ADDRESS = { accountId: "a".repeat(32), namespace: "Space", name: "Repo" };
const OF = { repoId: "repo0000repo0000", namespace: "Space", repoName: "Repo" };
const CREATION = {
  ...ADDRESS,
  description: null,
  defaultBranch: "main",
  readOnly: false,
  protectedRefs: [],
  source: null,
  status: "ready" as const,
};
const PUSH = "1".repeat(32);
const pack = (n: number, bytes = 100): Pack => ({
  sha256: n.toString(16).padStart(64, "0"),
  bytes,
  indexBytes: 10,
});
const secretHash = (n: number) => hash("sha256", `token ${n}`);

type Handlers = (typeof repoActor)["handlers"];
type Input<N extends keyof Handlers> = Parameters<Handlers[N]>[1];
type Result<N extends keyof Handlers> = Extract<
  ReturnType<Handlers[N]>,
  { reply?: unknown }
>["reply"];

/** One repository, as an actor host runs it: each message starts from the state that the previous message left. */
class TestRepo {
  state: RepoState = repoActor.initial;
  rows = new Map<string, RepoRow>();
  now = 1_000_000;
  last: {
    changed: boolean;
    send: readonly { kind: string; message: string; input: unknown }[];
    rows: object;
    remind: object;
    forgotten: boolean;
  } = { changed: false, send: [], rows: {}, remind: {}, forgotten: false };

  constructor(settings: Partial<Input<"create">> = {}) {
    this.ask("create", { ...CREATION, ...settings });
  }

  ask<N extends keyof Handlers & string>(message: N, input: Input<N>): NonNullable<Result<N>> {
    const handled = runHandler(repoActor, message, this.state, input as never, {
      key: "repo0000repo0000",
      now: this.now,
      rows: this.rows,
    });
    this.last = handled;
    this.state = handled.state;
    for (const [row, value] of Object.entries(handled.rows)) {
      if (value === null) this.rows.delete(row);
      else this.rows.set(row, value as RepoRow);
    }
    return handled.reply as NonNullable<Result<N>>;
  }

  /** Returns to the state before the creation. */
  reset(): void {
    this.state = repoActor.initial;
    this.rows.clear();
  }

  push(commands: string[], more: Partial<Input<"swap">> = {}): string {
    const { results } = this.ask("swap", {
      push: PUSH,
      commands,
      parts: 0,
      atomic: false,
      generation: this.state.life === "live" ? this.state.generation : 0,
      forward: [],
      packs: [],
      ...more,
    });
    return results;
  }

  get live() {
    if (this.state.life !== "live") throw new Error("it is not live");
    return this.state;
  }

  manifest(after = { version: 0, row: -1 }, packsAfter = 0) {
    return this.ask("manifest", { address: ADDRESS, after, packsAfter });
  }

  refs(): Record<string, string> {
    return Object.assign({}, ...this.manifest().rows.map(({ refs }) => refs));
  }
}

const make = (ref: string, value = A) => `${ZERO_ID} ${value} ${ref}`;
const main = "refs/heads/main";

describe("repo", () => {
  it("create() makes a repository once, notifies the namespace, and returns no secret", () => {
    const repo = new TestRepo();
    expect(repo.last.send.map(({ kind, message }) => [kind, message])).to.deep.equal([
      ["namespace", "repoChanged"],
      ["repo-events", "happened"],
    ]);
    expect(JSON.stringify(repo.last.send)).to.not.contain(repo.live.seed);
    expect(Object.keys(repo.ask("get", {}))).to.not.include.members(["seed", "refs", "staged"]);
    const again = refusal(() =>
      repo.ask("create", { ...repo.ask("get", {}), status: "ready" } as never),
    );
    expect(again.code).to.equal("conflict");
  });

  it("get() finds a repository by its names in any case, and by no other name", () => {
    const repo = new TestRepo();
    expect(repo.ask("get", { namespace: "SPACE", name: "rEPO" }).name).to.equal("Repo");
    const wrong = [{ accountId: "b".repeat(32) }, { namespace: "other" }, { name: "other" }];
    for (const part of wrong) {
      expect(refusal(() => repo.ask("get", { ...ADDRESS, ...part })).code).to.equal("not_found");
    }
  });

  it("swap() creates, moves and deletes refs, each from its expected value", () => {
    const repo = new TestRepo();
    expect(repo.push([make(main), make("refs/tags/v1", B)])).to.equal("oo");
    expect(repo.push([make(main, B), `${B} ${C} refs/tags/v1`])).to.equal("fo");
    expect(repo.push([`${A} ${B} ${main}`, `${C} ${ZERO_ID} refs/tags/v1`])).to.equal("oo");
    expect(repo.push([`${A} ${ZERO_ID} ${main}`])).to.equal("f");
    expect(repo.refs()).to.deep.equal({ [main]: B });
    expect(repo.live.refs).to.equal(1);
    expect(repo.live.refNamesBytes).to.equal(JSON.stringify(main).length);
  });

  it("swap() makes the first branch the default branch, unless the chosen one is pushed too or exists", () => {
    const first = (commands: string[], more: Partial<Input<"create">> = {}) => {
      const repo = new TestRepo(more);
      repo.push(commands);
      return [repo.live.defaultBranch, repo.manifest().head];
    };
    const made = (ref: string) => `${ZERO_ID} ${A} ${ref}`;
    const [dev, other, main] = ["dev/one", "other", "main"].map((name) =>
      made(`refs/heads/${name}`),
    );
    expect(first([dev ?? ""])).to.deep.equal(["dev/one", "refs/heads/dev/one"]);
    expect(first([dev ?? "", other ?? ""])[0]).to.equal("dev/one");
    expect(first([dev ?? "", main ?? ""])[0]).to.equal("main");
    expect(first([made("refs/tags/v1"), made("refs/heads/bad name"), other ?? ""])[0]).to.equal(
      "other",
    );
    expect(first([made("refs/tags/v1")])[0]).to.equal("main");
    // Git allows this name for a ref, but no branch of the API has it.
    expect(first([made("refs/heads/-x")])[0]).to.equal("main");
    expect(first([made("refs/heads/-x"), other ?? ""])[0]).to.equal("other");
    expect(first([dev ?? ""], { status: "importing" })[0]).to.equal("main");
    const repo = new TestRepo();
    repo.push([made("refs/tags/v1")]);
    repo.push([other ?? ""]);
    const told = repo.last.send.find(({ kind }) => kind === "namespace");
    expect(repo.live.defaultBranch).to.equal("other");
    expect(told?.message).to.equal("repoChanged");
    repo.push([dev ?? ""]);
    expect(repo.live.defaultBranch).to.equal("other");
  });

  it("swap() refuses to delete the default branch until another is chosen", () => {
    const repo = new TestRepo();
    repo.push([`${ZERO_ID} ${A} refs/heads/main`, `${ZERO_ID} ${A} refs/heads/next`]);
    const deletion = `${A} ${ZERO_ID} refs/heads/main`;
    expect(repo.push([deletion, `${A} ${ZERO_ID} refs/heads/next`])).to.equal("ho");
    repo.push([`${ZERO_ID} ${A} refs/heads/next`]);
    repo.ask("configure", { defaultBranch: "next" });
    expect(repo.push([deletion])).to.equal("o");
  });

  it("configure() refuses a missing default branch, except in an empty repository", () => {
    const repo = new TestRepo();
    repo.ask("configure", { defaultBranch: "trunk" });
    expect(repo.live.defaultBranch).to.equal("trunk");
    repo.push([`${ZERO_ID} ${A} refs/heads/trunk`]);
    const refused = refusal(() => repo.ask("configure", { defaultBranch: "none" }));
    expect(refused.code).to.equal("invalid_request");
    expect(refused.details.faults).to.deep.equal([
      {
        pointer: "/default_branch",
        message: 'Cannot accept /default_branch: there is no branch "none"; push it first',
      },
    ]);
    expect(
      repo.ask("configure", { defaultBranch: "trunk", description: "x" }).description,
    ).to.equal("x");
  });

  it("swap() without a change writes nothing, and deleting a missing ref succeeds", () => {
    const repo = new TestRepo();
    repo.push([make(main)]);
    expect(repo.push([`${A} ${A} ${main}`, `${ZERO_ID} ${ZERO_ID} refs/heads/none`])).to.equal(
      "oo",
    );
    expect(repo.last.changed).to.equal(false);
    expect(repo.push([`${B} ${C} ${main}`], { packs: [pack(1)] })).to.equal("f");
    expect(repo.last.changed).to.equal(false);
  });

  it("swap() refuses a ref that is a directory of another, stored or in the same push", () => {
    const repo = new TestRepo();
    repo.push([make("refs/heads/a/b"), make("refs/heads/c")]);
    const commands = ["a", "a/b/x", "c/d", "a/c", "d", "d/e"].map((name) =>
      make(`refs/heads/${name}`),
    );
    expect(repo.push(commands)).to.equal("cccooc");
    const gone = `${A} ${ZERO_ID} refs/heads/c`;
    expect(repo.push([gone, make("refs/heads/c/d"), make("refs/heads/c")])).to.equal("mcm");
    expect(repo.push([gone, make("refs/heads/c/d")])).to.equal("oo");
    const swapped = [`${A} ${ZERO_ID} refs/heads/c/d`, make("refs/heads/c")];
    expect(repo.push(swapped)).to.equal("oo");
  });

  it("swap() with atomic applies all changes or none", () => {
    const repo = new TestRepo();
    repo.push([make(main)]);
    const mixed = [make("refs/heads/a"), make(main), make("refs/heads/b")];
    expect(repo.push(mixed, { atomic: true, packs: [pack(1)] })).to.equal("afa");
    expect(repo.last.changed).to.equal(false);
    expect(
      repo.push(
        ["a", "b"].map((name) => make(`refs/heads/${name}`)),
        { atomic: true },
      ),
    ).to.equal("oo");
  });

  it("swap() lets protected refs, with or without a star, be created and fast-forwarded only", () => {
    const repo = new TestRepo({ protectedRefs: [main, "refs/heads/release/*"] });
    expect(
      repo.push([make(main), make("refs/heads/release/1/2"), make("refs/heads/releases")]),
    ).to.equal("ooo");
    const moved = [main, "refs/heads/release/1/2", "refs/heads/releases"].map(
      (ref) => `${A} ${B} ${ref}`,
    );
    expect(repo.push(moved)).to.equal("ppo");
    expect(repo.push(moved.slice(0, 2), { forward: [0] })).to.equal("op");
    expect(repo.push([`${B} ${ZERO_ID} ${main}`], { forward: [0] })).to.equal("d");
    repo.ask("configure", { protectedRefs: [], defaultBranch: "releases" });
    expect(repo.push([`${B} ${ZERO_ID} ${main}`])).to.equal("o");
  });

  it("swap() never moves a protected tag, not even forward", () => {
    const tag = "refs/tags/v1";
    const rules = ["refs/tags/*", "refs/heads/*"];
    const repo = new TestRepo({ protectedRefs: rules });
    expect(repo.push([make(tag), make(main)])).to.equal("oo");
    const moved = [tag, main].map((ref) => `${A} ${B} ${ref}`);
    expect(repo.push(moved, { forward: [0, 1] })).to.equal("po");
    // A push of the tag as it is changes nothing.
    expect(repo.push([`${A} ${A} ${tag}`])).to.equal("o");
    expect(repo.push([`${A} ${ZERO_ID} ${tag}`])).to.equal("d");
    repo.ask("configure", { protectedRefs: [] });
    expect(repo.push([`${A} ${B} ${tag}`])).to.equal("o");
  });

  it("swap() refuses every change of a read-only repository", () => {
    const repo = new TestRepo({ readOnly: true });
    expect(repo.push([make(main)])).to.equal("r");
    expect(repo.last.changed).to.equal(false);
  });

  it("swap() accepts names as git does, up to the length limits", () => {
    const repo = new TestRepo();
    const deep = (components: number) => `refs/heads/${"a/".repeat(components - 3)}z`;
    const long = (bytes: number) => `refs/tags/${"x".repeat(bytes - 10)}`;
    const good = [
      ...["refs/heads/é", "refs/notes/x", "refs/pull/1/head", "refs/agents/x", "refs/remotes/o/m"],
      ...[deep(REF_DEPTH_MAX), long(REF_NAME_BYTES_MAX)],
    ];
    expect(repo.push(good.map((name) => make(name)))).to.equal("o".repeat(good.length));
    const bad = [
      "HEAD",
      "refs/heads",
      "refs/stash",
      "refs//x",
      "refs/.x/y",
      ...["replace", "bisect", "rewritten", "worktree", "internal"].map((area) => `refs/${area}/x`),
      "refs/heads/a..b",
      "refs/heads/.x",
      "refs/heads/x.lock/y",
      "refs/heads/x.",
      "refs/heads/a b",
      "refs/heads/@{x",
      "refs/heads/x//y",
      "refs/heads/x/",
      "refs/heads/\ufffd",
      deep(REF_DEPTH_MAX + 1),
    ];
    expect(repo.push(bad.map((name) => make(name)))).to.equal("n".repeat(bad.length));
    expect(() => repo.push([make(long(REF_NAME_BYTES_MAX + 1))])).to.throw();
    expect(repo.push([make(main), make(main)])).to.equal("mm");
    expect(repo.push([make("refs/heads/__proto__"), make("refs/tags/constructor")])).to.equal("oo");
  });

  it("swap() writes one row for one ref among REFS_MAX, and refuses one more ref", () => {
    const repo = new TestRepo();
    const names = Array.from({ length: REFS_MAX }, (_, i) => `refs/tags/a/longer/name/${i}`);
    for (let from = 0; from < REFS_MAX; from += 1_000) {
      const some = names.slice(from, from + 1_000).map((name) => make(name));
      expect(repo.push(some)).to.equal("o".repeat(1_000));
    }
    expect(repo.push([make(main)])).to.equal("t");
    expect(repo.push([`${A} ${B} ${names[5]}`])).to.equal("o");
    expect(Object.keys(repo.last.rows)).to.have.length(1);
    expect(repo.push([`${A} ${ZERO_ID} ${names[0]}`, make(main)])).to.equal("oo");
    const sizes = [...repo.rows.values()].map((row) => JSON.stringify(row).length);
    expect(Math.max(...sizes)).to.be.below(20_000);
  });

  it("swap() accepts names of REF_NAMES_BYTES_MAX in all", () => {
    const repo = new TestRepo();
    const name = (i: number, bytes: number) => `refs/tags/${i}-`.padEnd(bytes - 2, "x");
    const count = REF_NAMES_BYTES_MAX / 1_000;
    for (let from = 0; from < count; from += 100) {
      const some = Array.from({ length: 100 }, (_, i) => make(name(from + i, 1_000)));
      expect(repo.push(some)).to.equal("o".repeat(100));
    }
    expect(repo.live.refNamesBytes).to.equal(REF_NAMES_BYTES_MAX);
    expect(repo.push([make("refs/tags/x")])).to.equal("t");
  });

  it("swap() adds each pack and its bytes once, up to the limits of a repository", () => {
    const repo = new TestRepo();
    repo.ask("configure", { defaultBranch: "other" });
    expect(repo.push([make("refs/heads/other")])).to.equal("o");
    expect(repo.push([make(main)], { packs: [pack(1), pack(2)] })).to.equal("o");
    expect(repo.push([`${A} ${B} ${main}`], { packs: [pack(1)] })).to.equal("o");
    expect([repo.live.packs, repo.live.packsBytes]).to.deep.equal([2, 200]);
    const rest = REPO_BYTES_MAX - 200;
    expect(repo.push([`${B} ${C} ${main}`], { packs: [pack(3, rest + 1)] })).to.equal("q");
    expect(repo.push([`${B} ${C} ${main}`], { packs: [pack(3, rest)] })).to.equal("o");
    expect(repo.push([`${C} ${ZERO_ID} ${main}`])).to.equal("o");
    expect(packBlob(ADDRESS.accountId, pack(1).sha256)).to.equal(
      `git.${ADDRESS.accountId}.${pack(1).sha256}`,
    );
  });

  it("swap() waits for compaction at REPO_PACKS_MAX", () => {
    const repo = new TestRepo();
    const names = Array.from({ length: REPO_PACKS_MAX / 200 }, (_, i) => `refs/tags/${i}`);
    for (const [i, name] of names.entries()) {
      const packs = Array.from({ length: 200 }, (_, n) => pack(i * 200 + n));
      expect(repo.push([make(name)], { packs })).to.equal("o");
    }
    expect(repo.push([make(main)], { packs: [pack(9_999)] })).to.equal("k");
    expect(repo.push([make(main)])).to.equal("o");
    const all = repo.manifest();
    expect(all.packs).to.have.length(REPO_PACKS_MAX);
    expect(JSON.stringify(all).length).to.be.below(1_000_000);
  });

  it("stage() and swap() commit a push in parts and delete their rows; a repeated part counts once", () => {
    const repo = new TestRepo();
    const names = ["a", "b", "c"].map((name) => `refs/heads/${name}`);
    for (const [part, name] of [...names.entries(), [1, "refs/heads/b"] as const]) {
      repo.ask("stage", { push: PUSH, part, commands: [make(name)] });
    }
    expect(repo.push([], { parts: 3 })).to.equal("ooo");
    expect([...repo.rows.keys()].filter((row) => row.startsWith("part"))).to.deep.equal([]);
    expect(repo.live.staged).to.deep.equal([]);
    const late = refusal(() => repo.push([], { parts: 3 }));
    expect(late.code).to.equal("conflict");
    repo.ask("stage", { push: PUSH, part: 0, commands: [make(main)] });
    repo.ask("configure", { readOnly: true });
    expect(repo.push([], { parts: 1 })).to.equal("r");
    expect(repo.live.staged).to.deep.equal([]);
    expect(() => repo.ask("stage", { push: PUSH, part: PUSH_PARTS_MAX, commands: [] })).to.throw();
  });

  it("stage() accepts STAGED_PUSHES_MAX pushes at a time, and dropStaged() drops abandoned ones", () => {
    const repo = new TestRepo();
    const stage = (n: number) =>
      repo.ask("stage", { push: `${n}`.repeat(32), part: 0, commands: [make(main)] });
    for (let n = 0; n < STAGED_PUSHES_MAX; n++) stage(n);
    expect(refusal(() => stage(9)).code).to.equal("busy");
    stage(0);
    repo.now += STAGED_MS - 1;
    repo.ask("dropStaged", {});
    expect(repo.live.staged).to.have.length(STAGED_PUSHES_MAX);
    repo.now += 1;
    repo.ask("dropStaged", {});
    expect(repo.live.staged).to.deep.equal([]);
    expect([...repo.rows.keys()]).to.deep.equal([]);
  });

  it("manifest() returns the changes since a reader's version, and everything after packs were removed", () => {
    const repo = new TestRepo();
    repo.push([make(main), make("refs/tags/a")], { packs: [pack(1)] });
    const first = repo.manifest();
    expect(first.done && first.packsWhole).to.equal(true);
    const after = { version: first.version, row: 128 };
    expect(repo.manifest(after, first.version)).to.deep.include({
      rows: [],
      packs: [],
      packsWhole: false,
    });
    repo.push([`${A} ${B} ${main}`], { packs: [pack(2)] });
    const second = repo.manifest(after, first.version);
    expect(second.rows.map(({ refs }) => refs[main]).filter(Boolean)).to.deep.equal([B]);
    expect(second.packs).to.deep.equal([pack(2)]);
    const { version, generation } = repo.live;
    const compacted = {
      replaced: [pack(1).sha256, pack(2).sha256],
      packs: [pack(3, 150)],
      prune: false,
    };
    repo.ask("compact", { ...compacted, version, generation });
    const third = repo.manifest(after, first.version);
    expect([third.packs, third.packsWhole]).to.deep.equal([[pack(3, 150)], true]);
    expect(repo.live.packsBytes).to.equal(150);
  });

  it("manifest() returns pages, and later changes after them", () => {
    const repo = new TestRepo();
    const names = Array.from({ length: 1_200 }, (_, i) => `refs/tags/${i}-`.padEnd(800, "x"));
    for (let from = 0; from < names.length; from += 200) {
      repo.push(names.slice(from, from + 200).map((name) => make(name)));
    }
    const rows = new Map<number, Readonly<Record<string, string>>>();
    let page = repo.manifest();
    let changed = 0;
    for (;;) {
      for (const { row, refs } of page.rows) rows.set(row, refs);
      if (page.done) break;
      expect(JSON.stringify(page).length).to.be.below(800_000);
      if (changed < 5) repo.push([`${A} ${B} ${names[changed++]}`]);
      page = repo.manifest(page.cursor);
    }
    const refs = Object.assign({}, ...rows.values());
    expect(Object.keys(refs)).to.have.length(names.length);
    for (let i = 0; i < changed; i++) expect(refs[names[i] ?? ""]).to.equal(B);
    expect(changed).to.be.above(0);
  });

  it("compact() refuses if packs are missing, and prune() if anything changed; later pushes must start over", () => {
    const repo = new TestRepo();
    repo.push([make("refs/heads/other")]);
    repo.push([make(main)], { packs: [pack(1), pack(2)] });
    const { version, generation } = repo.live;
    const compacted = { version, generation, replaced: [pack(1).sha256], packs: [], prune: false };
    repo.ask("compact", compacted);
    expect(refusal(() => repo.ask("compact", compacted)).code).to.equal("conflict");
    const pruned = {
      version,
      generation,
      replaced: [pack(2).sha256],
      packs: [pack(4)],
      prune: true,
    };
    expect(refusal(() => repo.ask("compact", pruned)).code).to.equal("conflict");
    repo.ask("compact", { ...pruned, version: repo.live.version });
    expect(repo.live.generation).to.equal(1);
    expect(repo.push([`${A} ${B} ${main}`], { generation: 0 })).to.equal("g");
    expect(repo.push([`${A} ${ZERO_ID} ${main}`], { generation: 0 })).to.equal("o");
  });

  it("verifyToken() admits a valid token, records its last use by the hour, and refuses an expired token", () => {
    const repo = new TestRepo();
    const grantId = "9".repeat(32);
    const token = { secretHash: secretHash(1), scope: "read" as const, ttlS: 60, grantId };
    const minted = repo.ask("mintToken", token);
    expect(minted.id).to.equal(repoTokenId(secretHash(1)));
    const shown = { address: ADDRESS, secretHash: secretHash(1) };
    expect(repo.ask("verifyToken", shown)).to.include({ scope: "read", grantId });
    expect(Object.keys(repo.last.rows)).to.have.length(1);
    repo.now += 1;
    repo.ask("verifyToken", shown);
    expect(Object.keys(repo.last.rows)).to.have.length(0);
    expect(TOKEN_USED_MS).to.be.above(60_000);
    const verify = (input: Input<"verifyToken">) => refusal(() => repo.ask("verifyToken", input));
    expect(verify({ ...shown, secretHash: secretHash(2) }).code).to.equal("forbidden");
    expect(verify({ ...shown, address: { ...ADDRESS, name: "x" } }).code).to.equal("not_found");
    repo.now += 59_999;
    expect(verify(shown).code).to.equal("forbidden");
  });

  it("revokeToken() applies at once, and reports whether it changed anything", () => {
    const repo = new TestRepo({ token: { secretHash: secretHash(1), scope: "write", ttlS: 60 } });
    const id = repoTokenId(secretHash(1));
    expect(repo.ask("revokeToken", { id }).revoked).to.equal(true);
    expect(repo.ask("revokeToken", { id }).revoked).to.equal(false);
    expect(repo.last.changed).to.equal(false);
    const shown = { address: ADDRESS, secretHash: secretHash(1) };
    expect(refusal(() => repo.ask("verifyToken", shown)).code).to.equal("forbidden");
    expect(refusal(() => repo.ask("revokeToken", { id: "0".repeat(16) })).code).to.equal(
      "not_found",
    );
  });

  it("mintToken() replaces expired tokens at REPO_TOKENS_MAX; listTokens() lists the newest first", () => {
    const repo = new TestRepo();
    for (let n = 0; n < REPO_TOKENS_MAX; n++) {
      repo.now += 1;
      repo.ask("mintToken", { secretHash: secretHash(n), scope: "write", ttlS: 3_600 });
    }
    const one = { secretHash: secretHash(-1), scope: "read", ttlS: 60 } as const;
    expect(refusal(() => repo.ask("mintToken", one)).code).to.equal("limit_reached");
    repo.ask("revokeToken", { id: repoTokenId(secretHash(7)) });
    repo.now += 1;
    repo.ask("mintToken", one);
    expect(refusal(() => repo.ask("mintToken", one)).code).to.equal("conflict");
    const list = (state: "active" | "revoked" | "expired" | "all") =>
      repo.ask("listTokens", { state, offset: 0, limit: 2 });
    expect(list("all").total).to.equal(REPO_TOKENS_MAX);
    expect(list("revoked").total).to.equal(0);
    expect(list("active").tokens[0]?.id).to.equal(repoTokenId(secretHash(-1)));
    repo.now += 60_000;
    expect(list("expired").tokens.map(({ scope }) => scope)).to.deep.equal(["read"]);
  });

  it("remove() and nameReleased() delete the repository at once and its rows soon after, also repeated or late", () => {
    const repo = new TestRepo({ token: { secretHash: secretHash(1), scope: "write", ttlS: 60 } });
    const names = Array.from({ length: 2_000 }, (_, i) => make(`refs/tags/${i}`));
    repo.push(names, { packs: Array.from({ length: 200 }, (_, n) => pack(n)) });
    for (let from = 200; from < 600; from += 200) {
      const packs = Array.from({ length: 200 }, (_, n) => pack(from + n));
      repo.push([make(`refs/heads/${from}`)], { packs });
    }
    repo.ask("nameReleased", {});
    expect(repo.last.send.map(({ message }) => message)).to.deep.equal(["repoRemoved", "happened"]);
    expect(refusal(() => repo.manifest()).code).to.equal("not_found");
    expect(refusal(() => repo.push([make(main)])).code).to.equal("not_found");
    let rounds = 0;
    for (; repo.rows.size > 0; rounds++) repo.ask("clearRows", {});
    expect(rounds).to.be.above(1);
    const removedAt = repo.now;
    for (const message of ["remove", "nameReleased", "dropStaged"] as const) {
      repo.ask(message, {});
      expect(repo.last.changed).to.equal(false);
    }
    // For a day after the removal, no late message can create the repository again. Then the actor's state is
    // deleted.
    repo.now = removedAt + REPO_REMOVED_MS - 1;
    repo.ask("clearRows", {});
    expect(repo.last.remind).to.deep.equal({ clearRows: removedAt + REPO_REMOVED_MS });
    expect(repo.last.forgotten).to.equal(false);
    repo.now += 1;
    repo.ask("clearRows", {});
    expect(repo.last.forgotten).to.equal(true);
  });

  it("refuseCreation(), nameReleased() and remove() before create() prevent the creation, also repeated", () => {
    for (const message of ["refuseCreation", "nameReleased", "remove"] as const) {
      const repo = new TestRepo();
      repo.reset();
      repo.ask(message, {});
      expect(repo.last.send).to.deep.equal([]);
      repo.ask(message, {});
      expect(repo.last.changed).to.equal(false);
      const late = refusal(() => repo.ask("create", CREATION));
      expect(late.code).to.equal("conflict");
      expect(late.message).to.contain("deleted meanwhile");
    }
  });

  it("refuseCreation() refuses to touch a repository that exists", () => {
    const repo = new TestRepo();
    expect(refusal(() => repo.ask("refuseCreation", {})).code).to.equal("conflict");
    expect(repo.push([make(main)])).to.equal("o");
  });

  it("creationFailed() prevents a late creation, and frees the name each time it is reported", () => {
    const repo = new TestRepo();
    repo.reset();
    for (const changed of [true, false]) {
      repo.ask("creationFailed", ADDRESS);
      expect(repo.last.changed).to.equal(changed);
      expect(repo.last.send.map(({ message, input: sent }) => [message, sent])).to.deep.equal([
        ["repoRemoved", { id: "repo0000repo0000", name: "Repo" }],
      ]);
      expect(refusal(() => repo.ask("create", CREATION)).code).to.equal("conflict");
    }
  });

  it("creationFailed() removes a repository that nobody has used, and no other", () => {
    const token = (n: number) =>
      ({ secretHash: secretHash(n), scope: "write", ttlS: 3_600 }) as const;
    const content = { refs: [[main, A] as [string, string]], packs: [pack(1)], treeDepth: 1 };
    const unused = new TestRepo({ token: token(1), content, source: "artifacts:a/b" });
    unused.ask("creationFailed", ADDRESS);
    expect(unused.state.life).to.equal("removed");
    expect(unused.last.send.map(({ message }) => message)).to.deep.equal([
      "repoRemoved",
      "happened",
    ]);
    const uses: ((repo: TestRepo) => unknown)[] = [
      (repo) => repo.push([make(main)]),
      (repo) => repo.ask("configure", { description: "mine" }),
      (repo) => repo.ask("mintToken", token(2)),
      (repo) => repo.ask("stage", { push: PUSH, part: 0, commands: [make(main)] }),
      (repo) =>
        repo.ask("nameLfsObjects", {
          address: ADDRESS,
          objects: [{ oid: "e".repeat(64), bytes: 1, heldMs: 60_000 }],
        }),
      (repo) =>
        repo.ask("createLfsLock", { address: ADDRESS, path: "a", owner: { id: "x", name: "x" } }),
    ];
    for (const use of uses) {
      const repo = new TestRepo({ token: token(1) });
      use(repo);
      repo.ask("creationFailed", ADDRESS);
      expect(repo.last.changed, String(use)).to.equal(false);
      expect(repo.last.send, String(use)).to.deep.equal([]);
      expect(repo.live.name).to.equal("Repo");
    }
  });

  it("publishes events to the account's subscribers, with at most EVENT_REFS_MAX refs of a push", () => {
    const repo = new TestRepo({ status: "importing", source: "git:https://example.com/x.git" });
    const told = () =>
      repo.last.send
        .filter(({ kind }) => kind === "repo-events")
        .map(({ input }) => (input as { event: RepoEvent }).event);
    const refs = Array.from({ length: EVENT_REFS_MAX + 1 }, (_, i) => make(`refs/tags/${i}`));
    repo.push([...refs, `${A} ${B} refs/heads/none`, `${ZERO_ID} ${ZERO_ID} refs/heads/x`]);
    const [push] = told();
    if (push?.type !== "pushed") throw new Error("it is not told");
    expect(push.refs[0]).to.deep.equal({ ref: "refs/tags/0", before: ZERO_ID, after: A });
    expect(push.refs).to.have.length(EVENT_REFS_MAX);
    expect(push.refsTotal).to.equal(EVENT_REFS_MAX + 1);
    repo.ask("setStatus", { status: "ready", failure: null });
    const { defaultBranch, description, readOnly, createdAt, updatedAt, lastPushAt } = repo.live;
    const about = { defaultBranch, description, readOnly, createdAt, updatedAt, lastPushAt };
    expect(told()).to.deep.equal([
      { type: "imported", source: repo.live.source, branch: null, ...OF, about, at: repo.now },
    ]);
    repo.ask("setStatus", { status: "ready", failure: null });
    expect(told()).to.deep.equal([]);
    const { id } = repo.ask("mintToken", { secretHash: secretHash(1), scope: "read", ttlS: 60 });
    expect(told().map(({ type }) => type)).to.deep.equal(["token.created"]);
    expect(JSON.stringify(told())).to.not.contain(secretHash(1));
    repo.ask("revokeToken", { id });
    expect(told()).to.deep.equal([{ type: "token.revoked", tokenId: id, ...OF, at: repo.now }]);
    repo.ask("revokeToken", { id });
    expect(told()).to.deep.equal([]);
  });

  it("a push that creates a ref reports EVENT_OTHERS_MAX other refs with it, the default branch first", () => {
    const repo = new TestRepo();
    const id = (i: number) => i.toString(16).padStart(40, "0");
    const told = () =>
      repo.last.send
        .map(({ input }) => (input as { event?: RepoEvent }).event)
        .find((event) => event?.type === "pushed");
    const others = () => {
      const event = told();
      return event?.type === "pushed" ? event.others : undefined;
    };
    repo.push(
      Array.from({ length: EVENT_OTHERS_MAX }, (_, i) => make(`refs/tags/${i}`, id(i + 1))),
    );
    expect(others()).to.deep.equal([]);
    repo.push([make(main, A)]);
    expect(others()).to.have.length(EVENT_OTHERS_MAX);
    repo.push([make("refs/heads/side", B)]);
    expect(others()).to.have.length(EVENT_OTHERS_MAX);
    expect(others()?.[0]).to.equal(A);
    repo.push([`${A} ${B} ${main}`]);
    expect(others()).to.deep.equal([]);
  });

  it("create() fills a fork, and publishes the event of a fork", () => {
    const source = "artifacts:Space/Origin";
    const content = {
      refs: [
        ["refs/heads/main", A],
        ["refs/tags/v1", B],
      ] as [string, string][],
      packs: [pack(1), pack(2)],
    };
    const fork = new TestRepo({ source, content, readOnly: true });
    const events = fork.last.send.filter(({ kind }) => kind === "repo-events");
    expect(events.map(({ input }) => (input as { event: RepoEvent }).event.type)).to.deep.equal([
      "forked",
    ]);
    expect(fork.refs()).to.deep.equal(Object.fromEntries(content.refs));
    const { packs, bytes } = fork.manifest();
    expect([packs, bytes]).to.deep.equal([content.packs, 200]);
    expect(fork.live).to.deep.include({ refs: 2, packs: 2 });
  });

  it("giveUp() marks a fork as failed if it is not complete in time, and changes nothing otherwise", () => {
    const fork = new TestRepo({ source: "artifacts:Space/Origin", status: "forking" });
    expect(fork.last.remind).to.deep.equal({ giveUp: fork.now + FORK_MS_MAX });
    fork.ask("giveUp", {});
    expect(fork.ask("get", {})).to.deep.include({ status: "failed" });
    fork.ask("giveUp", {});
    expect(fork.last.changed).to.equal(false);
    const ready = new TestRepo({ status: "forking" });
    ready.ask("setStatus", { status: "ready", failure: null });
    ready.ask("giveUp", {});
    expect(ready.ask("get", {})).to.deep.include({ status: "ready" });
  });

  it("create() starts an import; importEnded() makes the repository ready or stores the failure, once", () => {
    const origin = { url: "https://example.com/x.git", branch: null, depth: null, readOnly: true };
    const importing = { status: "importing" as const, source: `git:${origin.url}`, origin };
    const imported = new TestRepo(importing);
    const task = imported.last.send.find(({ kind }) => kind === "repo-import");
    expect(task?.input).to.deep.equal({ ...origin, address: ADDRESS });
    imported.ask("importEnded", { failure: null, readOnly: true });
    expect(imported.live).to.deep.include({ status: "ready", readOnly: true, failure: null });
    imported.ask("importEnded", { failure: "late", readOnly: false });
    expect(imported.last.changed).to.equal(false);
    const failed = new TestRepo(importing);
    failed.ask("importEnded", { failure: "nobody there", readOnly: false });
    expect(failed.live).to.deep.include({ status: "failed", failure: "nobody there" });
    const events = failed.last.send.filter(({ kind }) => kind === "repo-events");
    expect(events).to.deep.equal([]);
    failed.ask("remove", {});
    failed.ask("importEnded", { failure: null, readOnly: false });
    expect(failed.last.changed).to.equal(false);
  });

  it("prune() starts at once and again PRUNE_INTERVAL_MS after the last prune, and returns when", () => {
    const repo = new TestRepo();
    repo.push([make(main)], { packs: [pack(1)] });
    const begun = () => repo.last.send.filter(({ kind }) => kind === "git-upkeep").length;
    const startedAt = repo.now;
    expect(repo.ask("prune", {})).to.deep.equal({ at: startedAt });
    expect(begun()).to.equal(1);
    const { version } = repo.live;
    const replaced = [pack(1).sha256];
    const input = { version, generation: 0, replaced, packs: [pack(2)], prune: true };
    repo.ask("compact", input);
    repo.ask("upkeepEnded", { pruned: true });
    repo.now += 1;
    const dueAt = startedAt + PRUNE_INTERVAL_MS;
    expect(repo.ask("prune", {})).to.deep.equal({ at: dueAt });
    expect(begun()).to.equal(0);
    expect(repo.last.remind).to.deep.equal({ upkeepDue: dueAt });
    repo.now = dueAt;
    repo.ask("upkeepDue", {});
    expect(begun()).to.equal(1);
  });

  it("configure() and setStatus() change the given fields, and notify the namespace", () => {
    const repo = new TestRepo();
    const { version } = repo.live;
    expect(repo.ask("configure", { description: "x" })).to.deep.include({
      description: "x",
      defaultBranch: "main",
    });
    expect(repo.ask("configure", { description: null, readOnly: true })).to.deep.include({
      description: null,
      readOnly: true,
    });
    expect(repo.ask("setStatus", { status: "failed", failure: "why" })).to.deep.include({
      status: "failed",
      failure: "why",
    });
    expect(repo.live.version).to.equal(version + 3);
    expect(repo.last.send.map(({ message }) => message)).to.deep.equal(["repoChanged"]);
  });

  it("configure() by a client refuses fields that an import or a fork sets, until it ends", () => {
    const byClient = true as const;
    const codeOf = (repo: TestRepo, settings: object) =>
      refusal(() => repo.ask("configure", { byClient, ...settings })).code;
    const [importing, forking] = (["importing", "forking"] as const).map(
      (status) => new TestRepo({ status, source: "git:x" }),
    ) as [TestRepo, TestRepo];
    for (const field of [{ readOnly: true }, { readOnly: false }, { defaultBranch: "x" }]) {
      expect(codeOf(importing, field)).to.equal("import_in_progress");
      expect(codeOf(forking, field)).to.equal("fork_in_progress");
    }
    for (const repo of [importing, forking]) {
      repo.ask("configure", { byClient, description: "x", protectedRefs: [main] });
      expect(repo.live.description).to.equal("x");
    }
    importing.ask("configure", { defaultBranch: "of-the-import" });
    importing.ask("importEnded", { failure: null, readOnly: false });
    importing.ask("configure", { byClient, readOnly: true });
    expect(importing.live).to.include({ readOnly: true, defaultBranch: "of-the-import" });
    expect("byClient" in importing.live).to.equal(false);
  });

  it("importShallow() sets the shallow commits of an import for all readers, and only during the import", () => {
    const origin = { url: "https://example.com/x.git", branch: null, depth: 3, readOnly: false };
    const repo = new TestRepo({ status: "importing", source: "git:x", origin });
    const before = repo.manifest().version;
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => i.toString(16).padStart(40, "0"));
    repo.ask("importShallow", { commits: many(REPO_SHALLOW_MAX) });
    expect(repo.manifest().shallow).to.have.length(REPO_SHALLOW_MAX);
    expect(repo.manifest().version).to.be.greaterThan(before);
    expect(() => repo.ask("importShallow", { commits: many(REPO_SHALLOW_MAX + 1) })).to.throw();
    repo.ask("importEnded", { failure: null, readOnly: false });
    expect(refusal(() => repo.ask("importShallow", { commits: [] })).code).to.equal("conflict");
    expect(new TestRepo({ shallow: [A] }).manifest().shallow).to.deep.equal([A]);
  });

  it("importLacks() keeps the last text of an import, also when it is repeated, and is ignored afterwards", () => {
    const origin = { url: "https://example.com/x.git", branch: null, depth: null, readOnly: false };
    const repo = new TestRepo({ status: "importing", source: "git:x", origin });
    for (const lacking of ["one ref", "one ref", null, "two refs"]) {
      repo.ask("importLacks", { lacking });
      expect(repo.ask("get", {})).to.include({ status: "importing", failure: lacking });
    }
    repo.ask("importEnded", { failure: null, lacking: "two refs", readOnly: false });
    repo.ask("importLacks", { lacking: "late" });
    expect(repo.last.changed).to.equal(false);
    expect(repo.ask("get", {})).to.include({ status: "ready", failure: "two refs" });
    const removed = new TestRepo({ status: "importing", source: "git:x", origin });
    removed.ask("remove", {});
    removed.ask("importLacks", { lacking: "late" });
    expect(removed.last.changed).to.equal(false);
  });

  it("importProgressed() shows progress until the import ends, and is ignored afterwards", () => {
    const origin = { url: "https://example.com/x.git", branch: null, depth: null, readOnly: false };
    const repo = new TestRepo({ status: "importing", source: "git:x", origin });
    repo.ask("importProgressed", { step: "receiving", percent: 40 });
    expect(repo.ask("get", {}).progress).to.deep.equal({ step: "receiving", percent: 40 });
    repo.ask("importEnded", { failure: null, readOnly: false });
    expect(repo.ask("get", {}).progress).to.equal(undefined);
    repo.ask("importProgressed", { step: "checking", percent: null });
    expect(repo.last.changed).to.equal(false);
  });

  it("the bound of the directory depth grows with each push, and equals the measured depth until the next push", () => {
    const repo = new TestRepo();
    const depth = () => repo.manifest().treeDepth;
    expect(depth()).to.equal(0);
    repo.push([make(main)], { packs: [pack(1)], treeDepth: 7 });
    repo.push([make("refs/heads/b")], { packs: [pack(2)], treeDepth: 3 });
    expect(depth()).to.equal(7);
    repo.push([`${A} ${B} refs/heads/none`], { packs: [pack(3)], treeDepth: 9 });
    expect(depth(), "refused").to.equal(7);
    const compacted = (version: number, from: number) =>
      repo.ask("compact", {
        version,
        generation: 0,
        replaced: [pack(from).sha256],
        packs: [pack(from + 10)],
        prune: false,
        treeDepth: 2,
      });
    compacted(repo.live.version - 1, 1);
    expect(depth(), "something came since").to.equal(7);
    compacted(repo.live.version, 2);
    expect(depth()).to.equal(2);
    repo.push([make("refs/heads/c")], { packs: [pack(4)], treeDepth: TREE_DEPTH_MAX });
    expect(depth()).to.equal(TREE_DEPTH_MAX);
    const past = { packs: [pack(5)], treeDepth: TREE_DEPTH_MAX + 1 };
    expect(() => repo.push([make("refs/heads/d")], past)).to.throw();
    const unknown = new TestRepo();
    unknown.push([make(main)], { packs: [pack(1)] });
    expect(unknown.manifest().treeDepth, "nobody looked").to.equal(TREE_DEPTH_MAX);
  });

  it("the bound of the directory depth sums concurrent pushes; past the limit the depth is measured again", () => {
    const repo = new TestRepo();
    const depth = () => repo.manifest().treeDepth;
    const push = (n: number, treeBelow: number, treeDepth: number) =>
      repo.push([make(`refs/heads/${n}`)], { packs: [pack(n)], treeDepth, treeBelow });
    expect(push(1, 0, 30)).to.equal("o");
    expect(push(2, 0, 30)).to.equal("o");
    expect(depth()).to.equal(60);
    expect(push(3, 60, 80), "nothing came since").to.equal("o");
    expect(push(4, 100, 120), "it was measured since").to.equal("o");
    expect(depth()).to.equal(120);
    const rest = TREE_DEPTH_MAX - depth();
    expect(push(5, 10, 10 + rest + 1)).to.equal("g");
    expect(depth()).to.equal(120);
    expect(push(5, 10, 10 + rest)).to.equal("o");
    expect(push(6, TREE_DEPTH_MAX, TREE_DEPTH_MAX), "measured whole").to.equal("o");
    expect(depth()).to.equal(TREE_DEPTH_MAX);
  });
});
