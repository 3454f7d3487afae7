import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { ZERO_ID } from "../../../schemas/repositories/git-names.ts";
import { REFS_MAX } from "../../../schemas/repositories/limits.ts";
import { REF_RESULTS } from "../../../schemas/repositories/ref-command.ts";
import { repo } from "../../../schemas/repositories/repo.ts";
import type { RepoEventEnvelope } from "../../../schemas/repositories/repo-event-envelope.ts";
import { repoEvents } from "../../../schemas/repositories/repo-events.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  ACCOUNT,
  type Checkout,
  type GitGateway,
  GitWorld,
  type TestRepo,
} from "../testing/git-world.ts";
import { rawPush } from "../testing/raw-push.ts";
import { FETCH_EVENT_MS } from "./fetch-events.ts";

describe("git over HTTP", function () {
  this.timeout(120_000);
  let world: GitWorld;
  let gateway: GitGateway;
  before(async () => {
    world = await GitWorld.start();
    gateway = await world.gateway();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(gateway.faults).to.deep.equal([]));

  /**
   * Creates a repository with the commits "1" to `count` on main. `work` is the working copy that pushed them, with
   * the remote `origin`.
   */
  async function filled(count = 3, settings = {}): Promise<{ repo: TestRepo; work: Checkout }> {
    const made = await world.repo(settings);
    const work = await world.checkout();
    await work.git("remote", "add", "origin", gateway.remote(made));
    for (let i = 1; i <= count; i++) await work.commit(`${i}`);
    if (count > 0) await work.git("push", "-q", "origin", "main");
    return { repo: made, work };
  }

  async function cloned(from: TestRepo, ...options: string[]): Promise<Checkout> {
    const place = await world.checkout();
    await place.git("clone", "-q", ...options, gateway.remote(from), "copy");
    return Object.assign(place, { folder: `${place.folder}/copy` });
  }

  /** Returns the events of the repository among the latest 20 events of the account. */
  async function eventsOf({ name }: TestRepo): Promise<RepoEventEnvelope[]> {
    const { last } = await world.actors.call(repoEvents, ACCOUNT, "list", { after: 0, limit: 1 });
    const query = { after: Math.max(0, last - 20), limit: 20 };
    const { events } = await world.actors.call(repoEvents, ACCOUNT, "list", query);
    return events.map(({ event }) => event).filter(({ source }) => source.repoName === name);
  }

  async function typesOf(made: TestRepo): Promise<string[]> {
    const events = await eventsOf(made);
    return events.map(({ type }) => type.replace("artifacts.repo.", "")).sort();
  }

  for (const version of ["0", "1", "2"]) {
    it(`clones, fetches and pushes by version ${version} of the protocol`, async () => {
      const { repo: made, work } = await filled();
      await work.git("tag", "-a", "v1", "-m", "first");
      await work.git("push", "-q", "origin", "v1", "main:refs/heads/feature/one");
      const config = `protocol.version=${version}`;
      const copy = await cloned(made, "-c", config);
      expect(await copy.git("rev-parse", "HEAD")).to.equal(await work.git("rev-parse", "main"));
      expect(await copy.git("rev-parse", "v1^{commit}")).to.equal(
        await copy.git("rev-parse", "HEAD"),
      );
      expect(await copy.git("branch", "-r")).to.contain("origin/feature/one");
      const next = await work.commit("next");
      await work.git("-c", config, "push", "-q", "origin", "main");
      await copy.git("pull", "-q", "--ff-only");
      expect(await copy.git("rev-parse", "HEAD")).to.equal(next);
      await copy.git("fsck", "--full", "--strict");
    });
  }

  it("clones an empty repository, and its first push makes the default branch", async () => {
    const { repo: made } = await filled(0);
    const copy = await cloned(made);
    await copy.git("checkout", "-q", "-B", "main");
    const head = await copy.commit("first");
    await copy.git("push", "-q", "origin", "main");
    const again = await cloned(made);
    expect(await again.git("rev-parse", "HEAD")).to.equal(head);
  });

  it("makes the first branch that is pushed the default branch, and keeps it from deletion", async () => {
    const made = await world.repo();
    const work = await world.checkout();
    const head = await work.commit("first");
    await work.git("push", "-q", gateway.remote(made), "main:dev");
    const copy = await world.checkout();
    await copy.git("clone", "-q", gateway.remote(made), "copy");
    expect(await copy.git("-C", "copy", "rev-parse", "HEAD")).to.equal(head);
    expect(await copy.git("-C", "copy", "symbolic-ref", "HEAD")).to.equal("refs/heads/dev");
    const deletion = await work.tryGit("push", gateway.remote(made), ":dev");
    expect(deletion.code).to.not.equal(0);
    expect(deletion.stderr).to.contain("deletion of the current branch prohibited");
  });

  it("refuses a push whose old value is stale, and accepts forced pushes and deletions", async () => {
    const { repo: made, work } = await filled();
    const other = await cloned(made);
    await work.commit("mine");
    await work.git("push", "-q", "origin", "main");
    await other.commit("theirs");
    const late = await other.tryGit("push", "origin", "main");
    expect(late.stderr).to.match(/fetch first|rejected/);
    await other.git("push", "-q", "--force", "origin", "main:main", "main:refs/heads/other");
    expect(await work.git("ls-remote", "origin", "main")).to.contain(
      await other.git("rev-parse", "main"),
    );
    await other.git("push", "-q", "origin", ":refs/heads/other");
    expect(await work.git("ls-remote", "origin", "other")).to.equal("");
    const stale = await other.tryGit(
      ...["push", "--force-with-lease=main:0000000000000000000000000000000000000001"],
      ...["origin", "main~1:main"],
    );
    expect(stale.code).to.not.equal(0);
  });

  it("refuses to force or delete protected refs, and applies the other refs of the push", async () => {
    const protectedRefs = ["refs/heads/main", "refs/heads/release/*"];
    const { work } = await filled(3, { protectedRefs });
    await work.git("push", "-q", "origin", "main:release/1");
    const deletion = await work.tryGit("push", "origin", ":release/1");
    expect(deletion.stderr).to.contain(REF_RESULTS.d);
    const forced = await work.tryGit("push", "--force", "origin", "main~1:main", "main:other");
    expect(forced.stderr).to.contain(REF_RESULTS.p);
    expect(await work.git("ls-remote", "origin", "other")).to.contain("refs/heads/other");
    await work.commit("forward");
    await work.git("push", "-q", "--force", "origin", "main");
    await work.git("push", "-q", "origin", ":other");
  });

  it("refuses every move of a protected tag, also forward, and applies the other refs of the push", async () => {
    const { work } = await filled(3, { protectedRefs: ["refs/tags/v1", "refs/heads/main"] });
    await work.git("push", "-q", "origin", "main~1:refs/tags/v1", "main~1:refs/tags/other");
    const former = await work.git("ls-remote", "origin", "refs/tags/v1");
    await work.commit("forward");
    const tags = ["main:refs/tags/v1", "main:refs/tags/other"];
    const moved = await work.tryGit("push", "--force", "origin", "main", ...tags);
    expect(moved.code).to.not.equal(0);
    expect(moved.stderr).to.contain("v1 (protected tag: it cannot be moved)");
    expect(moved.stderr.match(/rejected/g)).to.have.length(1);
    expect(await work.git("ls-remote", "origin", "refs/tags/v1")).to.equal(former);
    const tip = await work.git("rev-parse", "main");
    for (const ref of ["refs/heads/main", "refs/tags/other"]) {
      expect(await work.git("ls-remote", "origin", ref)).to.contain(tip);
    }
  });

  it("refuses pushes to a read-only repository and says why", async () => {
    const { repo: made, work } = await filled();
    await world.actors.call(repo, made.id, "configure", { readOnly: true });
    await work.commit("more");
    const pushed = await work.tryGit("push", "origin", "main");
    expect(pushed.stderr).to.contain("The repository is read-only");
    await cloned(made);
  });

  it("applies an atomic push wholly or not at all, accepts push options, and refuses a ref that is a directory of another", async () => {
    const { repo: made, work } = await filled();
    const options = ["push", "--atomic", "-o", "ci.skip", "-o", "note=é"];
    const mixed = await work.tryGit(...options, "origin", "main:one", "main:main/below");
    expect(mixed.stderr).to.contain(REF_RESULTS.a);
    expect(mixed.stderr).to.contain("conflicts");
    expect(await work.git("ls-remote", "origin", "one")).to.equal("");
    await work.git(...options, "-q", "origin", "main:one", "main:two/three");
    // The event of each ref contains the push options. The first push had no options.
    const pushes = await until("all are told", async () => {
      const told = (await eventsOf(made)).filter(({ type }) => type === "artifacts.repo.pushed");
      return told.length === 3 && told.map(({ payload }) => payload);
    });
    expect(pushes.map((payload) => "pushOptions" in payload && payload.pushOptions)).to.deep.equal([
      false,
      ["ci.skip", "note=é"],
      ["ci.skip", "note=é"],
    ]);
    const plain = await work.tryGit("push", "origin", "main:three", "main:two");
    expect(plain.stderr).to.contain("conflicts");
    expect(await work.git("ls-remote", "origin", "three")).to.contain("refs/heads/three");
  });

  it("accepts refs under any prefix but the hidden ones, and names the valid prefixes", async () => {
    const { work, repo: made } = await filled();
    const head = await work.git("rev-parse", "main");
    const others = ["refs/pull/1/head", "refs/agents/x", "refs/notes/x", "refs/keep/around/1"];
    await work.git("push", "-q", "origin", ...others.map((ref) => `main:${ref}`));
    await work.git("push", "-q", "origin", "main:side", ":refs/keep/around/1");
    for (const version of ["0", "2"]) {
      const mirror = await world.checkout();
      const config = `protocol.version=${version}`;
      await mirror.git("-c", config, "fetch", "-q", gateway.remote(made), "+refs/*:refs/x/*");
      for (const ref of others.slice(0, 3)) {
        expect(await mirror.git("rev-parse", ref.replace("refs/", "refs/x/"))).to.equal(head);
      }
    }
    const copy = await world.checkout();
    await copy.git("clone", "-q", "--mirror", gateway.remote(made), "mirror.git");
    const again = await world.repo();
    await copy.git("-C", "mirror.git", "push", "-q", "--mirror", gateway.remote(again));
    expect(await work.git("ls-remote", gateway.remote(again))).to.equal(
      await work.git("ls-remote", "origin"),
    );
    for (const ref of ["refs/replace/x", "refs/internal/x", "refs/stash"]) {
      for (const from of ["main", ""]) {
        const { stderr, code } = await work.tryGit("push", "origin", `${from}:${ref}`);
        expect(code).to.not.equal(0);
        if (from) expect(stderr).to.contain("funny refname: allowed is refs/<name>/<more>, except");
      }
    }
  });

  it("clones shallow, deepens, unshallows, and accepts a push from a shallow clone", async () => {
    const { repo: made, work } = await filled(6);
    const shallow = await cloned(made, "--depth", "2");
    expect(await shallow.git("rev-list", "--count", "HEAD")).to.equal("2");
    await shallow.git("fetch", "-q", "--deepen", "2");
    expect(await shallow.git("rev-list", "--count", "HEAD")).to.equal("4");
    const head = await shallow.commit("from shallow");
    await shallow.git("push", "-q", "origin", "main");
    await shallow.git("fetch", "-q", "--unshallow");
    expect(await shallow.git("rev-list", "--count", "HEAD")).to.equal("7");
    await work.git("pull", "-q", "--ff-only", "origin", "main");
    expect(await work.git("rev-parse", "HEAD")).to.equal(head);
  });

  it("refuses a push from a shallow clone whose parent commits are not stored", async () => {
    const { repo: made } = await filled(4);
    const shallow = await cloned(made, "--depth", "1");
    const empty = await world.repo();
    const pushed = await shallow.tryGit("push", gateway.remote(empty), "main");
    expect(pushed.code).to.not.equal(0);
    expect(await shallow.git("ls-remote", gateway.remote(empty))).to.equal("");
  });

  for (const filter of ["blob:none", "blob:limit=10", "tree:0"]) {
    it(`makes a partial clone (${filter}) and fetches missing objects later`, async () => {
      const { repo: made, work } = await filled(2);
      await work.commit("a longer file than ten bytes", "long.txt");
      await work.git("push", "-q", "origin", "main");
      const part = await cloned(made, `--filter=${filter}`, "--no-checkout");
      await part.git("checkout", "-q", "main");
      expect(await part.git("show", "HEAD:long.txt")).to.contain("longer");
      await part.git("log", "-p", "-q");
    });
  }

  it("notifies subscribers of the account about pushes, clones and fetches", async () => {
    const { repo: made, work } = await filled(1);
    const copy = await cloned(made);
    await work.commit("more");
    await work.git("push", "-q", "origin", "main");
    await copy.git("fetch", "-q");
    // The events may be in any order, because the gateway reports fetches and the repository reports the other
    // events.
    const types = ["cloned", "created", "fetched", "pushed", "pushed"];
    await until("all are told", async () => (await typesOf(made)).join() === types.join());
  });

  it("reports a partial clone with its later fetches as one clone, and each type at most once per FETCH_EVENT_MS", async () => {
    const { repo: made } = await filled(3);
    let now = Date.now();
    const other = await world.gateway({ now: () => now });
    const part = await world.checkout();
    const remote = other.remote(made);
    const clone = (folder: string) =>
      part.git("clone", "-q", "--no-checkout", "--filter=blob:none", remote, folder);
    await clone("one");
    for (const commit of ["HEAD", "HEAD~1", "HEAD~2"]) {
      await part.git("-C", "one", "show", `${commit}:file.txt`);
    }
    now += FETCH_EVENT_MS - 1;
    await clone("two");
    now += 1;
    await clone("three");
    await clone("four");
    await until("all are told", async () => {
      const told = (await typesOf(made)).filter((type) => /cloned|fetched/.test(type));
      expect(told.length).to.be.at.most(3);
      return told.join() === ["cloned", "cloned", "fetched"].join();
    });
    expect(other.faults).to.deep.equal([]);
  });

  it("serves a commit requested by its id that no ref names", async () => {
    const { repo: made, work } = await filled(3);
    const old = await work.git("rev-parse", "main~1");
    const copy = await world.checkout();
    await copy.git("fetch", "-q", gateway.remote(made), old);
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(old);
  });

  it("accepts chunked bodies, Expect, and the empty probe request", async () => {
    const { repo: made, work } = await filled(1);
    await work.git("config", "http.postBuffer", "65536");
    await work.commit(randomBytes(3_000_000).toString("base64"), "large.bin");
    await work.git("-c", "http.extraHeader=Expect: 100-continue", "push", "-q", "origin", "main");
    const copy = await cloned(made);
    expect(await copy.git("rev-parse", "HEAD")).to.equal(await work.git("rev-parse", "HEAD"));
  });

  it("stores 10,000 refs and refuses one more, and accepts a push that deletes them all", async () => {
    const { repo: made, work } = await filled(1);
    const head = await work.git("rev-parse", "main");
    const tags = Array.from({ length: REFS_MAX - 1 }, (_, i) => `refs/tags/a/long/series/n${i}`);
    const make = tags.map((ref) => ({ old: ZERO_ID, value: head, ref }));
    const made10000 = await rawPush(gateway, made, make);
    expect(made10000.match(/ok refs/g)).to.have.length(REFS_MAX - 1);
    expect((await work.git("ls-remote", "origin")).split("\n")).to.have.length(REFS_MAX + 1);
    const mirror = await cloned(made, "--mirror");
    expect((await mirror.git("for-each-ref")).split("\n")).to.have.length(REFS_MAX);
    const more = await work.tryGit("push", "origin", "main:one-more");
    expect(more.stderr).to.contain("too many refs");
    await work.commit("more");
    await work.git("push", "-q", "origin", "main");
    const other = await world.gateway();
    const there = await work.git("ls-remote", other.remote(made), "refs/heads/*");
    expect(there).to.contain(await work.git("rev-parse", "main"));
    const remove = tags.map((ref) => ({ old: head, value: ZERO_ID, ref }));
    expect((await rawPush(other, made, remove)).match(/ok refs/g)).to.have.length(REFS_MAX - 1);
    expect((await work.git("ls-remote", "origin")).split("\n")).to.have.length(2);
  });
});
