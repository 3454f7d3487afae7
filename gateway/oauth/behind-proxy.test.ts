import { generateKeyPairSync } from "node:crypto";
import { expect } from "chai";
import { OAUTH_KEYS_KEY, oauthKeys } from "../../schemas/oauth/oauth-keys.ts";
import { until } from "../../scripts/testing/until.ts";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type Wire,
} from "./testing/oauth-world.ts";

describe("authorization server behind a TLS-terminating proxy", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  const publicUrl = "https://trunkline.example.com";
  before(async () => {
    world = await oauthWorld({ config: { publicUrl, signup: "closed" } });
  });
  after(() => world?.stop());

  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${world.urls[0]}${path}`, { redirect: "manual", ...init });

  it("all URLs are below the public URL, whatever headers a request has", async () => {
    const headers = { "X-Forwarded-Host": "evil.example.com", "X-Forwarded-Proto": "http" };
    const metadata = (await (
      await ask("/.well-known/openid-configuration", { headers })
    ).json()) as Wire;
    for (const [name, value] of Object.entries(metadata)) {
      if (!/_endpoint$|_uri$|^issuer$/.test(name)) continue;
      expect(value, name).to.match(/^https:\/\/trunkline\.example\.com(\/|$)/);
    }
  });

  it("cookies are limited to this host and TLS", async () => {
    const client = await world.makeClient();
    const { client_id } = client;
    const query = new URLSearchParams({
      client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
    });
    const response = await ask(`/oauth2/auth?${query}`);
    expect(response.status).to.equal(303);
    expect(response.headers.get("location")).to.match(/^\/login\?interaction=/);
    const cookies = response.headers.getSetCookie();
    expect(cookies.join()).to.contain("__Host-tl_browser=");
    for (const cookie of cookies)
      expect(cookie)
        .to.match(/; secure/i)
        .and.match(/; httponly/i);
  });

  it("session cookies are HttpOnly, SameSite and Secure, and useless after sign-out", async () => {
    const set: string[] = [];
    const person = new Person(world.urls[0] ?? "");
    person.onAnswer = (_method, { headers }) => set.push(...headers.getSetCookie());
    await person.open("/login");
    await person.signIn(world.owner);
    expect(person.seen.url).to.contain("/console");
    const names = set.map((cookie) => cookie.split("=")[0]);
    expect(names).to.include.members(["__Host-tl_session", "__Host-tl_known"]);
    for (const cookie of set) {
      expect(cookie)
        .to.match(/; secure/i)
        .and.match(/; httponly/i)
        .and.match(/; samesite=lax/i)
        .and.match(/; path=\/(;|$)/i)
        .and.not.match(/; domain=/i);
    }
    // A copied session cookie gives no access after its session has ended.
    const kept = new Person(world.urls[0] ?? "");
    for (const [name, cookie] of person.cookies) kept.cookies.set(name, cookie);
    expect((await kept.open("/profile/clients")).url).to.contain("/profile/clients");
    await person.open("/profile/clients");
    await person.submit({}, { action: "/signout" });
    expect((await kept.open("/profile/clients")).url).to.contain("/login");
  });

  it("a closed sign-up shows no form and makes no user", async () => {
    const shown = await ask("/signup");
    expect([shown.status, await shown.text()].join()).to.contain("By invitation only");
    const body = new URLSearchParams({ email: "x@example.com", password: "correct horse" });
    expect((await ask("/signup", { method: "POST", body })).status).to.equal(403);
  });

  it("a new key is shown before it signs, and the old one goes on signing", async () => {
    const kids = async () =>
      ((await (await ask("/.well-known/jwks.json")).json()) as Wire).keys.map(
        ({ kid }: { kid: string }) => kid,
      );
    const [first] = await kids();
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
    const jwk = privateKey.export({ format: "jwk" }) as Record<string, string>;
    const offer = { after: first, key: { kid: "next", jwk }, secret: "s".repeat(43) };
    await world.bus.actors.call(oauthKeys, OAUTH_KEYS_KEY, "offer", offer);
    await until("the new key is shown", async () => (await kids()).includes("next"));
    expect(await kids()).to.deep.equal([first, "next"]);
  });
});
