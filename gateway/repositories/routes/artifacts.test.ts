import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { repoToken } from "../../../schemas/repositories/repo-token.ts";
import { until } from "../../../scripts/testing/until.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { Repositories } from "../repositories.ts";

const codeOf = (error: unknown) => error instanceof ActorError && error.code;

describe("routes of namespaces and repositories", function () {
  this.timeout(60_000);
  let world: ArtifactsWorld;
  before(async () => {
    world = await ArtifactsWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const ask: ArtifactsWorld["ask"] = (...parameters) => world.ask(...parameters);
  const post: ArtifactsWorld["post"] = (...parameters) => world.post(...parameters);

  it("createNamespace() makes a namespace once, and lists it at once", async () => {
    const made = await post("", { namespace: "Made", jurisdiction: "unrestricted" });
    expect(made.status).to.equal(201);
    expect(made.result).to.deep.include({
      namespace: "Made",
      jurisdiction: "unrestricted",
      repo_count: 0,
    });
    expect((await ask("/made")).result).to.deep.equal(made.result);
    expect((await ask("")).result.map((one: { namespace: string }) => one.namespace)).to.include(
      "Made",
    );
    const again = await post("", { namespace: "made" });
    expect([again.status, again.errors]).to.deep.equal([
      409,
      [{ code: 10201, message: "Namespace already exists" }],
    ]);
  });

  it("createNamespace() refuses an invalid name, with the public API's error number and pointer", async () => {
    for (const namespace of ["-x", "x", "a".repeat(64), "a/b", "", 1, null, undefined]) {
      const { status, errors } = await post("", { namespace });
      expect(status).to.equal(400);
      expect(errors[0]).to.deep.include({ code: 10100, source: { pointer: "/namespace" } });
    }
    const elsewhere = await post("", { namespace: "ok", jurisdiction: "eu" });
    expect(elsewhere.errors[0]?.source).to.deep.equal({ pointer: "/jurisdiction" });
    const unknown = await post("", { namespace: "ok", colour: "red" });
    expect(unknown.errors[0]?.source).to.deep.equal({ pointer: "/colour" });
  });

  it("getNamespace() and deleteNamespace() refuse unknown names; a namespace with repositories cannot be deleted", async () => {
    const missing = await ask("/nowhere");
    expect([missing.status, missing.errors]).to.deep.equal([
      404,
      [{ code: 10200, message: "Namespace not found" }],
    ]);
    expect((await ask("/nowhere", { method: "DELETE" })).status).to.equal(404);
    await post("/full/repos", { name: "one" });
    const full = await ask("/full", { method: "DELETE" });
    expect([full.status, full.errors[0]?.code]).to.deep.equal([409, 10201]);
    expect((await ask("/full/repos/one", { method: "DELETE" })).status).to.equal(202);
    const gone = await ask("/full", { method: "DELETE" });
    expect([gone.status, gone.text, gone.headers.get("content-type")]).to.deep.equal([
      204,
      "",
      null,
    ]);
    expect((await ask("/full")).status).to.equal(404);
    await until("it is no longer listed", async () => {
      const { result } = await ask("");
      return !result.some((one: { namespace: string }) => one.namespace === "full");
    });
  });

  it("listNamespaces() lists namespaces in pages, with their number of repositories", async () => {
    const token = world.token;
    for (const name of ["page-a", "page-b", "page-c"]) await post("", { namespace: name });
    await post("/page-b/repos", { name: "one" });
    await until("the repository is counted", async () => {
      const { result } = await ask("", { token });
      return result.some(
        (one: { namespace: string; repo_count: number }) =>
          one.namespace === "page-b" && one.repo_count === 1,
      );
    });
    const seen: string[] = [];
    let cursor = "";
    for (;;) {
      const { result, info } = await ask(`?limit=2${cursor}`);
      seen.push(...result.map((one: { namespace: string }) => one.namespace));
      if (!info.cursor) {
        expect(info.total_count).to.equal(seen.length);
        break;
      }
      expect(info).to.deep.include({ per_page: 2, count: 2 });
      cursor = `&cursor=${info.cursor}`;
    }
    expect(seen).to.include.members(["page-a", "page-b", "page-c"]);
    expect(seen).to.deep.equal(
      [...new Set(seen)].sort((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1)),
    );
    for (const query of ["limit=0", "limit=201", "limit=x", "cursor=x"]) {
      const { status, errors } = await ask(`?${query}`);
      expect(status, query).to.equal(400);
      expect(errors[0]?.source?.pointer).to.equal(`/${query.split("=")[0]}`);
    }
    expect((await ask("?limit=200")).status).to.equal(200);
  });

  it("createRepo() makes a repository and its namespace, and returns the remote and token for a push", async () => {
    const { status, result } = await post("/Fresh/repos", { name: "Base", description: "probe" });
    expect(status).to.equal(201);
    expect(Object.keys(result)).to.deep.equal([
      "id",
      "name",
      "description",
      "default_branch",
      "remote",
      "token",
    ]);
    expect(result.id).to.match(/^[0-9a-z]{16}$/);
    expect(result.token).to.match(/^art_v1_[0-9a-f]{40}\?expires=\d{10}$/);
    expect(result.remote).to.equal(`${world.url}/git/${world.accountId}/Fresh/Base.git`);
    const shown = await ask("/fresh/repos/base");
    expect(shown.result).to.deep.include({
      id: result.id,
      description: "probe",
      default_branch: "main",
      last_push_at: null,
      source: null,
      read_only: false,
      remote: result.remote,
      status: "ready",
      protected_refs: [],
    });
    const again = await post("/fresh/repos", { name: "base" });
    expect([again.status, again.errors[0]?.code]).to.deep.equal([409, 10201]);
    expect(again.errors[0]?.message).to.equal("repo already exists: base");
  });

  it("createRepo() refuses each invalid field", async () => {
    const faults: [object, string, number][] = [
      [{ name: "-bad" }, "/name", 10101],
      [{}, "/name", 10101],
      [{ name: "a".repeat(64) }, "/name", 10101],
      [{ name: "x.git" }, "/name", 10101],
      [{ name: "ok", default_branch: "a..b" }, "/default_branch", 10100],
      [{ name: "ok", default_branch: "-a" }, "/default_branch", 10100],
      [{ name: "ok", description: "x".repeat(1_025) }, "/description", 10100],
      [{ name: "ok", read_only: "yes" }, "/read_only", 10100],
      [{ name: "ok", colour: 1 }, "/colour", 10100],
    ];
    for (const [json, pointer, code] of faults) {
      const { status, errors } = await post("/faults/repos", json);
      expect([status, errors[0]?.code, errors[0]?.source?.pointer]).to.deep.equal([
        400,
        code,
        pointer,
      ]);
    }
    const space = await post("/-/repos", { name: "ok" });
    expect([space.status, space.errors[0]?.source?.pointer]).to.deep.equal([400, "/namespace"]);
    const name = await ask("/ok/repos/-bad");
    expect([name.status, name.errors[0]?.code]).to.deep.equal([400, 10101]);
    expect((await post("/faults/repos", { name: "a".repeat(63) })).status).to.equal(201);
    const longest = { name: "described", description: "x".repeat(1_024) };
    expect((await post("/faults/repos", longest)).status).to.equal(201);
  });

  it("createRepo() leaves nothing behind if it fails while claiming the name", async () => {
    const { parts } = world.opened.repositories;
    const { actors } = parts;
    const issued: string[] = [];
    const failing: ActorClient = {
      run: actors.run.bind(actors),
      send: actors.send.bind(actors),
      call: (contract, key, message, ...rest) => {
        if (message === "issue") issued.push(key);
        if (message === "create" && contract.kind === "repo") {
          return Promise.reject(new Error("cut off"));
        }
        return actors.call(contract, key, message, ...rest);
      },
    };
    const address = { accountId: world.accountId, namespace: "claims", name: "again" };
    const made = new Repositories({ ...parts, actors: failing }).create(address);
    expect(await made.catch((error: Error) => error.message)).to.equal("cut off");
    const { status } = await until("its name is free", async () => {
      const answer = await world.post("/claims/repos", { name: "again" });
      return answer.status === 201 && answer;
    });
    expect(status).to.equal(201);
    const [key = ""] = issued;
    await until("its token is forgotten", async () => {
      const found = await actors.call(repoToken, key, "find", {}).catch(codeOf);
      return found === "not_found";
    });
  });

  it("listRepos() searches, sorts and pages, and refuses an unknown namespace", async () => {
    const unknown = await ask("/nowhere-at-all/repos");
    expect(unknown.status).to.equal(404);
    for (const name of ["alpha", "Beta", "gamma", "delta"]) await post("/list/repos", { name });
    await until("all are listed as ready", async () => {
      const { result } = await ask("/list/repos");
      return result.length === 4;
    });
    const names = async (query: string) =>
      (await ask(`/list/repos?${query}`)).result.map(({ name }: { name: string }) => name);
    expect(await names("sort=name&direction=asc")).to.deep.equal([
      "alpha",
      "Beta",
      "delta",
      "gamma",
    ]);
    expect(await names("sort=name")).to.deep.equal(["gamma", "delta", "Beta", "alpha"]);
    expect(await names("search=ET&sort=name")).to.deep.equal(["Beta"]);
    expect(await names("")).to.deep.equal(["delta", "gamma", "Beta", "alpha"]);
    const first = await ask("/list/repos?limit=3&sort=name&direction=asc");
    expect(first.result[0]).to.include({
      status: "ready",
      remote: `${world.url}/git/${world.accountId}/list/alpha.git`,
    });
    expect(first.info).to.deep.include({ per_page: 3, count: 3 });
    const next = `limit=3&sort=name&direction=asc&cursor=${first.info.cursor}`;
    const second = await ask(`/list/repos?${next}`);
    expect(second.result.map(({ name }: { name: string }) => name)).to.deep.equal(["gamma"]);
    expect(second.info).to.deep.equal({
      page: 2,
      per_page: 3,
      total_pages: 2,
      count: 1,
      total_count: 4,
    });
    // The cursor is invalid for another query.
    for (const query of [
      `cursor=${first.info.cursor}`,
      "sort=x",
      "direction=up",
      "limit=201",
      `search=${"x".repeat(101)}`,
    ]) {
      const { status, errors } = await ask(`/list/repos?${query}`);
      expect(status, query).to.equal(400);
      expect(errors[0]?.source?.pointer).to.equal(`/${query.split("=")[0]}`);
    }
    expect((await ask(`/list/repos?limit=200&search=${"x".repeat(100)}`)).status).to.equal(200);
  });

  it("deleteRepo() deletes at once, may be repeated, and refuses a repository that never existed", async () => {
    const { result } = await post("/gone/repos", { name: "one" });
    const work = await world.checkout();
    await work.commit("1");
    await work.git("push", "-q", world.remote(result), "main");
    for (let i = 0; i < 2; i++) {
      const deleted = await ask("/gone/repos/one", { method: "DELETE" });
      expect([deleted.status, deleted.result]).to.deep.equal([202, { id: result.id }]);
      expect((await ask("/gone/repos/one")).status).to.equal(404);
      expect((await work.tryGit("ls-remote", world.remote(result))).code).to.not.equal(0);
    }
    const never = await ask("/gone/repos/never", { method: "DELETE" });
    expect([never.status, never.errors[0]?.code]).to.deep.equal([404, 10200]);
    const anew = await post("/gone/repos", { name: "one" });
    expect(anew.status).to.equal(201);
    expect(anew.result.id).to.not.equal(result.id);
    expect(await work.git("ls-remote", world.remote(anew.result))).to.equal("");
  });

  it("changeRepo() changes the given fields, and pushes respect them", async () => {
    const { result } = await post("/changed/repos", { name: "one" });
    const at = "/changed/repos/one";
    const patch = (json: object) => ask(at, { method: "PATCH", json });
    const work = await world.checkout();
    await work.commit("1");
    await work.commit("2");
    const push = (...what: string[]) => work.tryGit("push", world.remote(result), ...what);
    expect((await push("main", "main:side")).code).to.equal(0);
    const changed = await patch({
      description: null,
      default_branch: "side",
      protected_refs: ["refs/heads/main"],
    });
    expect([changed.status, changed.result.default_branch]).to.deep.equal([200, "side"]);
    expect(changed.result.protected_refs).to.deep.equal(["refs/heads/main"]);
    expect(await work.git("ls-remote", "--symref", world.remote(result), "HEAD")).to.contain(
      "refs/heads/side",
    );
    expect((await push("+main~1:main")).stderr).to.contain("protected");
    await patch({ read_only: true });
    expect((await push("main:other")).stderr).to.contain("read-only");
    await patch({ read_only: false });
    expect((await push("main:other")).code).to.equal(0);
    for (const json of [{}, { default_branch: "" }, { protected_refs: ["main"] }, { name: "x" }]) {
      expect((await patch(json)).status).to.equal(400);
    }
    const rules = Array.from({ length: 101 }, (_, i) => `refs/heads/b${i}`);
    expect((await patch({ protected_refs: rules })).status).to.equal(400);
    expect((await patch({ protected_refs: rules.slice(1) })).status).to.equal(200);
    const none = await ask("/changed/repos/none", { method: "PATCH", json: { read_only: true } });
    expect(none.status).to.equal(404);
  });

  it("all routes of the public API exist, and our additional routes", () => {
    const at = "/accounts/{account_id}/artifacts";
    const spaces = `${at}/namespaces`;
    const repos = `${spaces}/{namespace}/repos`;
    const own = `${repos}/{name}`;
    const expected = {
      [`${at}/usage`]: ["get"],
      [spaces]: ["get", "post"],
      [`${spaces}/{namespace}`]: ["delete", "get"],
      [repos]: ["get", "post"],
      [own]: ["delete", "get", "patch"],
      [`${own}/fork`]: ["post"],
      [`${own}/import`]: ["post"],
      [`${own}/prune`]: ["post"],
      [`${own}/log`]: ["get"],
      [`${own}/commit/{hash}`]: ["get"],
      [`${own}/tree/{hash}`]: ["get"],
      [`${own}/blob/{hash}`]: ["get"],
      [`${own}/file`]: ["get"],
      [`${own}/raw/{ref}/{path}`]: ["get"],
      [`${own}/refs`]: ["get"],
      [`${own}/diff`]: ["get"],
      [`${own}/archive/{archive}`]: ["get"],
      [`${own}/commits`]: ["post"],
      [`${own}/tokens`]: ["get"],
      [`${spaces}/{namespace}/tokens`]: ["post"],
      [`${spaces}/{namespace}/tokens/{token_id}`]: ["delete"],
    };
    const paths = world.document.paths as Record<string, object>;
    const found = Object.entries(paths)
      .filter(([path]) => path.startsWith(at))
      .map(([path, methods]) => [path, Object.keys(methods).sort()] as const);
    expect(Object.fromEntries(found)).to.deep.equal(expected);
  });

  it("reading needs artifacts.read, the rest artifacts.write; tokens of a repository are refused", async () => {
    const { result } = await post("/rights/repos", { name: "one" });
    const reads = await world.tokenWith("artifacts.read");
    const others = await world.tokenWith("apps.write", "account.write");
    expect((await ask("/rights/repos/one", { token: reads })).status).to.equal(200);
    const refused = await ask("/rights/repos/one", { token: reads, method: "DELETE" });
    expect([refused.status, refused.errors[0]?.code]).to.deep.equal([403, 10001]);
    expect(refused.errors[0]?.message).to.contain("Artifacts Write");
    for (const path of [
      "",
      "/rights",
      "/rights/repos",
      "/rights/repos/one",
      "/rights/repos/one/log",
    ]) {
      expect((await ask(path, { token: others })).status).to.equal(403);
      expect((await ask(path, { token: result.token })).status).to.equal(401);
      expect((await ask(path, { token: null })).status).to.equal(401);
    }
    const elsewhere = await fetch(
      `${world.url}/v4/accounts/${"f".repeat(32)}/artifacts/namespaces`,
      {
        headers: { Authorization: `Bearer ${world.token}` },
      },
    );
    expect(elsewhere.status).to.equal(404);
  });
});
