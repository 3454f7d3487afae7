import { expect } from "chai";
import Cloudflare from "cloudflare";
import { account } from "../schemas/account/account.ts";
import { apiToken } from "../schemas/account/api-token.ts";
import { ALL_PERMISSIONS } from "../schemas/account/permissions.ts";
import { newToken } from "./account/api-token-text.ts";
import { type TestGateway, testGateway } from "./testing/test-gateway.ts";

/** Tests every method of the public SDK that uses a path of ours, except rendering, in the way its users call it. */
describe("the public SDK", () => {
  let gateway: TestGateway;
  let sdk: Cloudflare;
  let account_id: string;
  before(async () => {
    gateway = await testGateway();
    account_id = gateway.accountId;
    sdk = clientOf(gateway.token);
  });
  after(() => gateway.stop());

  const clientOf = (apiToken: string) =>
    new Cloudflare({ apiToken, baseURL: `${gateway.url}/v4`, maxRetries: 0 });
  const policies = (id = "account.read") => [
    {
      effect: "allow" as const,
      permission_groups: [{ id, meta: { label: "build", scopes: "account" } }],
      resources: { [`com.cloudflare.api.account.${account_id}`]: "*" },
    },
  ];
  const collect = async <T>(pages: AsyncIterable<T>) => {
    const all: T[] = [];
    for await (const entry of pages) {
      all.push(entry);
      // If the list returned the same page again and again, the loop would never end.
      expect(all).to.have.length.below(500);
    }
    return all;
  };
  const statusOf = async (calling: Promise<unknown>) =>
    calling.then(
      () => 200,
      (error: unknown) => (error instanceof Cloudflare.APIError ? error.status : error),
    );

  it("accounts: list, get", async () => {
    expect(await collect(sdk.accounts.list({ per_page: 1 }))).to.have.length(1);
    expect(await collect(sdk.accounts.list({ name: "nobody's" }))).to.deep.equal([]);
    expect((await sdk.accounts.get({ account_id })).id).to.equal(account_id);
  });

  it("accounts.roles: list, get", async () => {
    const roles = await collect(sdk.accounts.roles.list({ account_id, per_page: 3 }));
    expect(roles.map(({ id }) => id)).to.include.members(["Member", "Administrator"]);
    expect(new Set(roles.map(({ id }) => id)).size).to.equal(roles.length);
    const role = await sdk.accounts.roles.get("Super Administrator", { account_id });
    expect(role.name).to.equal("Super Administrator");
    expect(await statusOf(sdk.accounts.roles.get("King", { account_id }))).to.equal(400);
  });

  it("accounts.members: create, get, update, list, delete", async () => {
    const { members } = sdk.accounts;
    const body = { account_id, email: "grace@example.com", roles: ["Member"] };
    const made = await members.create({ ...body, status: "accepted" });
    expect(made.status).to.equal("pending");
    const id = made.id ?? "";
    const roles = await collect(sdk.accounts.roles.list({ account_id }));
    const chosen = roles.filter((role) => role.id === "Administrator");
    const changed = await members.update(id, { account_id, roles: chosen });
    expect(changed.roles?.map((role) => role.id)).to.deep.equal(["Administrator"]);
    expect((await members.get(id, { account_id })).id).to.equal(id);
    const ids = async (query: object) =>
      (await collect(members.list({ account_id, ...query }))).map((member) => member.id);
    expect(await ids({ per_page: 1 })).to.have.length(2);
    expect(await ids({ status: "pending" })).to.deep.equal([id]);
    expect(await ids({ status: "accepted" })).not.to.include(id);
    expect(await ids({ status: "rejected" })).to.deep.equal([]);
    const emails = (await collect(members.list({ account_id, order: "user.email" }))).map(
      (member) => member.email ?? "",
    );
    expect(emails).to.deep.equal(emails.toSorted());
    const order = "user.first_name";
    const unsorted = statusOf(Promise.resolve(members.list({ account_id, order })));
    expect(await unsorted).to.equal(400);
    expect((await members.delete(id, { account_id }))?.id).to.equal(id);
    expect(await statusOf(members.get(id, { account_id }))).to.equal(404);
  });

  it("accounts.tokens: create, verify, get, update, list, delete; value.update", async () => {
    const { tokens } = sdk.accounts;
    const made = await tokens.create({ account_id, name: "first", policies: policies() });
    const id = made.id ?? "";
    const own = clientOf(made.value ?? "");
    expect((await own.accounts.tokens.verify({ account_id })).id).to.equal(id);
    expect((await own.user.tokens.verify()).id).to.equal(id);
    // Updates a token as a client does: reads it, changes fields and sends it back.
    const read = (await tokens.get(id, { account_id })) as { id: string };
    const wanted = { ...read, account_id, name: "second", policies: policies("apps.read") };
    const changed = await tokens.update(id, { ...wanted, status: "disabled" });
    expect([changed.name, changed.status]).to.deep.equal(["second", "disabled"]);
    expect(await statusOf(own.user.tokens.verify())).to.equal(401);
    await tokens.update(id, { ...wanted, status: "active" });
    expect((await own.user.tokens.verify()).status).to.equal("active");
    // The token has its new permissions and no others.
    expect(await statusOf(own.accounts.tokens.get(id, { account_id }))).to.equal(403);
    const value = await tokens.value.update(id, { account_id });
    expect(await statusOf(own.user.tokens.verify())).to.equal(401);
    expect((await clientOf(value).user.tokens.verify()).id).to.equal(id);
    for (let i = 0; i < 3; i++) {
      await tokens.create({ account_id, name: `more ${i}`, policies: policies() });
    }
    const all = await collect(tokens.list({ account_id, per_page: 2 }));
    expect(new Set(all.map((token) => token.id)).size)
      .to.equal(all.length)
      .and.above(3);
    expect((await tokens.delete(id, { account_id }))?.id).to.equal(id);
    expect(await statusOf(tokens.get(id, { account_id }))).to.equal(404);
  });

  it("accounts.tokens.list: include_expired", async () => {
    const { tokens } = sdk.accounts;
    const expires_on = new Date(gateway.clock.now + 1_000).toISOString();
    const { id } = await tokens.create({ account_id, name: "x", policies: policies(), expires_on });
    gateway.clock.now += 1_000;
    const ids = async (include_expired?: boolean) =>
      (
        await collect(
          tokens.list({ account_id, ...(include_expired !== undefined && { include_expired }) }),
        )
      ).map((token) => token.id);
    expect(await ids()).to.include(id);
    expect(await ids(true)).to.include(id);
    expect(await ids(false)).not.to.include(id);
  });

  it("accounts.tokens.permissionGroups: list, get", async () => {
    const { permissionGroups } = sdk.accounts.tokens;
    const name = "Artifacts Read";
    const found = await collect(permissionGroups.list({ account_id, name }));
    expect(found.map(({ id }) => id)).to.deep.equal(["artifacts.read"]);
    expect(await permissionGroups.get({ account_id })).to.have.length(10);
    const scope = "com.cloudflare.api.account.zone";
    expect(await collect(permissionGroups.list({ account_id, scope }))).to.deep.equal([]);
  });

  it("iam.oauthClients: create, get, update, rotateSecret, deleteRotatedSecret, list, delete; iam.oauthScopes", async () => {
    const { oauthClients } = sdk.iam;
    const made = await oauthClients.create({
      account_id,
      client_name: "Build Bot",
      grant_types: ["authorization_code"],
      redirect_uris: ["https://example.com/callback"],
      response_types: ["code"],
      scopes: ["openid"],
      token_endpoint_auth_method: "client_secret_basic",
    });
    const id = made.client_id;
    const changed = await oauthClients.update(id, { account_id, client_name: "Other" });
    expect(changed.client_name).to.equal("Other");
    expect((await oauthClients.get(id, { account_id })).client_name).to.equal("Other");
    expect(await oauthClients.rotateSecret(id, { account_id })).to.have.property("client_secret");
    await oauthClients.deleteRotatedSecret(id, { account_id });
    expect(await collect(oauthClients.list({ account_id }))).to.have.length(1);
    const page = async (query: object) =>
      collect(oauthClients.list({ account_id }, { query: { ...query } }));
    expect(await page({ page: 1, per_page: 1 })).to.have.length(1);
    expect(await page({ page: 2, per_page: 1 })).to.deep.equal([]);
    expect((await oauthClients.delete(id, { account_id }))?.id).to.equal(id);
    expect((await collect(sdk.iam.oauthScopes.list())).length).to.be.above(3);
  });

  it("user: get, with a token that a person made, and with those made by it", async () => {
    const { actors } = gateway;
    const { members } = await actors.call(account, account_id, "listMembers", {});
    const [owner] = members;
    const { id, text, secretHash, lastFour } = newToken();
    const permissions = ALL_PERMISSIONS;
    const entry = { id, name: "owner's", permissions, lastFour, userId: owner?.userId };
    await actors.call(account, account_id, "createToken", entry);
    await actors.call(apiToken, id, "issue", { accountId: account_id, permissions, secretHash });
    const own = clientOf(text);
    const child = await own.accounts.tokens.create({
      account_id,
      name: "child",
      policies: policies(),
    });
    for (const client of [own, clientOf(child.value ?? "")]) {
      const user = await client.user.get();
      expect([user.id, user.email]).to.deep.equal([owner?.userId, owner?.email]);
    }
    // This token has no known maker.
    expect(await statusOf(sdk.user.get())).to.equal(404);
  });
});
