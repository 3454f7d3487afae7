import { expect } from "chai";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";

describe("routes of repository tokens", function () {
  this.timeout(60_000);
  let world: ArtifactsWorld;
  let created: { remote: string; token: string };
  before(async () => {
    world = await ArtifactsWorld.start();
    created = (await world.post("/keys/repos", { name: "one" })).result;
    const work = await world.checkout();
    await work.commit("1");
    await work.git("push", "-q", world.remote(created), "main");
  });
  after(() => world[Symbol.asyncDispose]());
  afterEach(() => expect(world.faults).to.deep.equal([]));

  const mint = (json: object) => world.post("/keys/tokens", { repo: "one", ...json });
  const revoke = (id: string, space = "/keys") =>
    world.ask(`${space}/tokens/${id}`, { method: "DELETE" });
  const list = (query = "") => world.ask(`/keys/repos/one/tokens${query}`);
  const looks = async (token: string) => {
    const work = await world.checkout();
    return work.tryGit("ls-remote", world.remote({ ...created, token }));
  };

  it("mintRepoToken() makes a token that gives git access within its scope", async () => {
    const { status, result } = await mint({ scope: "read", ttl: 600 });
    expect(status).to.equal(201);
    expect(Object.keys(result)).to.deep.equal(["id", "plaintext", "scope", "expires_at"]);
    expect(result.id).to.match(/^[0-9a-z]{16}$/);
    const seconds = /\?expires=(\d+)$/.exec(result.plaintext)?.[1];
    expect(Number(seconds) * 1_000).to.equal(
      Math.floor(Date.parse(result.expires_at) / 1_000) * 1_000,
    );
    expect((await looks(result.plaintext)).code).to.equal(0);
    const work = await world.checkout();
    await work.commit("2");
    const pushed = await work.tryGit(
      "push",
      world.remote({ ...created, token: result.plaintext }),
      "main:x",
    );
    expect(pushed.stderr).to.contain("403");
    const whole = (await mint({})).result;
    expect(whole.scope).to.equal("write");
    expect(Date.parse(whole.expires_at) - Date.now()).to.be.within(86_000_000, 86_400_000);
  });

  it("mintRepoToken() refuses values out of bounds and an unknown repository", async () => {
    for (const ttl of [59, 31_536_001, 1.5, "600", null]) {
      const { status, errors } = await mint({ ttl });
      expect([status, errors[0]?.code, errors[0]?.source]).to.deep.equal([
        400,
        10103,
        { pointer: "/ttl" },
      ]);
      expect(errors[0]?.message).to.contain("ttl must be between 60 and 31536000 seconds");
    }
    for (const ttl of [60, 31_536_000]) expect((await mint({ ttl })).status).to.equal(201);
    expect((await mint({ scope: "admin" })).errors[0]?.source?.pointer).to.equal("/scope");
    expect((await mint({ repo: "-" })).errors[0]?.source?.pointer).to.equal("/repo");
    const missing = await mint({ repo: "missing" });
    expect([missing.status, missing.errors]).to.deep.equal([
      404,
      [{ code: 10200, message: "Repository not found" }],
    ]);
  });

  it("revokeRepoToken() applies to the next request, may be repeated, and refuses an unknown token", async () => {
    const { result } = await mint({});
    expect((await looks(result.plaintext)).code).to.equal(0);
    for (let i = 0; i < 2; i++) {
      const revoked = await revoke(result.id);
      expect([revoked.status, revoked.result]).to.deep.equal([200, { id: result.id }]);
      const refused = await looks(result.plaintext);
      expect(refused.stderr).to.contain("Invalid or expired token");
    }
    for (const [id, space] of [
      ["0".repeat(16), "/keys"],
      [result.id, "/other"],
    ]) {
      const { status, errors } = await revoke(id ?? "", space);
      expect([status, errors]).to.deep.equal([404, [{ code: 10200, message: "Token not found" }]]);
    }
    expect((await revoke("nope")).status).to.equal(400);
    const first = await world.ask("/keys/repos/one/tokens?state=all&per_page=100");
    const initial = first.result.at(-1);
    expect((await revoke(initial.id)).status).to.equal(200);
    expect((await looks(created.token)).code).to.not.equal(0);
  });

  it("listRepoTokens() lists tokens by state, newest first, with the time of their last use", async () => {
    const minted = (await mint({ scope: "read" })).result;
    await looks(minted.plaintext);
    const { result, info } = await list("?per_page=1");
    expect(result).to.have.length(1);
    const [newest] = result;
    expect(newest).to.deep.include({
      id: minted.id,
      scope: "read",
      state: "active",
      expires_at: minted.expires_at,
    });
    expect(Date.parse(newest.last_used_at)).to.be.closeTo(Date.now(), 60_000);
    expect(JSON.stringify(result)).to.not.contain("art_v1");
    expect(info).to.include({ page: 1, per_page: 1, count: 1 });
    const [active, revoked, all, expired] = await Promise.all(
      ["active", "revoked", "all", "expired"].map(
        async (state) => (await list(`?state=${state}`)).info.total_count,
      ),
    );
    expect(info.total_count).to.equal(active);
    expect(revoked).to.be.at.least(1);
    expect([all, expired]).to.deep.equal([active + revoked, 0]);
    const second = await list(`?per_page=1&page=2`);
    expect(second.result[0].id).to.not.equal(minted.id);
    for (const query of ["state=x", "per_page=101", "per_page=0", "page=0"]) {
      const { status, errors } = await list(`?${query}`);
      expect([status, errors[0]?.source?.pointer]).to.deep.equal([400, `/${query.split("=")[0]}`]);
    }
    expect((await list("?per_page=100")).status).to.equal(200);
    expect((await world.ask("/keys/repos/none/tokens")).status).to.equal(404);
  });

  it("tokens of a deleted repository give no access, and are unknown", async () => {
    const { result } = await world.post("/keys/repos", { name: "gone" });
    const token = (await world.post("/keys/tokens", { repo: "gone" })).result;
    await world.ask("/keys/repos/gone", { method: "DELETE" });
    const anew = (await world.post("/keys/repos", { name: "gone" })).result;
    const work = await world.checkout();
    for (const old of [result.token, token.plaintext]) {
      const refused = await work.tryGit("ls-remote", world.remote({ ...anew, token: old }));
      expect(refused.stderr).to.contain("Invalid or expired token");
    }
    expect((await revoke(token.id)).status).to.equal(404);
  });
});
