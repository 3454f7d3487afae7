import { expect } from "chai";
import { until } from "../../scripts/testing/until.ts";
import { SESSION_HEADER, SESSION_HEADER_VALUE } from "../account/session-callers.ts";
import { authorizationPath, ClientCalls, makePublic } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";

type Guest = Awaited<ReturnType<typeof newPerson>>;

const scopes = ["openid", "account.write", "apps.read"];

describe("grants of a person who left an account and joined it again", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let client: TestClient;
  let members: string;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    calls = new ClientCalls(world);
    members = `/accounts/${world.accountId}/members`;
    client = await makePublic(world, { scopes, optional_scopes: [] });
  });
  after(() => world?.stop());

  for (const [how, leave] of [
    ["an administrator removed them", removed],
    ["they left", left],
  ] as const) {
    it(`reach the account only after a new consent: ${how}`, async () => {
      const guest = await newPerson(world);
      await join(guest);
      const first = await consented(guest, "account.write apps.read");
      const made = await mint(first.access_token, guest.email);
      expect(await opened(first.access_token, made)).to.deep.equal([200, 200, 200, 200]);
      expect(await statusOf(guest.email)).to.equal("active");
      await leave(guest);
      expect(await statusOf(guest.email)).to.equal("expired");
      await join(guest);
      expect(await statusOf(guest.email)).to.equal("expired");
      const old = (await calls.refresh(first.refresh_token, { by: client })).body;
      expect(old.error).to.equal("invalid_grant");
      const tokens = [first.access_token, made];
      const refused = [404, 404, 401, 401];
      expect(await opened(...tokens)).to.deep.equal(refused);
      expect(await errorOf(guest, "account.write")).to.equal("consent_required");
      expect(await allowances(guest)).to.deep.equal([false]);

      // The earlier consent is not merged with the new one, which allows less.
      const again = await consented(guest, "account.write");
      expect(await opened(again.access_token)).to.deep.equal([200, 200]);
      expect(await errorOf(guest, "account.write")).to.equal(null);
      expect(await errorOf(guest, "apps.read")).to.equal("consent_required");
      expect(await allowances(guest)).to.deep.equal([true]);
      expect(await opened(...tokens)).to.deep.equal(refused);
    });
  }

  it("still reach the account after the roles of the person change", async () => {
    const guest = await newPerson(world);
    await join(guest);
    const { access_token } = await consented(guest, "account.write");
    const path = `${members}/${await memberId(guest)}`;
    const json = { roles: ["Super Administrator"] };
    expect((await world.api(path, { method: "PUT", json })).status).to.equal(200);
    expect(await opened(access_token)).to.deep.equal([200, 200]);
    expect(await errorOf(guest, "account.write")).to.equal(null);
  });

  it("still reach another account, and a new consent is requested for both", async () => {
    const guest = await newPerson(world);
    const own = await join(guest);
    const both = await consented(guest, "account.write", [world.accountId, own]);
    await left(guest);
    expect(await errorOf(guest, "account.write")).to.equal(null);
    await join(guest);
    expect([isTicked(guest, own), isTicked(guest, world.accountId)]).to.deep.equal([true, false]);
    expect(await errorOf(guest, "account.write")).to.equal("consent_required");
    const token = (await calls.refresh(both.refresh_token, { by: client })).body.access_token;
    expect(await opened(token)).to.deep.equal([404, 404]);
    expect(await openedIn(own, token)).to.equal(200);
  });

  it("of a private client open nothing if the person left the account of the client, and joined it again", async () => {
    const by = await world.makeClient({ scopes, optional_scopes: [] });
    const guest = await newPerson(world);
    const own = await join(guest);
    for (const [scope, accounts] of [
      ["openid account.write", [own]],
      ["openid", []],
    ] as const) {
      const first = await consented(guest, scope, accounts, by);
      expect(await userinfo(first.access_token)).to.equal(200);
      if (accounts.length > 0) expect(await openedIn(own, first.access_token)).to.equal(200);
      expect(await errorOf(guest, scope, by)).to.equal(null);
      await left(guest);
      await join(guest);
      expect(await userinfo(first.access_token)).to.equal(401);
      expect(await openedIn(own, first.access_token)).to.equal(401);
      const refreshed = (await calls.refresh(first.refresh_token, { by })).body;
      expect(refreshed.error).to.equal("invalid_grant");
      expect(await errorOf(guest, scope, by)).to.equal("consent_required");
    }
  });

  it("of the identity alone still give it, because they open no account", async () => {
    const guest = await newPerson(world);
    await join(guest);
    await consented(guest, "openid account.write");
    expect(await errorOf(guest, "openid")).to.equal(null);
    const code = new URL(guest.person.seen.url).searchParams.get("code");
    const { access_token } = (await calls.redeem(code, { by: client })).body;
    await left(guest);
    await join(guest);
    expect(await userinfo(access_token)).to.equal(200);
    expect(await errorOf(guest, "openid")).to.equal(null);
  });

  /** Resolves to the guest's own account. */
  async function join({ person, email, password }: Guest) {
    const json = { email, roles: ["Administrator"] };
    const { body } = await world.api(members, { method: "POST", json });
    await person.open(`/login${new URL(body.result.invitation_url).search}`);
    await person.signIn({ email, password });
    await until("they see the account", async () => {
      await person.open(authorizationPath(client, { prompt: "consent" }));
      return person.seen.text.includes(world.accountId);
    });
    const boxes = person.seen.text.matchAll(/name="account" value="([0-9a-f]+)"/g);
    const [own = ""] = [...boxes].flatMap(([, id = ""]) => (id === world.accountId ? [] : [id]));
    return own;
  }

  async function removed(guest: Guest) {
    const { status } = await world.api(`${members}/${await memberId(guest)}`, { method: "DELETE" });
    expect(status).to.equal(200);
  }

  async function left({ person }: Guest) {
    const cookies = [...person.cookies].map(([name, { value }]) => [name.split(";")[0], value]);
    const answer = await fetch(`${world.urls[0]}/v4/user/accounts/${world.accountId}`, {
      method: "DELETE",
      headers: {
        [SESSION_HEADER]: SESSION_HEADER_VALUE,
        Origin: world.urls[0] ?? "",
        Cookie: cookies.map((cookie) => cookie.join("=")).join("; "),
      },
    });
    expect(answer.status).to.equal(200);
  }

  async function consented(
    { person }: Guest,
    scope: string,
    accounts: readonly string[] = [world.accountId],
    by = client,
  ): Promise<Wire> {
    await person.open(authorizationPath(by, { scope, prompt: "consent" }));
    await person.submit({ decision: "allow", account: [...accounts] });
    const code = new URL(person.seen.url).searchParams.get("code");
    return (await calls.redeem(code, { by })).body;
  }

  /** Returns whether the consent page that the person sees preselects the account. */
  function isTicked({ person }: Guest, accountId: string): boolean {
    const [box = ""] =
      new RegExp(`<input [^>]*value="${accountId}"[^>]*>`).exec(person.seen.text) ?? [];
    expect(box).to.contain('type="checkbox"');
    return box.includes(" checked");
  }

  /** Returns the error of a request that may not ask the person; null if it gets a code. */
  async function errorOf({ person }: Guest, scope: string, by = client) {
    await person.open(authorizationPath(by, { scope, prompt: "none" }));
    return new URL(person.seen.url).searchParams.get("error");
  }

  async function mint(token: string, name: string): Promise<string> {
    const policies = [{ effect: "allow", permission_groups: [{ id: "account.write" }] }];
    const json = { name, policies };
    const path = `/accounts/${world.accountId}/tokens`;
    return (await world.api(path, { method: "POST", token, json })).body.result.value;
  }

  /** Returns the status of the API token with this name, as the account lists it. */
  async function statusOf(name: string): Promise<string> {
    const { body } = await world.api(`/accounts/${world.accountId}/tokens?per_page=50`);
    return body.result.find((token: Wire) => token.name === name).status;
  }

  const openedIn = async (accountId: string, token: string) =>
    (await world.api(`/accounts/${accountId}/members`, { token })).status;

  async function userinfo(token: string): Promise<number> {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${world.urls[0]}/oauth2/userinfo`, { headers })).status;
  }

  /** Returns the status of a request for the account with each token at each gateway. */
  async function opened(...tokens: string[]): Promise<number[]> {
    const statuses = tokens.flatMap((token) =>
      [0, 1].map(async (gateway) => (await world.api(members, { token, gateway })).status),
    );
    return Promise.all(statuses);
  }

  async function memberId({ email }: Guest): Promise<string> {
    const { body } = await world.api(`${members}?per_page=50`);
    return body.result.find((member: Wire) => member.email === email).id;
  }

  /** Returns whether the person's consent counts for the account, as its administrators see. */
  async function allowances({ email }: Guest) {
    const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}/allowances`;
    const { body } = await world.api(path);
    const own = body.result.filter(({ user }: Wire) => user.email === email);
    return own.map((one: Wire) => one.is_for_this_account);
  }
});
