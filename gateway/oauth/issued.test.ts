import { expect } from "chai";
import {
  ACCESS_TOKEN_MS,
  CODE_MS,
  GRANT_MS,
  REFRESH_TOKEN_MS,
} from "../../schemas/oauth/limits.ts";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { until } from "../../scripts/testing/until.ts";
import { BROWSER_MS } from "../account/pages/browser-cookies.ts";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";
import { readTokenText, type TokenAddress } from "./tokens/token-text.ts";

/** Limits the form that a client sends. oidc-provider has this fixed limit, which cannot be configured. */
const CLIENT_FORM_BYTES_MAX = 56 * 1024;

/** The longest time between the creation of a token and the check of its expiry time by a test. */
const SLACK_MS = 10_000;

describe("lifetimes and limits of the authorization server", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let owner: Person;
  before(async () => {
    world = await oauthWorld();
    client = await world.makeClient();
    owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
  });
  after(() => world?.stop());

  it("codes and tokens are valid for their documented lifetimes", async () => {
    const { code } = await authorize();
    const found = async (text: string) => {
      const { kind, grantId, hash } = readTokenText(text) as TokenAddress;
      return world.bus.actors.call(oauthGrant, grantId, "find", { kind, hash });
    };
    const { grant, token } = await found(code);
    expectLeft(grant.expiresAt, GRANT_MS);
    expectLeft(token.expiresAt, CODE_MS);
    const { body } = await redeem(code);
    expect(body.expires_in).to.equal(ACCESS_TOKEN_MS / 1_000);
    expectLeft((await found(body.access_token)).token.expiresAt, ACCESS_TOKEN_MS);
    expectLeft((await found(body.refresh_token)).token.expiresAt, REFRESH_TOKEN_MS);
  });

  it("a browser is remembered for BROWSER_MS", async () => {
    const answer = await fetch(`${world.urls[0]}/login`);
    const cookie = answer.headers.getSetCookie().find((one) => one.startsWith("tl_browser="));
    expect(cookie).to.match(new RegExp(`max-age=${BROWSER_MS / 1_000}`, "i"));
  });

  it("a client's form is accepted up to CLIENT_FORM_BYTES_MAX", async () => {
    const send = async (bytes: number) => {
      const body = "grant_type=refresh_token&refresh_token=x&more=".padEnd(bytes, "m");
      const headers = { "Content-Type": "application/x-www-form-urlencoded", ...basic() };
      const answer = await fetch(`${world.urls[0]}/oauth2/token`, {
        method: "POST",
        headers,
        body,
      });
      return [answer.status, ((await answer.json()) as Wire).error];
    };
    expect(await send(CLIENT_FORM_BYTES_MAX)).to.deep.equal([400, "invalid_grant"]);
    expect(await send(CLIENT_FORM_BYTES_MAX + 1)).to.deep.equal([400, "invalid_request"]);
  });

  it("only a sign-in older than max_age must be repeated", async () => {
    const person = new Person(world.urls[0] ?? "");
    const query = (maxAge: number) => queryOf({ scope: "openid", max_age: String(maxAge) });
    await person.open(query(600));
    await person.signIn(world.owner);
    if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
    expect((await person.open(query(600))).url).to.contain("code=");
    await until("a sign-in of more than a second ago", async () => {
      const { url } = await person.open(query(1));
      return url.includes("/login");
    });
    expect((await person.open(query(600))).url).to.contain("code=");
    await person.open(query(1));
    const { url } = await person.signIn(world.owner);
    const { body } = await redeem(new URL(url).searchParams.get("code") ?? "");
    const [, payload = ""] = body.id_token.split(".");
    const { auth_time, iat } = JSON.parse(Buffer.from(payload, "base64url").toString());
    expect(iat - auth_time).to.be.within(0, SLACK_MS / 1_000);
  });

  it("a client's record shows when its secret was last used", async () => {
    const other = await world.makeClient();
    const secrets = async () => {
      const path = `/accounts/${world.accountId}/oauth_clients/${other.client_id}`;
      return (await world.api(path)).body.result.secrets as Wire[];
    };
    expect((await secrets())[0].last_used_at ?? null).to.equal(null);
    const { code } = await authorize(other);
    const before = Date.now();
    await redeem(code, other);
    const used = await until("it is known", async () => (await secrets())[0].last_used_at);
    expect(Date.parse(used)).to.be.within(before - 1_000, Date.now());
  });

  for (const [needed, method, path] of [
    ["browser-rendering.write", "POST", "browser-rendering/pdf"],
    ["oauth-clients.write", "POST", "oauth_clients"],
    ["account.write", "POST", "members"],
  ] as const) {
    it(`a token gives access to ${path} only with ${needed}`, async () => {
      const asked = { method, json: { never: "good" } };
      const scopes = ["browser-rendering.read", needed];
      const wide = await world.makeClient({ scopes, optional_scopes: [] });
      const statusOf = async (scope: string) => {
        const { code } = await authorize(wide, { scope });
        const { body } = await redeem(code, wide);
        const token = body.access_token;
        return (await world.api(`/accounts/${world.accountId}/${path}`, { ...asked, token }))
          .status;
      };
      expect(await statusOf("browser-rendering.read")).to.equal(403);
      // A request with the needed permission passes authorization and is refused later, for its invalid body.
      expect(await statusOf(needed)).to.equal(400);
    });
  }

  function queryOf(changes: Record<string, string>, by = client) {
    const all = { client_id: by.client_id, response_type: "code", redirect_uri: REDIRECT_URI };
    return `/oauth2/auth?${new URLSearchParams({ ...all, ...changes })}`;
  }

  async function authorize(by = client, changes: Record<string, string> = {}) {
    await owner.open(queryOf(changes, by));
    if (owner.seen.url.includes("/consent")) await owner.submit({ decision: "allow" });
    return { code: new URL(owner.seen.url).searchParams.get("code") ?? "" };
  }

  function basic({ client_id, client_secret } = client) {
    const both = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    return { Authorization: `Basic ${both}` };
  }

  async function redeem(code: string, by = client) {
    const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
    const answer = await fetch(`${world.urls[0]}/oauth2/token`, {
      method: "POST",
      headers: basic(by),
      body: new URLSearchParams(fields),
    });
    return { body: (await answer.json()) as Wire };
  }
});

function expectLeft(expiresAt: number, ms: number): void {
  expect(expiresAt - Date.now()).to.be.within(ms - SLACK_MS, ms);
}
