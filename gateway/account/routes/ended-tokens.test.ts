import { expect } from "chai";
import { account } from "../../../schemas/account/account.ts";
import { apiToken } from "../../../schemas/account/api-token.ts";
import { TOKENS_PER_ACCOUNT_MAX } from "../../../schemas/limits.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import { oauthGrant } from "../../../schemas/oauth/oauth-grant.ts";
import { giveToken, START, type TestGateway, testGateway } from "../../testing/test-gateway.ts";

const HOUR_MS = 3_600_000;

describe("places of ended API tokens", () => {
  let gateway: TestGateway;
  let tokens: string;
  beforeEach(async () => {
    gateway = await testGateway();
    tokens = `/v4/accounts/${gateway.accountId}/tokens`;
  });
  afterEach(() => gateway.stop());

  const create = (name: string, times = {}, { by = gateway.token, id = "apps.read" } = {}) => {
    const policies = [{ effect: "allow", permission_groups: [{ id }] }];
    return gateway.ask(tokens, { method: "POST", json: { name, policies, ...times }, token: by });
  };
  const until = (afterMs: number) => ({ expires_on: new Date(START + afterMs).toISOString() });
  const list = async () =>
    (await gateway.actors.call(account, gateway.accountId, "listTokens", {})).tokens;
  const names = async () => (await list()).map(({ name }) => name);
  async function fill() {
    for (let count = (await list()).length; count < TOKENS_PER_ACCOUNT_MAX; count++) {
      await giveToken(gateway.actors, gateway.accountId, ["apps.read"]);
    }
  }

  it("createToken() at the limit takes the place of the token that expired first, and revokes it", async () => {
    await create("later", until(2 * HOUR_MS));
    const first = (await create("first", until(HOUR_MS))).json?.result;
    await create("lasting", until(4 * HOUR_MS));
    await fill();
    expect((await create("new")).status).to.equal(409);
    gateway.clock.now += 3 * HOUR_MS;
    expect((await create("new")).status).to.equal(200);
    expect(await names()).to.include.members(["later", "lasting", "new"]);
    expect(await names()).not.to.include("first");
    // It cannot be prolonged any more.
    const json = { name: "first", policies: first.policies };
    const prolonged = await gateway.ask(`${tokens}/${first.id}`, { method: "PUT", json });
    expect(prolonged.status).to.equal(404);
    expect((await create("another")).status).to.equal(200);
    expect(await names()).not.to.include("later");
    expect((await create("one too many")).status).to.equal(409);
    expect(await names()).to.include("lasting");
  });

  it("createToken() at the limit keeps a token that was prolonged while the account lists its earlier end", async () => {
    const prolonged = (await create("prolonged", until(HOUR_MS))).json?.result;
    await create("later", until(2 * HOUR_MS));
    await fill();
    // As a PUT does whose second call fails.
    const opens = { permissions: ["apps.read" as const], expiresAt: START + 9 * HOUR_MS };
    await gateway.actors.call(apiToken, prolonged.id, "change", { opens });
    gateway.clock.now += 3 * HOUR_MS;
    expect((await create("new")).status).to.equal(200);
    expect(await names())
      .to.include("prolonged")
      .and.not.to.include("later");
    expect((await create("another")).status).to.equal(409);
    const { status } = await gateway.ask("/v4/user/tokens/verify", { token: prolonged.value });
    expect(status).to.equal(200);
  });

  it("createToken() at the limit keeps expired tokens that the caller may not delete", async () => {
    const by = await gateway.tokenWith("account.write", "apps.read");
    await create("higher", until(HOUR_MS), { id: "apps.write" });
    await create("equal", until(2 * HOUR_MS));
    await fill();
    gateway.clock.now += 3 * HOUR_MS;
    expect((await create("new", {}, { by })).status).to.equal(200);
    expect(await names())
      .to.include("higher")
      .and.not.to.include("equal");
    expect((await create("another", {}, { by })).status).to.equal(409);
    expect((await create("another")).status).to.equal(200);
    expect(await names()).not.to.include("higher");
  });

  it("createToken() below the limit removes no token that has ended", async () => {
    await create("first", until(HOUR_MS));
    gateway.clock.now += HOUR_MS;
    await create("new");
    expect(await names()).to.include.members(["first", "new"]);
  });

  it("requests at the same time take one place each", async () => {
    for (let count = 0; count < 3; count++) await create("old", until(HOUR_MS));
    await fill();
    gateway.clock.now += HOUR_MS;
    const made = await Promise.all(["1", "2", "3", "4"].map((name) => create(name)));
    const statuses = made.map(({ status }) => status).sort();
    expect(statuses).to.deep.equal([200, 200, 200, 409]);
    expect(await names()).not.to.include("old");
  });

  it("createToken() at the limit takes the place of a token whose grant has ended before an expired one", async () => {
    // The person who opened the account.
    const [grantId, userId] = ["a".repeat(32), gateway.accountId];
    const consent = { clientId: "c".repeat(32), scopes: [], rejectedScopes: [], accountIds: [] };
    await gateway.actors.call(grantList, userId, "consent", consent);
    const expiresAt = START + 9 * HOUR_MS;
    const code = { hash: "d".repeat(64), expiresAt, record: {} };
    const person = { userId, email: "one@example.com" };
    await gateway.actors.call(oauthGrant, grantId, "open", {
      ...consent,
      ...person,
      expiresAt,
      code,
    });
    await create("old", until(HOUR_MS));
    await gateway.actors.call(account, gateway.accountId, "createToken", {
      ...{ id: "e".repeat(32), name: "granted", permissions: ["apps.read"] },
      ...{ lastFour: "abcd", grantId },
    });
    await fill();
    expect((await create("new")).status).to.equal(409);
    await gateway.actors.call(oauthGrant, grantId, "revoke", {});
    gateway.clock.now += HOUR_MS;
    expect((await create("new")).status).to.equal(200);
    expect(await names()).to.include("old");
    expect(await names()).not.to.include("granted");
  });
});
