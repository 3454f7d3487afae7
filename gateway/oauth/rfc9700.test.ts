/*
 * RFC 9700, Best Current Practice for OAuth 2.0 Security, recommendation by recommendation. Tests without a file's name
 * are below; "refusals" is refusals.test.ts, "flows" flows.test.ts, "clients"
 * gateway/oauth/routes/oauth-clients.test.ts.
 *
 * | section | requirement on an authorization server | test |
 * | --- | --- | --- |
 * | 2.1, 4.1.3 | redirect URIs match exactly, the port of a loopback address aside | "nobody is redirected to a URI that differs…"; refusals, "an unknown client and an unregistered…"; clients, "refuses each fault…" (no http, fragment, wildcard, userinfo); changed-client.test.ts, "in its redirect URIs" |
 * | 2.1, 4.11.2 | no open redirector | the same; "a sign-out redirects only to registered addresses"; refusals, "signing out redirects only…" |
 * | 2.1, 4.4 | `iss` against mix-up | "every response names its issuer…"; refusals, "other refusals show a page…" |
 * | 2.1, 4.7 | cross-site request forgery | "no form is accepted from another site"; refusals, "a request continues only in the browser…"; flows (state) |
 * | 2.1, 4.12 | no 307, which would post a form again | "every redirect after a form is a 303" |
 * | 2.1.1, 4.5 | PKCE: always for public clients, S256 only, checked whenever it was sent | "a stolen code is useless without its verifier"; refusals, "other refusals show a page…", "a code works only for its client…" |
 * | 2.1.1, 4.8 | no PKCE downgrade | "PKCE cannot be downgraded"; refusals, "a code works only for its client…"; changed-client.test.ts, "requires PKCE once…" |
 * | 2.1.1 | metadata announces PKCE | refusals, "metadata is the same…" |
 * | 2.1.2, 2.4 | no implicit grant, no password grant | "only codes and refresh tokens are exchanged for tokens" |
 * | 2.2.1, 4.10.1 | sender-constrained access tokens, where feasible | not offered: bearer tokens as in the REST API, valid for an hour, revocable at once |
 * | 2.2.2, 4.14 | refresh tokens rotate, are bound to client and scope, and end by reuse and disuse | "a refresh token that was used long before ends the grant"; refusals, "a retry within the grace…", "a refresh may request fewer scopes…"; actors/oauth-grant |
 * | 2.3, 4.10.2 | access tokens have the least privilege | "a token gives access to the chosen accounts and scopes…"; refusals, "a person may decline…" |
 * | 2.5 | clients are authenticated | refusals, "a wrong secret…"; changed-client.test.ts, "authenticates only by its registered method"; secrets are stored as hashes: actors/oauth-client |
 * | 2.6 | metadata; TLS; no CORS at the authorization endpoint | refusals, "metadata…", "browsers of the client's origins…"; cors.test.ts; behind-proxy.test.ts |
 * | 4.2, 4.3 | nothing leaks by Referer, history or caches | "responses with codes and tokens are not cached and send no referrer"; "a token is accepted in the Authorization header only…" |
 * | 4.2.4 | codes work once, and a replay revokes their tokens | refusals, "a code works once…", "at most one of many concurrent redemptions…" |
 * | 4.9 | stored tokens are useless to a reader of the store | "stored state contains no token"; refusals, "tokens and passwords are in no log" |
 * | 4.13 | headers of a proxy are not trusted | behind-proxy.test.ts, "all URLs are below the public URL…" |
 * | 4.15 | no client can impersonate a person | client ids are ours to choose: clients, "refuses each fault…" (client_id); there is no grant without a person: "only codes…" |
 * | 4.16 | no clickjacking | "no page can be shown in a frame"; refusals, "pages forbid frames…" |
 * | 4.17 | in-browser flows | no response is sent by postMessage; form_post is refused: refusals, "an unknown client…" |
 */
import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import * as oidc from "openid-client";
import { REFRESH_TOKENS_PER_GRANT_MAX } from "../../actors/oauth/oauth-grant/grant-tokens.ts";
import { COMMAND_LINE_CLIENT_ID } from "../../schemas/oauth/command-line.ts";
import { until } from "../../scripts/testing/until.ts";
import { sha256 } from "../http/sha256.ts";
import { wayBack } from "./testing/client-calls.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "./testing/oauth-world.ts";

describe("RFC 9700", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let base: string;
  let client: TestClient;
  let owner: Person;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    [base = ""] = world.urls;
    client = await world.makeClient();
    owner = new Person(base);
    await owner.open("/login");
    await owner.signIn(world.owner);
  });
  after(() => world?.stop());

  const query = (changes: Record<string, string> = {}) =>
    `/oauth2/auth?${new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      scope: "account.read artifacts.read",
      state: "s",
      ...changes,
    })}`;
  const authorize = async (changes: Record<string, string> = {}, person = owner) => {
    await person.open(query(changes));
    if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
    return new URL(person.seen.url).searchParams;
  };
  const post = async (path: string, fields: Record<string, string>, by = client) => {
    const basic = Buffer.from(`${by.client_id}:${by.client_secret}`).toString("base64");
    const headers: Record<string, string> = by.client_secret
      ? { Authorization: `Basic ${basic}` }
      : {};
    const own = by.client_secret ? {} : { client_id: by.client_id };
    const body = new URLSearchParams({ ...own, ...fields });
    const response = await fetch(base + path, { method: "POST", headers, body });
    const text = await response.text();
    return { response, body: (text ? JSON.parse(text) : {}) as Wire };
  };
  const redeem = async (code: string | null, more: Record<string, string> = {}, by = client) =>
    post(
      "/oauth2/token",
      { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code: code ?? "", ...more },
      by,
    );
  const refresh = (token: string, by = client, more: Record<string, string> = {}) =>
    post("/oauth2/token", { grant_type: "refresh_token", refresh_token: token, ...more }, by);
  const tokens = async () => (await redeem((await authorize()).get("code"))).body;
  const status = async (token: string, path = "/accounts", gateway = 0) =>
    (await world.api(path, { token, gateway })).status;
  const pkce = () => {
    const verifier = randomBytes(32).toString("base64url");
    const challenge = createHash("sha256").update(verifier).digest("base64url");
    return { verifier, sent: { code_challenge: challenge, code_challenge_method: "S256" } };
  };

  it("nobody is redirected to a URI that differs from the registered one in any character", async () => {
    const redirect_uris = ["https://bot.example.com/a/b?c=d", "http://[::1]/cb"];
    const strict = await world.makeClient({ redirect_uris });
    for (const redirect_uri of [
      "https://bot.example.com/a/b",
      "https://bot.example.com/a/b?c=d&e=f",
      "https://bot.example.com/a/b/?c=d",
      "https://bot.example.com/A/b?c=d",
      "https://BOT.example.com/a/b?c=d",
      "https://bot.example.com:443/a/b?c=d",
      "https://bot.example.com:444/a/b?c=d",
      "https://bot.example.com/x/../a/b?c=d",
      "https://bot.example.com/a/%62?c=d",
      "https://bot.example.com\\@evil.example.com/a/b?c=d",
      "https://me@bot.example.com/a/b?c=d",
      "https://bot.example.com.evil.example.com/a/b?c=d",
      "https://bot.example.com/a/b?c=d#fragment",
      "http://bot.example.com/a/b?c=d",
      "//bot.example.com/a/b?c=d",
      "http://[::1]:1/cb/",
      "http://127.0.0.1/cb",
      "http://localhost/cb",
    ]) {
      const response = await fetch(base + query({ client_id: strict.client_id, redirect_uri }), {
        redirect: "manual",
      });
      const led = [response.status, response.headers.get("location")];
      expect(led, redirect_uri).to.deep.equal([400, null]);
    }
    for (const redirect_uri of [redirect_uris[0] ?? "", "http://[::1]:4711/cb"]) {
      const given = await authorize({ client_id: strict.client_id, redirect_uri });
      expect(given.get("code"), redirect_uri).to.be.a("string");
    }
  });

  it("an invalid request is answered with a page, the same with and without a session, except with prompt=none", async () => {
    for (const [changes, error] of [
      [{ scope: "apps.write" }, "invalid_scope"],
      [{ response_type: "token" }, "unsupported_response_type"],
      [{ code_challenge: "x" }, "invalid_request"],
      [{ prompt: "none login" }, "invalid_request"],
    ] as const) {
      const stranger = new Person(base);
      const { url, status, text, headers } = await stranger.open(query(changes));
      expect([status, new URL(url).origin], error).to.deep.equal([400, base]);
      expect(headers.get("location")).to.equal(null);
      expect(text).to.contain(error);
      const [, href = ""] = /<a href="([^"]*)">Go back to <strong>127.0.0.1:1</.exec(text) ?? [];
      const { origin, pathname, search, hash } = new URL(href.replaceAll("&amp;", "&"));
      expect(origin + pathname).to.equal(REDIRECT_URI);
      const said = new URLSearchParams(search || hash.slice(1));
      const back = ["error", "state", "iss"].map((name) => said.get(name));
      expect(back).to.deep.equal([error, "s", base]);
      // The answers with and without a session are equal. So a site that links here cannot find out whether its
      // visitors are signed in.
      const known = await owner.open(query(changes));
      const shown = (page: string) => page.replace(/Request [\w-]+/, "Request");
      expect([known.status, known.url]).to.deep.equal([status, url]);
      expect(shown(known.text)).to.equal(shown(text));
      expect(comparable(known.headers)).to.deep.equal(comparable(headers));
    }
    const silent = await authorize({ prompt: "none" }, new Person(base));
    expect(silent.get("error")).to.equal("login_required");
    const asked = { prompt: "none", scope: "apps.write" };
    for (const person of [owner, new Person(base)]) {
      expect((await authorize(asked, person)).get("error")).to.equal("invalid_scope");
    }
  });

  it("a sign-out redirects only to registered addresses", async () => {
    const target = "https://bot.example.com/bye";
    const out = await world.makeClient({ post_logout_redirect_uris: [target] });
    const stranger = new Person(base);
    for (const uri of [`${target}/`, `${target}?a=b`, "https://evil.example.com/", REDIRECT_URI]) {
      const asked = { client_id: out.client_id, post_logout_redirect_uri: uri };
      const { url, status } = await stranger.open(`/oauth2/logout?${new URLSearchParams(asked)}`);
      expect([status, new URL(url).origin]).to.deep.equal([400, base]);
    }
    // If the request names no client, the server cannot check for which client the address is registered.
    const none = await stranger.open(
      `/oauth2/logout?${new URLSearchParams({ post_logout_redirect_uri: target })}`,
    );
    expect(new URL(none.url).origin).to.equal(base);
  });

  it("every response names its issuer, and a client rejects another issuer's", async () => {
    for (const changes of [
      {},
      { prompt: "none", scope: "apps.write" },
      { prompt: "none", max_age: "0" },
    ]) {
      expect((await authorize(changes)).get("iss"), JSON.stringify(changes)).to.equal(base);
    }
    const library = await oidc.discovery(
      new URL(base),
      client.client_id,
      undefined,
      oidc.ClientSecretBasic(client.client_secret),
      { execute: [oidc.allowInsecureRequests] },
    );
    await authorize();
    const back = new URL(owner.seen.url);
    const redeemed = (url: URL) =>
      oidc.authorizationCodeGrant(library, url, { expectedState: "s" }).then(
        () => "taken",
        (error: Error) => String(error.cause),
      );
    const mixed = new URL(back);
    mixed.searchParams.set("iss", "https://evil.example.com");
    expect(await redeemed(mixed)).to.contain("iss");
    mixed.searchParams.delete("iss");
    expect(await redeemed(mixed)).to.contain("iss");
    expect(await redeemed(back)).to.equal("taken");
  });

  it("no form is accepted from another site", async () => {
    const { person } = await newPerson(world);
    await person.open(query({ prompt: "consent", client_id: client.client_id }));
    const forms = [
      ["/login", { email: world.owner.email, password: world.owner.password }],
      ["/signup", { email: "forged@example.com", password: "correct horse" }],
      ["/profile/clients/revoke", { client: client.client_id }],
      ["/profile/password", { current: "correct horse", password: "forged horse" }],
    ] as const;
    for (const [path, fields] of forms) {
      expect((await person.post(path, fields)).status, path).to.equal(403);
    }
    const uid = new URL((await owner.open(query({ prompt: "consent" }))).url).searchParams.get(
      "interaction",
    );
    const consent = { interaction: uid ?? "", decision: "allow" };
    expect((await owner.post("/oauth2/consent", consent)).status).to.equal(403);
    await person.post("/signout", {});
    await person.post("/oauth2/logout/confirm", { logout: "yes" });
    expect((await person.open("/profile/clients")).status).to.equal(200);
    expect(person.seen.url).to.contain("/profile/clients");
    // With SameSite=Lax, a browser does not send our cookies with a form of another site.
    const { headers } = await fetch(`${base}/login`);
    for (const cookie of headers.getSetCookie()) expect(cookie).to.match(/SameSite=Lax/i);
  });

  it("every redirect after a form is a 303", async () => {
    const seen: [string, number][] = [];
    const person = new Person(base);
    person.onAnswer = (method, response) => {
      if (response.status >= 300 && response.status < 400) seen.push([method, response.status]);
    };
    await person.open(query({ prompt: "consent" }));
    await person.signIn(world.owner);
    await person.submit({ decision: "allow" });
    expect(person.seen.url).to.contain("code=");
    await person.open(query({ scope: "apps.write" }));
    expect(seen.length).to.be.above(4);
    for (const [method, status] of seen) expect(status, method).to.equal(303);
  });

  it("a stolen code is useless without its verifier", async () => {
    const open = await world.makeClient({ token_endpoint_auth_method: "none" });
    const bare = { client_id: open.client_id, client_secret: "" };
    const [victim, thief] = [pkce(), pkce()];
    const mine = { client_id: open.client_id };
    const code = (await authorize({ ...mine, ...victim.sent })).get("code");
    await authorize({ ...mine, ...thief.sent });
    for (const more of [{ code_verifier: thief.verifier }, {}] as Record<string, string>[]) {
      expect((await redeem(code, more, bare)).body.error).to.equal("invalid_grant");
    }
    // After the failed attempts of the thief, the victim can still redeem the code.
    const good = await redeem(code, { code_verifier: victim.verifier }, bare);
    expect(good.response.status).to.equal(200);
  });

  it("PKCE cannot be downgraded", async () => {
    const open = await world.makeClient({ token_endpoint_auth_method: "none" });
    const { sent, verifier } = pkce();
    for (const changes of [
      {},
      { code_challenge: sent.code_challenge },
      { ...sent, code_challenge_method: "plain" },
      { code_challenge_method: "S256" },
    ]) {
      const asked = query({ client_id: open.client_id, ...changes });
      const given = wayBack((await owner.open(asked)).text);
      expect(given.get("error"), JSON.stringify(changes)).to.equal("invalid_request");
    }
    const code = (await authorize(sent)).get("code");
    expect((await redeem(code)).body.error).to.equal("invalid_grant");
    const without = (await authorize()).get("code");
    const added = await redeem(without, { code_verifier: verifier });
    expect(added.body.error).to.equal("invalid_grant");
  });

  it("only codes and refresh tokens are exchanged for tokens", async () => {
    for (const response_type of ["token", "id_token", "code token", "code id_token", "none"]) {
      const asked = query({ response_type, nonce: "n", scope: "openid account.read" });
      const answered = wayBack((await owner.open(asked)).text);
      expect(answered.get("error"), response_type).to.equal("unsupported_response_type");
      for (const name of ["access_token", "id_token", "code"]) {
        expect(answered.get(name), name).to.equal(null);
      }
    }
    for (const grant_type of [
      "password",
      "client_credentials",
      "implicit",
      "urn:ietf:params:oauth:grant-type:jwt-bearer",
      "urn:ietf:params:oauth:grant-type:device_code",
      "urn:ietf:params:oauth:grant-type:token-exchange",
    ]) {
      const fields = { grant_type, username: world.owner.email, password: world.owner.password };
      const { body } = await post("/oauth2/token", fields);
      expect(body.error, grant_type).to.equal("unsupported_grant_type");
    }
  });

  for (const [name, more] of [
    ["", {}],
    [", whatever scope it is used for", { scope: "account.read artifacts.read" }],
  ] as const) {
    it(`a refresh token that was used long before ends the grant${name}`, async () => {
      const first = await tokens();
      let token = first.refresh_token;
      // When a grant has more used refresh tokens than REFRESH_TOKENS_PER_GRANT_MAX, the oldest cannot be retried any
      // more, as if its grace period had ended.
      for (let number = 0; number <= REFRESH_TOKENS_PER_GRANT_MAX; number++) {
        const { body } = await refresh(token);
        token = body.refresh_token;
      }
      const last = await refresh(token);
      const stranger = await world.makeClient();
      const asked = await refresh(first.refresh_token, stranger, more);
      expect(asked.body.error).to.equal("invalid_grant");
      // A client that sends the token of another client does not learn whether it was used, and does not end the
      // grant.
      expect(await status(last.body.access_token, "/accounts", 1)).to.equal(200);
      const replayed = await refresh(first.refresh_token, client, more);
      expect(replayed.body.error).to.equal("invalid_grant");
      expect((await refresh(last.body.refresh_token)).body.error).to.equal("invalid_grant");
      for (const gateway of [0, 1]) {
        expect(await status(last.body.access_token, "/accounts", gateway)).to.equal(401);
      }
    });
  }

  it("responses with codes and tokens are not cached and send no referrer", async () => {
    const led: Response[] = [];
    owner.onAnswer = (_method, response) => led.push(response);
    const { body } = await redeem((await authorize()).get("code"));
    owner.onAnswer = undefined;
    const pages = ["/login", "/signup", "/profile/clients", "/oauth2/logout"];
    const shown = await Promise.all(pages.map((path) => fetch(base + path)));
    for (const { headers, url } of [...led, ...shown]) {
      expect(headers.get("cache-control"), url).to.equal("no-store");
      expect(headers.get("referrer-policy"), url).to.equal("no-referrer");
    }
    const { access_token: token, refresh_token } = body;
    const answers = [
      (await redeem((await authorize()).get("code"))).response,
      (await refresh(refresh_token)).response,
      (await redeem("x")).response,
      (await post("/oauth2/introspect", { token })).response,
      await fetch(`${base}/oauth2/userinfo`, { headers: { Authorization: `Bearer ${token}` } }),
    ];
    for (const { headers, url } of answers) {
      expect(headers.get("cache-control"), url).to.contain("no-store");
    }
    expect(owner.trail.join()).to.not.match(/tl_(at|rt)_/);
  });

  it("a token is accepted in the Authorization header only, and no response repeats it", async () => {
    const { access_token: token, refresh_token: secret } = await tokens();
    const asked = await Promise.all([
      fetch(`${base}/v4/accounts?access_token=${token}`),
      fetch(`${base}/oauth2/userinfo?access_token=${token}`),
      fetch(`${base}/v4/accounts`, { headers: { Cookie: `access_token=${token}` } }),
      fetch(`${base}/v4/accounts`, { headers: { Authorization: `Bearer ${token}x` } }),
      fetch(`${base}/v4/accounts`, { headers: { Authorization: `Bearer ${secret}` } }),
      fetch(`${base}/oauth2/token?refresh_token=${secret}`, { method: "POST" }),
    ]);
    for (const answer of asked) {
      expect([400, 401], answer.url).to.include(answer.status);
      const text = (await answer.text()) + JSON.stringify([...answer.headers]);
      expect(text).to.not.contain(token).and.not.contain(secret);
    }
    const refused = await post("/oauth2/token", {
      grant_type: "authorization_code",
      redirect_uri: REDIRECT_URI,
      code: `${secret}x`,
    });
    expect(JSON.stringify(refused.body)).to.not.contain(secret);
    expect(world.logs.join("")).to.not.match(/tl_(at|rt|ac)_/);
  });

  it("stored state contains no token", async () => {
    const { access_token, refresh_token } = await tokens();
    const stored = await allStored();
    for (const token of [access_token, refresh_token]) expect(stored).to.contain(sha256(token));
    const secrets = [access_token, refresh_token, client.client_secret, world.owner.password];
    for (const secret of secrets) expect(stored).to.not.contain(secret.slice(-40));
    for (const name of ["tl_session;/", "tl_browser;/"]) {
      const { value } = owner.cookies.get(name) ?? { value: "" };
      expect([value.length, stored.includes(value)], name).to.deep.equal([43, false]);
    }
  });

  /** Returns everything that the bus stores, both before and after the keys of the actors are written. */
  async function allStored(): Promise<string> {
    const { bus } = world.bus;
    const texts: string[] = [];
    for await (const { config } of bus.jetstream.streams.list()) {
      for (let seq = 1; ; ) {
        const next = await bus.readNextOfLeader(config.name, ">", seq);
        if (!next) break;
        texts.push(next.string());
        seq = next.seq + 1;
      }
    }
    return texts.join();
  }

  it("no page can be shown in a frame", async () => {
    await owner.open(query({ prompt: "consent" }));
    const pages = [owner.seen];
    for (const path of ["/login", "/profile/clients", "/profile/members", "/oauth2/logout"]) {
      pages.push(await owner.open(path));
    }
    pages.push(await owner.open("/oauth2/auth?client_id=none"));
    for (const { headers, url } of pages) {
      expect(headers.get("content-security-policy"), url).to.contain("frame-ancestors 'none'");
      expect(headers.get("x-frame-options"), url).to.equal("DENY");
    }
  });

  it("a token gives access to the chosen accounts and scopes, as long as the person has them", async () => {
    const guest = await newPerson(world);
    const path = `/accounts/${world.accountId}/members`;
    const json = { email: guest.email, roles: ["Administrator"] };
    const { body } = await world.api(path, { method: "POST", json });
    const { pathname, search } = new URL(body.result.invitation_url);
    const { person } = guest;
    await person.open(`/login${search}`);
    expect(pathname).to.equal("/signup");
    await person.signIn(guest);
    await until("they see the account", async () => {
      await person.open(query({ prompt: "consent", scope: "account.read artifacts.write" }));
      return person.seen.text.includes(world.accountId);
    });
    await person.submit({ decision: "allow", account: [world.accountId], scope: [] });
    const code = new URL(person.seen.url).searchParams.get("code");
    const { access_token: token, refresh_token } = (await redeem(code)).body;
    const { body: accounts } = await world.api("/accounts", { token });
    expect(accounts.result.map(({ id }: { id: string }) => id)).to.deep.equal([world.accountId]);
    const sees = (gateway: number) => status(token, path, gateway);
    const write = { method: "POST", token, json: { email: "x@example.com", roles: ["Member"] } };
    expect((await world.api(path, write)).status).to.equal(403);
    expect([await sees(0), await sees(1)]).to.deep.equal([200, 200]);
    const active = async () => [
      (await post("/oauth2/introspect", { token })).body.active,
      (await post("/oauth2/introspect", { token: refresh_token })).body.active,
    ];
    expect(await active()).to.deep.equal([true, true]);

    // A reduced role, or a removed membership, limits the token immediately at every gateway.
    const { result } = (await world.api(`${path}?per_page=50`)).body;
    const { id } = result.find(({ email }: { email: string }) => email === guest.email);
    const roles = { method: "PUT", json: { roles: ["OAuth Client Write"] } };
    await world.api(`${path}/${id}`, roles);
    expect([await sees(0), await sees(1)]).to.deep.equal([403, 403]);
    await world.api(`${path}/${id}`, { method: "PUT", json: { roles: ["Member"] } });
    expect([await sees(0), await sees(1)]).to.deep.equal([200, 200]);
    await world.api(`${path}/${id}`, { method: "DELETE" });
    // The client is private. The person is no longer a member of its account, so all tokens for this person are
    // invalid.
    expect([await sees(0), await sees(1)]).to.deep.equal([401, 401]);
    expect(await active()).to.deep.equal([false, false]);
    expect((await refresh(refresh_token)).body.error).to.equal("invalid_grant");
    expect((await person.open(query())).text).to.contain("is private");
  });

  it("a revoked token gives no access at once, at every gateway", async () => {
    const { access_token: token, refresh_token } = await tokens();
    const works = async () => [await status(token), await status(token, "/accounts", 1)];
    expect(await works()).to.deep.equal([200, 200]);
    await post("/oauth2/revoke", { token });
    expect(await works()).to.deep.equal([401, 401]);
    // RFC 7009 section 2.1: only the access token was revoked, so the refresh token stays valid.
    const next = await refresh(refresh_token);
    expect(next.response.status).to.equal(200);
    const { access_token: other } = next.body;
    expect([await status(other), await status(other, "/accounts", 1)]).to.deep.equal([200, 200]);
    await post("/oauth2/revoke", { token: next.body.refresh_token });
    expect([await status(other), await status(other, "/accounts", 1)]).to.deep.equal([401, 401]);
    expect((await refresh(refresh_token)).body.error).to.equal("invalid_grant");
  });

  it("an app behind a scheme that any app may claim is consented to each time (RFC 8252 section 8.6)", async () => {
    const redirect_uri = "com.example.bot:/callback";
    const app = await world.makeClient({
      token_endpoint_auth_method: "none",
      redirect_uris: [redirect_uri, REDIRECT_URI],
    });
    const { sent } = pkce();
    const asks = async (uri: string, more: Record<string, string> = {}) => {
      await owner.open(query({ client_id: app.client_id, redirect_uri: uri, ...sent, ...more }));
      return owner.seen.url.includes("/consent");
    };
    for (const expected of [true, true]) {
      expect(await asks(redirect_uri)).to.equal(expected);
      await owner.submit({ decision: "allow" });
      expect(owner.seen.url).to.match(/^com\.example\.bot:\/callback\?code=/);
    }
    await asks(redirect_uri, { prompt: "none" });
    expect(new URL(owner.seen.url).searchParams.get("error")).to.equal("interaction_required");
    // Consent for a client with a loopback address is remembered, except for the command line, whose client id is
    // public.
    expect(await asks(REDIRECT_URI)).to.equal(false);
    expect(owner.seen.url).to.contain("code=");
    const commandLine = { client_id: COMMAND_LINE_CLIENT_ID, scope: "apps.read" };
    for (const port of [4001, 4002]) {
      expect(await asks(`http://127.0.0.1:${port}/callback`, commandLine)).to.equal(true);
      await owner.submit({ decision: "allow" });
      expect(owner.seen.url).to.contain(`127.0.0.1:${port}/callback?code=`);
    }
  });

  it("metadata and keys are readable by browsers of every origin", async () => {
    for (const path of [
      "/.well-known/oauth-authorization-server",
      "/.well-known/openid-configuration",
      "/.well-known/jwks.json",
    ]) {
      const { headers } = await fetch(base + path, { headers: { Origin: "https://a.example" } });
      expect(headers.get("access-control-allow-origin"), path).to.equal("https://a.example");
      expect(headers.get("access-control-allow-credentials"), path).to.equal(null);
    }
  });
});

/** The headers that another site's browser could compare. Cookies and times differ at every visit. */
function comparable(headers: Headers) {
  const own = new Set(["date", "set-cookie", "x-request-id"]);
  return [...headers].filter(([name]) => !own.has(name));
}
