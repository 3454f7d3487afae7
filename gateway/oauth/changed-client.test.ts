import { expect } from "chai";
import { authorizationPath, authorize, basicOf, ClientCalls } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
} from "./testing/oauth-world.ts";

const OTHER_URI = "https://bot.example.com/callback";
const BYE = "https://bot.example.com/bye";

describe("a client that is changed", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let owner: Person;
  let client: TestClient;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    calls = new ClientCalls(world);
  });
  after(() => world?.stop());
  beforeEach(async () => {
    client = await world.makeClient();
    owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
  });

  const change = async (json: Record<string, unknown>) => {
    const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
    const { status, body } = await world.api(path, { method: "PATCH", json });
    expect(status, JSON.stringify(body)).to.equal(200);
  };
  const code = async (changes: Record<string, string> = {}) =>
    (await authorize(owner, client, changes)).get("code");
  const expectHere = ({ seen: { url, status, text } } = owner) => {
    expect([new URL(url).origin, status], url).to.deep.equal([world.urls[0], 400]);
    expect(text).to.contain("This cannot go on");
  };

  describe("in its redirect URIs", () => {
    const moved = () => change({ redirect_uris: [OTHER_URI] });

    for (const decision of ["allow", "deny"]) {
      it(`redirects nobody to an address removed during consent: ${decision}`, async () => {
        await owner.open(authorizationPath(client));
        expect(owner.seen.url).to.contain("/oauth2/consent");
        await moved();
        await owner.submit({ decision });
        expectHere();
        expect(owner.trail.join()).to.not.contain(REDIRECT_URI).and.not.contain("code=");
      });
    }

    it("redirects nobody to an address removed during sign-in, even if consent exists", async () => {
      expect(await code()).to.be.a("string");
      const person = new Person(world.urls[0] ?? "");
      await person.open(authorizationPath(client));
      expect(person.seen.url).to.contain("/login");
      await moved();
      await person.signIn(world.owner);
      expectHere(person);
      expect(person.trail.join()).to.not.contain(REDIRECT_URI).and.not.contain("code=");
    });

    it("redeems no code issued for an address that was removed since", async () => {
      const given = await code();
      await moved();
      const { status, body } = await calls.redeem(given, { by: client, gateway: 1 });
      expect([status, body.error]).to.deep.equal([400, "invalid_grant"]);
    });
  });

  it("redirects nobody after sign-out to an address that was removed since", async () => {
    await change({ post_logout_redirect_uris: [BYE] });
    const { client_id } = client;
    const fields = new URLSearchParams({ client_id, post_logout_redirect_uri: BYE });
    await owner.open(`/oauth2/logout?${fields}`);
    expect(owner.seen.text).to.contain("Sign out?");
    await change({ post_logout_redirect_uris: [] });
    await owner.submit({ logout: "yes" });
    expect(new URL(owner.seen.url).origin).to.equal(world.urls[0]);
    expect((await owner.open("/profile/clients")).url).to.contain("/login");
  });

  it("gets no scope that was removed during consent, and learns which", async () => {
    await owner.open(authorizationPath(client, { scope: "account.read artifacts.read" }));
    await change({ scopes: ["openid", "account.read"], optional_scopes: [] });
    await owner.submit({ decision: "allow" });
    const said = new URL(owner.seen.url).searchParams;
    expect(said.get("error")).to.equal("invalid_scope");
    expect(said.get("error_description")).to.contain("'artifacts.read'");
  });

  it("gets no scope that became required while the person had it unticked", async () => {
    await owner.open(authorizationPath(client, { scope: "account.read artifacts.write" }));
    await change({ optional_scopes: [] });
    await owner.submit({ decision: "allow", scope: [] });
    expect([owner.seen.status, owner.seen.url.includes("/oauth2/consent")]).to.deep.equal([
      409,
      true,
    ]);
    expect(owner.seen.text).to.contain("changed what it asks for");
    expect(owner.trail.join()).to.not.contain("code=");
    await owner.submit({ decision: "allow" });
    const { body } = await calls.redeem(new URL(owner.seen.url).searchParams.get("code"), {
      by: client,
    });
    expect(body.scope).to.equal("account.read artifacts.write");
  });

  it("can be denied on a page that was open while it changed", async () => {
    await owner.open(authorizationPath(client, { scope: "account.read artifacts.write" }));
    await change({ optional_scopes: [] });
    await owner.submit({ decision: "deny" });
    expect(new URL(owner.seen.url).searchParams.get("error")).to.equal("access_denied");
  });

  it("requires PKCE once it has no secret, also in requests begun before", async () => {
    const given = await code();
    await owner.open(authorizationPath(client, { prompt: "consent" }));
    await change({ token_endpoint_auth_method: "none" });
    await owner.submit({ decision: "allow" });
    expectHere();
    const bare = { client_id: client.client_id };
    const sent = { by: client, headers: {} };
    const redeemed = await calls.redeem(given, sent, bare);
    expect([redeemed.status, redeemed.body.error]).to.deep.equal([400, "invalid_grant"]);
  });

  it("cannot refresh, and gets no refresh token, without that grant type", async () => {
    const { body } = await calls.redeem(await code(), { by: client });
    await change({ grant_types: ["authorization_code"] });
    for (const gateway of [0, 1]) {
      const refused = await calls.refresh(body.refresh_token, { by: client, gateway });
      expect([refused.status, refused.body.error]).to.deep.equal([400, "unauthorized_client"]);
    }
    const { body: untyped } = await calls.post("token", { code: "x" }, { by: client });
    expect(untyped.error).to.equal("invalid_request");
    // A client that still requests the removed scope is not refused, but it does not receive the scope.
    for (const scope of ["account.read", "account.read offline_access"]) {
      const answer = await calls.redeem(await code({ scope }), { by: client });
      expect(answer.status).to.equal(200);
      expect(answer.body)
        .to.include({ scope: "account.read" })
        .and.not.have.any.keys("refresh_token");
    }
  });

  it("authenticates only by its registered method", async () => {
    const ways = {
      client_secret_basic: { headers: basicOf(client), fields: {} },
      client_secret_post: { headers: {}, fields: { ...client } },
      none: { headers: {}, fields: { client_id: client.client_id } },
    };
    for (const registered of ["client_secret_basic", "client_secret_post"] as const) {
      await change({ token_endpoint_auth_method: registered });
      const { client_id, client_secret } = client;
      ways.client_secret_post.fields = { client_id, client_secret };
      const given = await code();
      for (const [way, { headers, fields }] of Object.entries(ways)) {
        if (way === registered) continue;
        for (const path of ["token", "revoke", "introspect"]) {
          const asked = { grant_type: "authorization_code", code: "x", token: "x", ...fields };
          const { status, body } = await calls.post(path, asked, { by: client, headers });
          const seen = [status, body.error];
          expect(seen, `${registered} ${way} ${path}`).to.deep.equal([401, "invalid_client"]);
        }
      }
      const { headers, fields } = ways[registered];
      const twice = { ...ways.client_secret_post.fields, client_secret };
      const both = await calls.redeem(given, { by: client }, twice);
      expect(both.status, `${registered} twice`).to.be.within(400, 401);
      const good = await calls.redeem(given, { by: client, headers }, fields);
      expect(good.status, registered).to.equal(200);
    }
  });

  it("answers browsers of its origins as long as they are registered", async () => {
    const headers = { ...basicOf(client), Origin: "https://app.example.com" };
    const allowed = async () => {
      const answers = [0, 1].map((gateway) =>
        calls.post("revoke", { token: "x" }, { by: client, headers, gateway }),
      );
      return (await Promise.all(answers)).map(({ status }) => status);
    };
    expect(await allowed()).to.deep.equal([400, 400]);
    await change({ allowed_cors_origins: ["https://app.example.com"] });
    expect(await allowed()).to.deep.equal([200, 200]);
    await change({ allowed_cors_origins: [] });
    expect(await allowed()).to.deep.equal([400, 400]);
  });

  it("gets no access from a person who is no longer a member", async () => {
    const { person, email, password } = await newPerson(world);
    const members = `/accounts/${world.accountId}/members`;
    const json = { email, roles: ["Member"] };
    const { body } = await world.api(members, { method: "POST", json });
    await person.open(`/login${new URL(body.result.invitation_url).search}`);
    await person.signIn({ email, password });
    await person.open(authorizationPath(client));
    expect(person.seen.url).to.contain("/oauth2/consent");
    const { result } = (await world.api(`${members}?per_page=50`)).body;
    const { id } = result.find((member: { email: string }) => member.email === email);
    await world.api(`${members}/${id}`, { method: "DELETE" });
    await person.submit({ decision: "allow" });
    expect(new URL(person.seen.url).searchParams.get("error")).to.equal("access_denied");
  });
});
