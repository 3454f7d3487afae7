import { expect } from "chai";
import { ALL_PERMISSIONS } from "../../schemas/account/permissions.ts";
import { until } from "../../scripts/testing/until.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  type Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";

describe("API tokens that are made with an OAuth access token", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let guest: Awaited<ReturnType<typeof newPerson>>;
  let members: string;
  let tokens: string;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    members = `/accounts/${world.accountId}/members`;
    tokens = `/accounts/${world.accountId}/tokens`;
    const scopes = ALL_PERMISSIONS;
    client = await world.makeClient({ scopes, optional_scopes: [] });
    guest = await newPerson(world);
  });
  beforeEach(async () => {
    const json = { email: guest.email, roles: ["Administrator"] };
    const { body } = await world.api(members, { method: "POST", json });
    await guest.person.open(`/login${new URL(body.result.invitation_url).search}`);
    await guest.person.signIn(guest);
  });
  afterEach(async () => {
    const found = await memberId();
    if (found) await world.api(`${members}/${found}`, { method: "DELETE" });
  });
  after(() => world?.stop());

  it("do not make an Administrator a Super Administrator", async () => {
    const { token } = await mint((await granted()).access_token);
    const id = await memberId();
    const raise = { method: "PUT", json: { roles: ["Super Administrator"] } };
    expect((await world.api(`${members}/${id}`, { ...raise, token })).status).to.equal(403);
    // A second API token, created with the first, cannot appoint a Super Administrator either.
    const second = await mint(token);
    const refused = await world.api(`${members}/${id}`, { ...raise, token: second.token });
    expect(refused.status).to.equal(403);
    expect(refused.body.errors[0].message).to.contain("only a Super Administrator");
  });

  it("give only the person's current permissions, and none once they are no member", async () => {
    const { token } = await mint((await granted()).access_token);
    const path = `${members}/${await memberId()}`;
    const invite = { method: "POST", json: { email: "x@example.com", roles: ["Member"] } };
    const sees = async () => [await status(members, token, 0), await status(members, token, 1)];
    expect(await sees()).to.deep.equal([200, 200]);
    await world.api(path, { method: "PUT", json: { roles: ["Member"] } });
    expect((await world.api(members, { ...invite, token })).status).to.equal(403);
    expect(await sees()).to.deep.equal([200, 200]);
    await world.api(path, { method: "DELETE" });
    expect(await sees()).to.deep.equal([401, 401]);
  });

  it("end with the grant, and are listed as expired then", async () => {
    const { access_token, refresh_token } = await granted();
    const { token, id } = await mint(access_token);
    const own = await world.api(`${tokens}/${id}`);
    expect(own.body.result.status).to.equal("active");
    expect(await status("/user/tokens/verify", token, 1)).to.equal(200);
    await post("/oauth2/revoke", { token: refresh_token });
    for (const gateway of [0, 1]) {
      expect(await status("/user/tokens/verify", token, gateway)).to.equal(401);
      const listed = await world.api(`${tokens}?per_page=100`, { gateway });
      const entry = listed.body.result.find((one: Wire) => one.id === id);
      expect(entry.status).to.equal("expired");
    }
    expect((await world.api(`${tokens}/${id}`)).body.result.status).to.equal("expired");
  });

  it("end with the client", async () => {
    const kept = client;
    client = await world.makeClient({ scopes: ALL_PERMISSIONS, optional_scopes: [] });
    const { token } = await mint((await granted()).access_token);
    expect(await status(members, token)).to.equal(200);
    const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
    const json = { scopes: ["apps.read"] };
    expect((await world.api(path, { method: "PATCH", json })).status).to.equal(200);
    expect(await status(members, token)).to.equal(403);
    await world.api(path, { method: "DELETE" });
    expect(await status(members, token)).to.equal(401);
    client = kept;
  });

  async function granted(person: Person = guest.person) {
    const scope = ALL_PERMISSIONS.join(" ");
    const fields = { client_id: client.client_id, response_type: "code", state: "s", scope };
    const asked = new URLSearchParams({ ...fields, prompt: "consent", redirect_uri: REDIRECT_URI });
    await until("they see the account", async () => {
      await person.open(`/oauth2/auth?${asked}`);
      return person.seen.text.includes(world.accountId);
    });
    await person.submit({ decision: "allow", account: [world.accountId] });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const grant = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI };
    return post("/oauth2/token", grant);
  }

  async function post(path: string, fields: Record<string, string>): Promise<Wire> {
    const { client_id, client_secret } = client;
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const headers = { Authorization: `Basic ${basic}` };
    const body = new URLSearchParams(fields);
    const answer = await fetch(`${world.urls[0]}${path}`, { method: "POST", headers, body });
    const text = await answer.text();
    return text ? JSON.parse(text) : {};
  }

  async function mint(token: string): Promise<{ id: string; token: string }> {
    const permission_groups = ALL_PERMISSIONS.map((id) => ({ id }));
    const json = { name: "made", policies: [{ effect: "allow", permission_groups }] };
    const { status, body } = await world.api(tokens, { method: "POST", token, json });
    expect(status).to.equal(200);
    return { id: body.result.id, token: body.result.value };
  }

  async function status(path: string, token: string, gateway = 0): Promise<number> {
    return (await world.api(path, { token, gateway })).status;
  }

  async function memberId(): Promise<string | undefined> {
    const { body } = await world.api(`${members}?per_page=50`);
    return body.result.find(({ email }: { email: string }) => email === guest.email)?.id;
  }
});
