import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import isomorphicGit from "isomorphic-git";
import http from "isomorphic-git/http/node";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import {
  COMMIT_CHANGES_MAX,
  COMMIT_MESSAGE_CHARS_MAX,
  COMMIT_PATH_DEPTH_MAX,
  FILE_BYTES_MAX,
} from "../../../schemas/repositories/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { Repositories } from "../repositories.ts";
import type { Checkout } from "../testing/git-world.ts";
import { commitFiles } from "../write/commit-files.ts";

describe("commits by REST", function () {
  this.timeout(180_000);
  let world: ArtifactsWorld;
  let made: { remote: string; token: string };
  let at: string;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  beforeEach(async () => {
    const name = `r${randomBytes(6).toString("hex")}`;
    at = `/commits/repos/${name}`;
    made = (await world.post("/commits/repos", { name })).result;
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const commit = (json: object) => world.post(`${at}/commits`, { message: "m", ...json });
  const put = (path: string, content: string, more = {}) =>
    commit({ changes: [{ path, content }], ...more });

  async function cloned(): Promise<Checkout> {
    const place = await world.checkout();
    await place.git("clone", "-q", world.remote(made), "copy");
    return Object.assign(place, { folder: join(place.folder, "copy") });
  }
  const filesOf = async (place: Checkout) =>
    (await place.git("-c", "core.quotePath=false", "ls-files", "-s"))
      .split("\n")
      .filter(Boolean)
      .map((line) => line.replace(/^(\d+) [0-9a-f]{40} 0\t/, "$1 "));

  it("makes the first commit, which clients can clone", async () => {
    const { status, result } = await commit({
      expected: null,
      message: "First\n\nbody",
      author: { name: "An Agent", email: "agent@example.com" },
      committer: { name: "A Bot", email: "bot@example.com" },
      changes: [
        { path: "README.md", content: "Hello \u00e4\n" },
        { path: "src/deep/run.sh", content: "#!/bin/sh\n", mode: "100755" },
        { path: "src/link", content: "../README.md", mode: "120000" },
        { path: "data.bin", base64: Buffer.of(0, 255, 10).toString("base64") },
        { path: "src.txt", content: "" },
      ],
    });
    expect(status).to.equal(201);
    expect(result).to.deep.include({
      ref: "refs/heads/main",
      before: null,
      parents: [],
      message: "First\n\nbody",
      author: { name: "An Agent", email: "agent@example.com" },
      committer: { name: "A Bot", email: "bot@example.com" },
    });
    const copy = await cloned();
    expect(await copy.git("rev-parse", "HEAD")).to.equal(result.hash);
    expect(await copy.git("rev-parse", "HEAD^{tree}")).to.equal(result.treeHash);
    expect(await filesOf(copy)).to.deep.equal([
      "100644 README.md",
      "100644 data.bin",
      "100644 src.txt",
      "100755 src/deep/run.sh",
      "120000 src/link",
    ]);
    await copy.git("fsck", "--full", "--strict");
    const shown = await world.ask(`${at}/commit/${result.hash}`);
    const { ref: _, before: __, ...same } = result;
    expect(shown.result).to.deep.equal(same);
    const raw = await world.ask(`${at}/raw/main/README.md`);
    expect(raw.text).to.equal("Hello \u00e4\n");
    const folder = join(copy.folder, "..", "second");
    const [url, token] = [made.remote, made.token.split("?")[0] ?? ""];
    await isomorphicGit.clone({
      fs,
      http,
      dir: folder,
      url,
      onAuth: () => ({ username: "x", password: token }),
    });
    expect(await isomorphicGit.resolveRef({ fs, dir: folder, ref: "HEAD" })).to.equal(result.hash);
  });

  it("changes, adds and deletes files, and leaves the others", async () => {
    const paths = ["a", "b/c", "b/d", "b-x", "b.x", "e/f/g", "z"];
    await commit({ changes: paths.map((path) => ({ path, content: path })) });
    await commit({ changes: [{ path: "a", content: "#!", mode: "100755" }] });
    const { result } = await commit({
      changes: [
        { path: "a", content: "changed" },
        { path: "b/d", delete: true },
        { path: "e", delete: true },
        { path: "b/c2/new", content: "new" },
      ],
    });
    const copy = await cloned();
    expect(await filesOf(copy)).to.deep.equal([
      "100755 a",
      "100644 b-x",
      "100644 b.x",
      "100644 b/c",
      "100644 b/c2/new",
      "100644 z",
    ]);
    await copy.git("fsck", "--full", "--strict");
    expect(await copy.git("log", "--format=%H %an", "-1")).to.match(/ Trunkline$/);
    const { result: last } = await commit({
      changes: [
        { path: "b", delete: true },
        { path: "b/inner", content: "x" },
        { path: "z", delete: true },
        { path: "z/below", content: "y" },
      ],
    });
    expect(last.parents).to.deep.equal([result.hash]);
    await copy.git("pull", "-q");
    expect(await filesOf(copy)).to.deep.equal([
      "100755 a",
      "100644 b-x",
      "100644 b.x",
      "100644 b/inner",
      "100644 z/below",
    ]);
    const all = ["a", "b", "b-x", "b.x", "z"].map((path) => ({ path, delete: true }));
    expect((await commit({ changes: all })).status).to.equal(201);
    await copy.git("pull", "-q");
    expect(await filesOf(copy)).to.deep.equal([]);
    expect((await put("again", "x")).status).to.equal(201);
  });

  it("continues from a pushed commit, and a push continues from it", async () => {
    const work = await world.checkout();
    await work.commit("pushed", "pushed.txt");
    await work.git("push", "-q", world.remote(made), "main");
    const { result } = await put("committed.txt", "x");
    await work.git("fetch", "-q", world.remote(made), "main");
    await work.git("reset", "-q", "--hard", "FETCH_HEAD");
    expect(await work.git("rev-parse", "HEAD")).to.equal(result.hash);
    await work.commit("after", "after.txt");
    await work.git("push", "-q", world.remote(made), "main");
    expect((await put("last.txt", "y")).status).to.equal(201);
    expect((await world.ask(`${at}/log`)).result).to.have.length(4);
  });

  it("answers 409 and changes nothing if the branch is not at the expected commit", async () => {
    const first = (await put("a", "1", { expected: null })).result;
    const second = (await put("a", "2", { expected: first.hash })).result;
    expect(second.before).to.equal(first.hash);
    for (const expected of [null, first.hash, "1".repeat(40)]) {
      const { status, errors } = await put("a", "3", { expected });
      expect([status, errors[0]?.code]).to.deep.equal([409, 10304]);
      expect(errors[0]?.message).to.contain(second.hash);
    }
    const missing = await put("a", "3", { branch: "other", expected: first.hash });
    expect(missing.errors[0]?.code).to.equal(10304);
    expect((await world.ask(`${at}/refs`)).result).to.have.length(1);
    expect((await world.ask(`${at}/raw/main/a`)).text).to.equal("2");
  });

  it("succeeds with an expected tip although upkeep rewrote the repository meanwhile", async () => {
    const { result } = await put("a", "1");
    const { parts } = world.opened.repositories;
    const { actors } = parts;
    let swaps = 0;
    const cleaning: ActorClient = {
      run: actors.run.bind(actors),
      send: actors.send.bind(actors),
      // Sends another generation in the first `swap`, as if a prune had changed the repository meanwhile.
      call: (contract, key, message, input, ...rest) => {
        const isFirst = message === "swap" && swaps++ === 0;
        const asked = isFirst ? Object.assign({}, input, { generation: 7 }) : input;
        return actors.call(contract, key, message, asked, ...rest);
      },
    };
    const repositories = new Repositories({ ...parts, actors: cleaning });
    const address = { accountId: world.accountId, namespace: "commits", name: at.slice(15) };
    const changes = [{ path: "b", content: Buffer.from("2") }];
    const asked = { message: "m", expected: result.hash, changes };
    const made = await commitFiles(repositories, address, asked, new AbortController().signal);
    expect([made.before, swaps]).to.deep.equal([result.hash, 2]);
  });

  it("makes one of many commits that expect the same tip, and all of many that expect none", async () => {
    const { result } = await put("a", "0");
    const racing = await Promise.all(
      Array.from({ length: 8 }, (_, i) => put(`r${i}`, "x", { expected: result.hash })),
    );
    expect(racing.filter(({ status }) => status === 201)).to.have.length(1);
    expect(racing.filter(({ errors }) => errors[0]?.code === 10304)).to.have.length(7);
    const others = await Promise.all(Array.from({ length: 20 }, (_, i) => put(`o${i}`, "x")));
    for (const { status, text } of others) expect(status, text).to.equal(201);
    const { result: tree } = await world.ask(`${at}/log`);
    expect(tree).to.have.length(22);
    const files = (await world.ask(`${at}/tree/${tree[0].treeHash}`)).result;
    expect(files.map(({ name }: { name: string }) => name)).to.include.members([
      "o0",
      "o1",
      "o2",
      "o3",
    ]);
  });

  it("refuses a commit that changes nothing, unless allow_empty permits it", async () => {
    const first = (await put("a", "0")).result;
    const refused = await put("a", "0");
    expect([refused.status, refused.errors[0]?.message]).to.deep.equal([
      409,
      "Cannot commit: the changes leave every file as it is; set allow_empty to commit anyway",
    ]);
    expect((await put("a", "0", { allow_empty: false })).status).to.equal(409);
    const { status, result } = await put("a", "0", { allow_empty: true });
    expect(status).to.equal(201);
    expect(result).to.deep.include({ treeHash: first.treeHash, parents: [first.hash] });
    expect((await put("a", "1", { allow_empty: true })).status).to.equal(201);
  });

  it("makes branches, which have the history of their base if one is named", async () => {
    const { result } = await put("a", "0");
    const orphan = await put("b", "0", { branch: "orphan/one" });
    expect([orphan.result.parents, orphan.result.ref]).to.deep.equal([[], "refs/heads/orphan/one"]);
    const based = await put("b", "0", { branch: "topic", base: "main" });
    expect([based.result.parents, based.result.before]).to.deep.equal([[result.hash], null]);
    expect((await put("b", "1", { branch: "topic", base: "main" })).errors[0]?.code).to.equal(
      10304,
    );
    const nowhere = await put("b", "1", { branch: "new", base: "nope" });
    expect([nowhere.status, nowhere.errors[0]?.source]).to.deep.equal([400, { pointer: "/base" }]);
    const clash = await put("b", "1", { branch: "topic/below" });
    expect([clash.status, clash.errors[0]?.code]).to.deep.equal([409, 10201]);
  });

  it("refuses each fault with its pointer", async () => {
    await commit({
      changes: [
        { path: "dir/file", content: "x" },
        { path: "top", content: "x" },
      ],
    });
    const change = (...changes: object[]) => ({ changes });
    const x = { content: "x" };
    const faults: [object, string][] = [
      [change(), "/changes"],
      [{ changes: "x" }, "/changes"],
      [{ ...change({ path: "a", ...x }), message: "" }, "/message"],
      [{ ...change({ path: "a", ...x }), message: "a\0b" }, "/message"],
      [
        { ...change({ path: "a", ...x }), message: "x".repeat(COMMIT_MESSAGE_CHARS_MAX + 1) },
        "/message",
      ],
      [{ ...change({ path: "a", ...x }), branch: "a..b" }, "/branch"],
      [{ ...change({ path: "a", ...x }), expected: "main" }, "/expected"],
      [{ ...change({ path: "a", ...x }), author: { name: "a" } }, "/author/email"],
      [{ ...change({ path: "a", ...x }), author: { name: "a<b", email: "a@b" } }, "/author/name"],
      [{ ...change({ path: "a", ...x }), author: { name: "", email: "a@b" } }, "/author/name"],
      [{ ...change({ path: "a", ...x }), author: { name: "a\nb", email: "a@b" } }, "/author/name"],
      [
        { ...change({ path: "a", ...x }), author: { name: "a", email: "a> 1 +0000" } },
        "/author/email",
      ],
      [change({ path: "a", ...x }, { path: "b" }), "/changes/1"],
      [change({ path: "a", ...x, base64: "" }), "/changes/0"],
      [change({ path: "a", base64: "x" }), "/changes/0/base64"],
      [change({ path: "a", content: "\ud800" }), "/changes/0/content"],
      [change({ path: "a", delete: false }), "/changes/0/delete"],
      [change({ path: "top", delete: true, mode: "100644" }), "/changes/0/mode"],
      [change({ path: "a", ...x, mode: "160000" }), "/changes/0/mode"],
      [change({ path: "a", ...x }, { path: "a", ...x }), "/changes/1/path"],
      [change({ path: "a", ...x }, { path: "a/b", ...x }), "/changes/1/path"],
      [change({ path: "a/b", ...x }, { path: "a", ...x }), "/changes/1/path"],
      [change({ path: "nope", delete: true }), "/changes/0/path"],
      [change({ path: "dir/nope", delete: true }), "/changes/0/path"],
      [change({ path: "ok", ...x }, { path: "dir", ...x }), "/changes/1/path"],
      [change({ path: "ok", ...x }, { path: "top/below", ...x }), "/changes/1/path"],
    ];
    for (const path of [
      "",
      "/a",
      "a/",
      "a//b",
      ".",
      "..",
      "a/../b",
      ".git/x",
      "a/.GIT",
      "a\nb",
      "a\0b",
      "x".repeat(256),
    ]) {
      faults.push([change({ path, ...x }), "/changes/0/path"]);
    }
    faults.push([
      change({ path: `${"a/".repeat(COMMIT_PATH_DEPTH_MAX)}a`, ...x }),
      "/changes/0/path",
    ]);
    for (const [json, pointer] of faults) {
      const { status, errors } = await commit(json);
      expect(
        [status, errors[0]?.code, errors[0]?.source?.pointer],
        JSON.stringify(json).slice(0, 200),
      ).to.deep.equal([400, 10100, pointer]);
    }
    // Git itself refuses names that only some file systems take for .git.
    for (const path of ["git~1/x", ".g\u200cit/config", ".git ./x"]) {
      const { status, errors } = await commit(change({ path, ...x }));
      expect([status, errors[0]?.source?.pointer], path).to.deep.equal([400, "/changes"]);
    }
    expect((await world.ask(`${at}/log`)).result).to.have.length(1);
  });

  it("accepts commits up to the documented limits and refuses more", async () => {
    const changes = Array.from({ length: COMMIT_CHANGES_MAX }, (_, i) => ({
      path: `f${i}`,
      content: `${i}`,
    }));
    expect((await commit({ changes })).status).to.equal(201);
    const more = await commit({ changes: [...changes, { path: "one", content: "" }] });
    expect([more.status, more.errors[0]?.source?.pointer]).to.deep.equal([400, "/changes"]);
    const deep = `${"a/".repeat(COMMIT_PATH_DEPTH_MAX - 1)}a`;
    expect(
      (await put(deep, "x", { message: "x".repeat(COMMIT_MESSAGE_CHARS_MAX) })).status,
    ).to.equal(201);
    expect((await put("x".repeat(255), "x")).status).to.equal(201);
    const largest = Buffer.alloc(FILE_BYTES_MAX);
    const large = (content: Buffer) =>
      commit({ changes: [{ path: "large", base64: content.toString("base64") }] });
    expect((await large(largest)).status).to.equal(201);
    const past = await large(Buffer.concat([largest, Buffer.alloc(3)]));
    expect([past.status, past.errors[0]?.source?.pointer]).to.deep.equal([
      400,
      "/changes/0/base64",
    ]);
    const { bytes } = await world.ask(`${at}/raw/main/large`);
    expect(bytes.length).to.equal(FILE_BYTES_MAX);
  });

  it("refuses changes that a push may not make, and tokens without permission", async () => {
    await put("a", "0");
    await world.ask(at, { method: "PATCH", json: { protected_refs: ["refs/heads/main"] } });
    expect((await put("a", "1")).status).to.equal(201);
    await world.ask(at, { method: "PATCH", json: { read_only: true } });
    const refused = await put("a", "2");
    expect([refused.status, refused.errors[0]?.message]).to.deep.equal([
      409,
      "Cannot commit: the repository is read-only",
    ]);
    const token = await world.tokenWith("artifacts.read");
    const json = { message: "m", changes: [{ path: "a", content: "x" }] };
    expect((await world.ask(`${at}/commits`, { method: "POST", json, token })).status).to.equal(
      403,
    );
    expect((await world.post("/commits/repos/none/commits", json)).status).to.equal(404);
  });

  it("serves a commit after the cache is deleted, and leaves no temporary files in the cache", async () => {
    const { result } = await put("a", "kept");
    await until("no place is held", () => world.git.parts.slots.running === 0);
    await rm(join(world.folder, "git", "repos"), { recursive: true });
    await rm(join(world.folder, "git", "packs"), { recursive: true });
    expect((await world.ask(`${at}/raw/main/a`)).text).to.equal("kept");
    const next = await put("b", "x", { expected: result.hash });
    expect(next.status).to.equal(201);
    const left = () => readdir(join(world.folder, "git", "tmp"));
    await until("nothing is left", async () => (await left()).length === 0);
  });
});
