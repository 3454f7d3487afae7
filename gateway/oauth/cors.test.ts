import { expect } from "chai";
import { authorize, basicOf, ClientCalls } from "./testing/client-calls.ts";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
} from "./testing/oauth-world.ts";

const ORIGIN = "https://app.example.com";
const VERIFIER = "v".repeat(43);
const CHALLENGE = {
  code_challenge: "7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM",
  code_challenge_method: "S256",
};

describe("pages of other origins", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let base: string;
  let client: TestClient;
  before(async () => {
    world = await oauthWorld();
    calls = new ClientCalls(world);
    [base = ""] = world.urls;
    client = await world.makeClient({
      token_endpoint_auth_method: "none",
      allowed_cors_origins: [ORIGIN],
    });
  });
  after(() => world?.stop());

  const allowedOf = ({ headers }: { headers: Headers }) =>
    headers.get("access-control-allow-origin");

  it("may send preflight requests to the endpoints that they may use, and to no others", async () => {
    const preflight = (path: string, method: string) =>
      fetch(base + path, {
        method: "OPTIONS",
        headers: {
          Origin: ORIGIN,
          "Access-Control-Request-Method": method,
          "Access-Control-Request-Headers": "authorization",
        },
      });
    for (const [path, method] of [
      ["/oauth2/token", "POST"],
      ["/oauth2/revoke", "POST"],
      ["/oauth2/userinfo", "GET"],
    ] as const) {
      const answer = await preflight(path, method);
      expect([answer.ok, allowedOf(answer)], path).to.deep.equal([true, ORIGIN]);
      expect(answer.headers.get("access-control-allow-credentials"), path).to.equal(null);
      expect(answer.headers.get("access-control-allow-headers"), path).to.match(/authorization/i);
    }
    for (const [path, method] of [
      ["/oauth2/introspect", "POST"],
      ["/oauth2/auth", "POST"],
      ["/oauth2/consent", "POST"],
      ["/oauth2/logout", "POST"],
      ["/login", "POST"],
      ["/profile/clients", "GET"],
      ["/v4/accounts", "GET"],
    ] as const) {
      expect(allowedOf(await preflight(path, method)), path).to.equal(null);
    }
  });

  it("our own page may ask the token endpoint and introspection as any client", async () => {
    const Origin = base;
    const secretive = await world.makeClient({ allowed_cors_origins: [] });
    const headers = { ...basicOf(secretive), Origin };
    const unknown = await calls.redeem("x", { by: secretive, headers });
    expect([unknown.status, unknown.body.error]).to.deep.equal([400, "invalid_grant"]);
    const looked = await calls.post("introspect", { token: "x" }, { by: secretive, headers });
    expect([looked.status, looked.body]).to.deep.equal([200, { active: false }]);
    const elsewhere = { ...headers, Origin: "https://evil.example" };
    for (const path of ["token", "introspect"]) {
      const refused = await calls.post(path, { token: "x" }, { by: secretive, headers: elsewhere });
      expect(allowedOf(refused), path).to.equal(null);
    }
    expect((await calls.redeem("x", { by: secretive, headers: elsewhere })).status).to.equal(400);
  });

  it("can read a client's tokens and its refusals", async () => {
    const person = new Person(base);
    await person.open("/login");
    await person.signIn(world.owner);
    const headers = { Origin: ORIGIN };
    const sent = { by: client, headers };
    const { client_id } = client;
    const code = (await authorize(person, client, CHALLENGE)).get("code");
    const given = await calls.redeem(code, sent, { client_id, code_verifier: VERIFIER });
    expect([given.status, allowedOf(given)]).to.deep.equal([200, ORIGIN]);
    const wrong = await calls.refresh("x", sent, { client_id });
    const seen = [wrong.status, wrong.body.error, allowedOf(wrong)];
    expect(seen).to.deep.equal([400, "invalid_grant", ORIGIN]);
    const Authorization = `Bearer ${given.body.access_token}`;
    const who = await fetch(`${base}/oauth2/userinfo`, { headers: { ...headers, Authorization } });
    expect([who.status, allowedOf(who)]).to.deep.equal([200, ORIGIN]);
    // A page of another origin may make requests as the client, but not as the person who is signed in.
    const address = `/oauth2/auth?${new URLSearchParams({ client_id, response_type: "code", redirect_uri: REDIRECT_URI })}`;
    expect(allowedOf(await fetch(base + address, { headers, redirect: "manual" }))).to.equal(null);
  });
});
