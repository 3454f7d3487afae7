import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { account } from "../../../schemas/account/account.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../../schemas/oauth/command-line.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { ACCESS_TOKEN_MS, CODE_MS, GRANT_MS } from "../../../schemas/oauth/limits.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { REPO_TOKENS_MAX } from "../../../schemas/repositories/limits.ts";
import { repo, repoTokenId } from "../../../schemas/repositories/repo.ts";
import { repoToken, repoTokenKey } from "../../../schemas/repositories/repo-token.ts";
import { until } from "../../../scripts/testing/until.ts";
import { callFew } from "../../http/call-few.ts";
import { sha256 } from "../../http/sha256.ts";
import { newGrantId, newTokenText } from "../../oauth/tokens/token-text.ts";
import { ArtifactsWorld } from "../../testing/artifacts-world.ts";
import { giveToken } from "../../testing/test-gateway.ts";
import { listWithEnded, mintWithRoom } from "../ended-grants.ts";
import { repoTokenHash } from "../repo-token-text.ts";
import type { Checkout } from "../testing/git-world.ts";

const newId = () => randomBytes(16).toString("hex");
const by = { permissions: ALL_PERMISSIONS };

describe("repository tokens that an OAuth client makes for a person", function () {
  this.timeout(120_000);
  let world: ArtifactsWorld;
  let created: { remote: string; token: string };
  let work: Checkout;
  before(async () => {
    world = await ArtifactsWorld.start();
    created = (await world.post("/keys/repos", { name: "one" })).result;
    work = await world.checkout();
    await work.commit("1");
    await work.git("push", "-q", world.remote(created), "main");
  });
  afterEach(() => expect(world.faults).to.deep.equal([]));
  after(() => world[Symbol.asyncDispose]());

  const actors = () => world.world.client;
  const fetches = (token: string, remote = created.remote) =>
    work.tryGit("ls-remote", world.remote({ remote, token }));
  const pushes = (token: string) =>
    work.tryGit("push", "-q", "--force", world.remote({ ...created, token }), "HEAD:refs/heads/x");
  const isRefused = async (token: string, remote?: string) => {
    const { code, stderr } = await fetches(token, remote);
    return code !== 0 && stderr.includes("Invalid or expired token");
  };

  /** Makes a person a member. */
  async function newMember(userId = newId()) {
    const email = `${userId}@example.com`;
    const [id, secretHash] = [newId(), sha256(newId())];
    const invitation = { id, email, roles: ["Administrator" as const], secretHash, by };
    await actors().call(account, world.accountId, "invite", invitation);
    const accepted = { id, secretHash, userId, email };
    await actors().call(account, world.accountId, "acceptInvitation", accepted);
    return { userId, email, invitationIds: [id] };
  }

  /** Opens a grant of a new member as the authorization server does. */
  async function granted(): Promise<{ userId: string; grantId: string; token: string }> {
    const { userId, email, invitationIds } = await newMember();
    const grantId = newGrantId();
    const token = newTokenText("access", grantId);
    const clientId = COMMAND_LINE_CLIENT_ID;
    const scopes = ["artifacts.write" as const];
    const accountIds = [world.accountId];
    const consent = { clientId, scopes, rejectedScopes: [], accountIds, invitationIds };
    await actors().call(grantList, userId, "consent", consent);
    const now = Date.now();
    const code = { hash: sha256(newId()), expiresAt: now + CODE_MS, record: {} };
    const opened = { ...consent, userId, email, expiresAt: now + GRANT_MS, code };
    await actors().call(oauthGrant, grantId, "open", opened);
    const record = { scope: scopes.join(" ") };
    const access = { hash: sha256(token), expiresAt: now + ACCESS_TOKEN_MS, record };
    await actors().call(oauthGrant, grantId, "redeem", { codeHash: code.hash, access });
    return { userId, grantId, token };
  }

  async function mint(token: string): Promise<string> {
    const json = { repo: "one", ttl: 31_536_000 };
    const minted = await world.ask("/keys/tokens", { method: "POST", json, token });
    expect(minted.status).to.equal(201);
    return minted.result.plaintext;
  }

  const repoIdOf = async (tokenId: string) => {
    const key = repoTokenKey(world.accountId, tokenId);
    return (await actors().call(repoToken, key, "find", {})).repoId;
  };

  /** Returns the actors with `meanwhile` before each call. */
  function through(meanwhile: (kind: string, message: string) => void): ActorClient {
    const client = actors();
    const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
      meanwhile(contract.kind, message);
      return await client.call(contract, key, message, ...rest);
    };
    return { call, run: client.run.bind(client), send: client.send.bind(client) };
  }

  it("end with the grant, also the first token of a new repository, a fork and an import", async () => {
    const { grantId, token } = await granted();
    const minted = await mint(token);
    const post = (path: string, json: object) =>
      world.ask(`/keys/repos${path}`, { method: "POST", json, token });
    const name = `made-${grantId.slice(0, 8)}`;
    const made = [
      await post("", { name }),
      await post("/one/fork", { name: `${name}-fork` }),
      await post(`/${name}-import/import`, { url: "https://example.com/owner/repo.git" }),
    ].map(({ result }) => result as { remote: string; token: string });
    expect((await fetches(minted)).code).to.equal(0);
    expect((await pushes(minted)).code).to.equal(0);
    for (const { token, remote } of made) {
      expect((await fetches(token, remote)).stderr).to.not.contain("Invalid or expired token");
    }
    await actors().call(oauthGrant, grantId, "revoke", {});
    await until("the token is refused", () => isRefused(minted));
    for (const { token, remote } of made) {
      await until("the first token is refused", () => isRefused(token, remote));
    }
    expect((await fetches(created.token)).code).to.equal(0);
  });

  it("take no place in the limit of a repository's tokens once the grant has ended", async () => {
    const name = `full-${newId().slice(0, 8)}`;
    await world.post("/keys/repos", { name });
    const [oldest, newest] = [await granted(), await granted()];
    const mint = (more: object = {}) =>
      world.ask("/keys/tokens", { method: "POST", json: { repo: name }, ...more });
    const { id } = (await mint({ token: oldest.token })).result;
    const repoId = await repoIdOf(id);
    const newToken = () => ({ secretHash: sha256(newId()), scope: "read" as const, ttlS: 3_600 });
    // The repository has a first token too.
    await callFew(Array.from({ length: REPO_TOKENS_MAX - 3 }), () =>
      actors().call(repo, repoId, "mintToken", newToken()),
    );
    expect((await mint({ token: newest.token })).status).to.equal(201);
    expect((await mint()).status).to.equal(409);
    await actors().call(oauthGrant, newest.grantId, "revoke", {});
    const calls: string[] = [];
    const counted = through((kind, message) => calls.push(`${kind} ${message}`));
    await mintWithRoom(counted, { id: repoId, accountId: world.accountId }, newToken());
    // The newest tokens are on the first page, so no other page is read.
    expect(calls).to.deep.equal([
      "repo mintToken",
      "repo listTokens",
      "oauth-grant get",
      "repo revokeToken",
      "repo mintToken",
    ]);
    expect((await mint()).status).to.equal(409);
    await actors().call(oauthGrant, oldest.grantId, "revoke", {});
    expect((await mint()).status).to.equal(201);
    expect((await mint()).status).to.equal(409);
  });

  it("are listed as revoked once the grant has ended", async () => {
    const { grantId, token } = await granted();
    const plaintext = await mint(token);
    const id = repoTokenId(repoTokenHash(plaintext));
    const stateOf = async () => {
      const { result } = await world.ask("/keys/repos/one/tokens?state=all&per_page=100");
      return result.find((one: { id: string }) => one.id === id).state;
    };
    expect(await stateOf()).to.equal("active");
    await actors().call(oauthGrant, grantId, "revoke", {});
    expect(await stateOf()).to.equal("revoked");
    // A list changes nothing.
    const query = { state: "all" as const, offset: 0, limit: 100 };
    const listed = await actors().call(repo, await repoIdOf(id), "listTokens", query);
    expect(listed.tokens.find((one) => one.id === id)).to.include({
      state: "active",
      revokedAt: null,
    });
  });

  it("are listed as revoked once the person has left the account, also if they joined again", async () => {
    const { userId, token } = await granted();
    const id = repoTokenId(repoTokenHash(await mint(token)));
    const stateOf = async () => {
      const { result } = await world.ask("/keys/repos/one/tokens?state=all&per_page=100");
      return result.find((one: { id: string }) => one.id === id).state;
    };
    await actors().call(account, world.accountId, "removeMember", { id: userId, by });
    expect(await stateOf()).to.equal("revoked");
    await newMember(userId);
    expect(await stateOf()).to.equal("revoked");
  });

  it("are listed as active while their grant cannot be reached", async () => {
    const { grantId, token } = await granted();
    const id = repoTokenId(repoTokenHash(await mint(token)));
    await actors().call(oauthGrant, grantId, "revoke", {});
    const broken = through((kind) => {
      if (kind === oauthGrant.kind) throw new ActorError("unavailable", "No answer");
    });
    const { signal } = new AbortController();
    const query = { state: "active" as const, offset: 0, limit: 100 };
    const stateIn = async (client: ActorClient) => {
      const owned = { id: await repoIdOf(id), accountId: world.accountId };
      const { tokens } = await listWithEnded(client, owned, query, signal);
      return tokens.find((one) => one.id === id)?.state;
    };
    expect(await stateIn(broken)).to.equal("active");
    expect(await stateIn(actors())).to.equal("revoked");
  });

  it("do no more than the person's roles allow now, and nothing once they are no member", async () => {
    const { userId: id, token } = await granted();
    const minted = await mint(token);
    expect((await pushes(minted)).code).to.equal(0);
    const change = { id, roles: ["Member" as const], by };
    await actors().call(account, world.accountId, "setRoles", change);
    await until("pushes are refused", async () => (await pushes(minted)).stderr.includes("403"));
    expect((await fetches(minted)).code).to.equal(0);
    await actors().call(account, world.accountId, "removeMember", { id, by });
    await until("the token is refused", () => isRefused(minted));
  });

  it("are valid no longer than the API token of their maker", async () => {
    const expiresAt = Date.now() + 600_000;
    const permissions = ["artifacts.write"] as const;
    const token = await giveToken(actors(), world.accountId, permissions, { expiresAt });
    const json = { repo: "one", ttl: 31_536_000 };
    const { result } = await world.ask("/keys/tokens", { method: "POST", json, token });
    expect(Date.parse(result.expires_at)).to.be.at.most(expiresAt);
  });
});
