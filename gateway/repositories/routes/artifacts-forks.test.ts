import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { expect } from "chai";
import { repo as repoContract } from "../../../schemas/repositories/repo.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import type { Checkout } from "../testing/git-world.ts";

describe("forks", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  let work: Checkout;
  let origin: { id: string; remote: string; token: string };
  let secret: string;
  before(async () => {
    world = await ArtifactsWorld.start();
    origin = (await world.post("/forks/repos", { name: "Origin", description: "first" })).result;
    work = await world.checkout();
    await work.commit("1");
    await work.commit("2");
    await work.git("checkout", "-q", "-b", "other");
    await work.commit("secret", "secret.txt");
    secret = await work.git("rev-parse", "other:secret.txt");
    await work.git("tag", "v1", "main");
    await work.git("push", "-q", world.remote(origin), "main", "other", "v1");
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const fork = (json: object, from = "origin") => world.post(`/forks/repos/${from}/fork`, json);
  const refsOf = async (name: string) =>
    (await world.ask(`/forks/repos/${name}/refs`)).result.map((ref: { name: string }) => ref.name);

  it("have all refs and objects of the origin, and then change independently", async () => {
    const { status, result } = await fork({ name: "all" });
    expect(status).to.equal(201);
    expect(result).to.deep.include({ name: "all", description: "first", default_branch: "main" });
    expect(result.objects).to.equal(9);
    expect(await refsOf("all")).to.deep.equal([
      "refs/heads/main",
      "refs/heads/other",
      "refs/tags/v1",
    ]);
    const shown = (await world.ask("/forks/repos/all")).result;
    expect(shown).to.deep.include({
      source: "artifacts:forks/Origin",
      status: "ready",
      read_only: false,
    });
    const copy = await world.checkout();
    await copy.git("fetch", "-q", world.remote(result), "main");
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(await work.git("rev-parse", "main"));
    await copy.git("reset", "-q", "--hard", "FETCH_HEAD");
    await copy.commit("own");
    await copy.git("push", "-q", world.remote(result), "main");
    expect(await work.git("ls-remote", world.remote(origin), "main")).to.contain(
      await work.git("rev-parse", "main"),
    );
    await world.ask("/forks/repos/all", { method: "DELETE" });
    expect((await world.ask("/forks/repos/origin/log")).result).to.have.length(2);
  });

  it("of the default branch only give no access to other objects, not even by id", async () => {
    const { result } = await fork({ name: "branch", default_branch_only: true, description: null });
    expect(result).to.deep.include({ description: null, objects: 6 });
    expect(await refsOf("branch")).to.deep.equal(["refs/heads/main"]);
    expect((await world.ask(`/forks/repos/origin/blob/${secret}`)).status).to.equal(200);
    expect((await world.ask(`/forks/repos/branch/blob/${secret}`)).status).to.equal(404);
    const copy = await world.checkout();
    expect((await copy.tryGit("fetch", world.remote(result), secret)).code).to.not.equal(0);
    await copy.git("fetch", "-q", world.remote(result), "main");
    await copy.git("fsck", "--full", "--strict");
    expect(await copy.git("rev-parse", "FETCH_HEAD")).to.equal(await work.git("rev-parse", "main"));
  });

  it("may be read-only, and can be forked in turn", async () => {
    const { result } = await fork({ name: "frozen", read_only: true });
    const pushed = await work.tryGit("push", world.remote(result), "main:new");
    expect(pushed.stderr).to.contain("read-only");
    expect((await fork({ name: "thawed" }, "frozen")).status).to.equal(201);
    expect(await refsOf("thawed")).to.have.length(3);
  });

  it("of an empty repository are empty, whole or by their branch", async () => {
    await world.post("/forks/repos", { name: "void", default_branch: "trunk" });
    for (const [name, only] of [
      ["void-1", false],
      ["void-2", true],
    ] as const) {
      const { result } = await fork({ name, default_branch_only: only }, "void");
      expect(result).to.deep.include({ default_branch: "trunk", objects: 0 });
      expect(await refsOf(name)).to.deep.equal([]);
    }
  });

  it("of the default branch only refuse an origin that has refs but no default branch", async () => {
    const made = (await world.post("/forks/repos", { name: "tagged" })).result;
    await work.git("push", "-q", world.remote(made), "main:refs/tags/only");
    const { status, errors } = await fork({ name: "x1", default_branch_only: true }, "tagged");
    expect(status).to.equal(409);
    expect(errors[0]?.message).to.contain('"tagged" has no branch "main", its default branch');
    expect((await fork({ name: "x2" }, "tagged")).status).to.equal(201);
    const patched = await world.ask("/forks/repos/Origin", {
      method: "PATCH",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ default_branch: "none" }),
    });
    expect(patched.status).to.equal(400);
    expect(patched.errors[0]?.source).to.deep.equal({ pointer: "/default_branch" });
  });

  it("of very many refs are made in several messages, and have all refs", async () => {
    const { result } = await world.post("/forks/repos", { name: "many" });
    const many = await world.checkout();
    await many.commit("1");
    const id = await many.git("rev-parse", "HEAD");
    const lines = Array.from(
      { length: 800 },
      (_, i) => `create refs/tags/${i}-${"x".repeat(240)} ${id}\n`,
    );
    execFileSync("git", ["update-ref", "--stdin"], { cwd: many.folder, input: lines.join("") });
    await many.git("push", "-q", world.remote(result), "main", "--tags");
    const forked = await fork({ name: "many-2", read_only: true }, "many");
    expect(forked.status).to.equal(201);
    expect((await world.ask("/forks/repos/many-2/refs?limit=1")).info.count).to.equal(1);
    const place = await world.checkout();
    const listed = await place.git("ls-remote", world.remote(forked.result));
    expect(listed.split("\n")).to.have.length(802);
    const shown = (await world.ask("/forks/repos/many-2")).result;
    expect(shown).to.deep.include({ status: "ready", read_only: true });
  });

  it("refuse a taken name, an invalid name, and an origin that is missing or incomplete", async () => {
    const taken = await fork({ name: "ORIGIN" });
    expect([taken.status, taken.errors[0]?.code]).to.deep.equal([409, 10201]);
    expect((await fork({ name: "-x" })).errors[0]?.code).to.equal(10101);
    expect((await fork({ name: "x", colour: 1 })).errors[0]?.source?.pointer).to.equal("/colour");
    expect((await fork({ name: "x" }, "none")).status).to.equal(404);
    const { result } = await world.post("/forks/repos", { name: "half" });
    for (const [status, code] of [
      ["importing", 10302],
      ["forking", 10303],
    ] as const) {
      await world.world.client.call(repoContract, result.id, "setStatus", {
        status,
        failure: null,
      });
      const refused = await fork({ name: "y" }, "half");
      expect([refused.status, refused.errors[0]?.code]).to.deep.equal([409, code]);
    }
  });

  it("refuse pushes, commits and large files of others until they are complete", async () => {
    const { result } = await world.post("/forks/repos", { name: "incomplete" });
    const forking = { status: "forking" as const, failure: null };
    await world.world.client.call(repoContract, result.id, "setStatus", forking);
    const place = await world.checkout();
    await place.commit("early");
    const pushed = await place.tryGit("push", world.remote(result), "main");
    expect(pushed.code).to.not.equal(0);
    expect(pushed.stderr).to.contain("409");
    const commit = { message: "x", changes: [{ path: "a", content: "a" }] };
    const refused = await world.post("/forks/repos/incomplete/commits", commit);
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([409, 10303]);
    const large = await fetch(`${result.remote}/info/lfs/objects/${"a".repeat(64)}/1`, {
      method: "PUT",
      headers: { Authorization: `Bearer ${result.token}` },
      body: "a",
    });
    expect(large.status).to.equal(409);
    expect(world.faults).to.deep.equal([]);
  });

  it("have the origin's large files; forks of one branch have those that it points at", async () => {
    const { result: made } = await world.post("/forks/repos", { name: "large" });
    const large = await world.checkout();
    const store = async ({ remote, token }: { remote: string; token: string }, text: string) => {
      const oid = createHash("sha256").update(text).digest("hex");
      const { status } = await fetch(`${remote}/info/lfs/objects/${oid}/${text.length}`, {
        method: "PUT",
        headers: { Authorization: `Bearer ${token}` },
        body: text,
      });
      expect(status).to.equal(200);
      return oid;
    };
    const pointer = (oid: string, size: number) =>
      `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize ${size}\n`;
    const [old, other, unnamed] = [
      await store(made, "in main's past"),
      await store(made, "in other"),
      await store(made, "in no file"),
    ];
    await large.commit(pointer(old, 14), "a.bin");
    await large.commit("no pointer any more", "a.bin");
    await large.git("checkout", "-q", "-b", "other");
    await large.commit(pointer(other, 8), "b.bin");
    await large.git("push", "-q", world.remote(made), "main", "other");
    const has = async ({ remote, token }: { remote: string; token: string }, oid: string) => {
      const headers = { Authorization: `Bearer ${token}` };
      return (await fetch(`${remote}/info/lfs/objects/${oid}`, { headers })).status === 200;
    };
    const whole = (await fork({ name: "large-all" }, "large")).result;
    const branch = (await fork({ name: "large-main", default_branch_only: true }, "large")).result;
    const read = (await fork({ name: "large-read", read_only: true }, "large")).result;
    for (const [repo, expected] of [
      [whole, [true, true, true]],
      [read, [true, true, true]],
      [branch, [true, false, false]],
    ] as const) {
      const found = await Promise.all([old, other, unnamed].map((oid) => has(repo, oid)));
      expect(found, repo.name).to.deep.equal(expected);
      const { result } = await world.ask(`/forks/repos/${repo.name}`);
      expect(result.status).to.equal("ready");
    }
    await world.ask("/forks/repos/large", { method: "DELETE" });
    expect(await has(whole, other)).to.equal(true);
  });
});
