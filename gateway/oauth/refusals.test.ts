import { createHash, randomBytes } from "node:crypto";
import { expect } from "chai";
import { until } from "../../scripts/testing/until.ts";
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

describe("authorization server", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let owner: Person;
  before(async () => {
    world = await oauthWorld({ gateways: 2 });
    client = await world.makeClient({ allowed_cors_origins: ["https://app.example.com"] });
    owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
  });
  after(() => world?.stop());

  const query = (changes: Record<string, string | undefined> = {}) => {
    const all = {
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      scope: "account.read artifacts.read",
      state: "s",
      ...changes,
    };
    const given = Object.entries(all).filter(([, value]) => value !== undefined);
    return `/oauth2/auth?${new URLSearchParams(given as [string, string][])}`;
  };
  /**
   * Sends an authorization request as a person who allows every request. Returns the parameters of the address that
   * the person is redirected to.
   */
  const authorize = async (changes: Record<string, string | undefined> = {}, person = owner) => {
    await person.open(query(changes));
    if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
    // In the implicit flow, errors are in the fragment of the address instead of the query.
    const { search, hash } = new URL(person.seen.url);
    return new URLSearchParams(hash === "" ? search : hash.slice(1));
  };
  const post = async (
    path: string,
    fields: Record<string, string>,
    { by = client, gateway = 0, headers = {} }: Wire = {},
  ) => {
    const basic = Buffer.from(`${by.client_id}:${by.client_secret}`).toString("base64");
    const response = await fetch(`${world.urls[gateway]}${path}`, {
      method: "POST",
      headers: { Authorization: `Basic ${basic}`, ...headers },
      body: new URLSearchParams(fields),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text ? JSON.parse(text) : {}) as Wire,
    };
  };
  const redeem = (code: string | null, more: Record<string, string> = {}, options: Wire = {}) =>
    post(
      "/oauth2/token",
      { grant_type: "authorization_code", code: code ?? "", redirect_uri: REDIRECT_URI, ...more },
      options,
    );
  const refresh = (token: string, options: Wire = {}, more: Record<string, string> = {}) =>
    post("/oauth2/token", { grant_type: "refresh_token", refresh_token: token, ...more }, options);
  const tokens = async () => (await redeem((await authorize()).get("code"))).body;
  const works = async (token: string, gateway = 0) =>
    (await world.api("/accounts", { token, gateway })).status === 200;

  describe("requests", () => {
    it("an unknown client and an unregistered redirect URI are shown to the person, never redirected", async () => {
      for (const changes of [
        { client_id: "0".repeat(32) },
        { client_id: "<script>" },
        { redirect_uri: "https://evil.example.com/" },
        { redirect_uri: `${REDIRECT_URI}/more` },
        { redirect_uri: `${REDIRECT_URI}?more=1` },
        { redirect_uri: "http://127.0.0.1.evil.example.com/callback" },
        { redirect_uri: undefined },
        { response_mode: "form_post" },
      ]) {
        const { status, url, text } = await owner.open(query(changes));
        expect([status, new URL(url).origin]).to.deep.equal([400, world.urls[0]]);
        expect(text).to.contain("This cannot go on").and.not.to.contain("<script>");
      }
      // RFC 8252 section 7.3: only the port of a loopback address may differ.
      expect(
        (await authorize({ redirect_uri: "http://127.0.0.1:2/callback" })).get("code"),
      ).to.be.a("string");
    });

    it("other refusals show a page that redirects to the client, with state and iss", async () => {
      const verifier = "v".repeat(43);
      for (const [changes, error] of [
        [{ scope: "account.read apps.write" }, "invalid_scope"],
        [{ scope: "account.read dns.read" }, "invalid_scope"],
        [{ response_type: "token" }, "unsupported_response_type"],
        [{ code_challenge: verifier, code_challenge_method: "plain" }, "invalid_request"],
        [{ code_challenge: verifier }, "invalid_request"],
        [{ prompt: "none login" }, "invalid_request"],
        [{ request: "x.y.z" }, "request_not_supported"],
      ] as const) {
        const given = wayBack((await owner.open(query(changes))).text);
        expect(given.get("error"), JSON.stringify(changes)).to.equal(error);
        expect(given.get("iss")).to.equal(world.urls[0]);
        expect(given.get("state")).to.equal("s");
      }
      // RFC 6749 section 3.3: the request names a scope, but offline_access alone gives access to nothing.
      for (const more of [{}, { prompt: "consent" }]) {
        const alone = wayBack((await owner.open(query({ scope: "offline_access", ...more }))).text);
        expect(alone.get("error"), JSON.stringify(more)).to.equal("invalid_scope");
        expect(alone.get("error_description")).to.contain("'offline_access'");
      }
      const other = (await world.makeClient()).client_id;
      for (const scope of [undefined, ""]) {
        expect((await authorize({ client_id: other, scope })).get("code")).to.be.a("string");
      }
      const named = wayBack((await owner.open(query({ scope: "account.read dns.read" }))).text);
      expect(named.get("error_description")).to.equal(
        "The OAuth 2.0 Client is not allowed to request scope 'dns.read'.",
      );
      const open = await world.makeClient({ token_endpoint_auth_method: "none" });
      const unproved = wayBack((await owner.open(query({ client_id: open.client_id }))).text);
      expect(unproved.get("error")).to.equal("invalid_request");
    });

    it("a parameter that is sent twice is refused, in an address and in a form (RFC 6749 section 3.1)", async () => {
      const [path = "", asked = ""] = query().split("?");
      const body = new URLSearchParams(`${asked}&state=other`);
      const answers = [
        await fetch(`${world.urls[0]}${path}?${body}`),
        await fetch(`${world.urls[0]}${path}`, { method: "POST", body }),
      ];
      for (const answer of answers) {
        expect(answer.status).to.equal(400);
        expect(await answer.text()).to.contain("must not be provided twice");
      }
    });

    it("prompt=none never shows a page; login and consent always do", async () => {
      await authorize();
      expect((await authorize({ prompt: "none" })).get("code")).to.be.a("string");
      const wider = { prompt: "none", scope: "account.read openid" };
      expect((await authorize(wider)).get("error")).to.equal("consent_required");
      const stranger = new Person(world.urls[0] ?? "");
      expect((await authorize({ prompt: "none" }, stranger)).get("error")).to.equal(
        "login_required",
      );
      expect((await owner.open(query({ prompt: "consent" }))).url).to.contain("/oauth2/consent");
      expect((await owner.open(query({ prompt: "login" }))).url).to.contain("/login");
      expect((await owner.signIn(world.owner)).url).to.contain("code=");
      const aged = await owner.open(query({ max_age: "0", scope: "openid account.read" }));
      expect(aged.url).to.contain("/login");
    });

    it("consent is remembered until the client requests more scopes", async () => {
      const fresh = await world.makeClient();
      const ask = (scope: string) => owner.open(query({ client_id: fresh.client_id, scope }));
      expect((await ask("account.read")).url).to.contain("/oauth2/consent");
      await owner.submit({ decision: "allow" });
      expect((await ask("account.read")).url).to.contain("code=");
      expect((await ask("account.read artifacts.read")).url).to.contain("/oauth2/consent");
      await owner.submit({ decision: "allow" });
      expect((await ask("artifacts.read")).url).to.contain("code=");
    });
  });

  describe("codes", () => {
    it("a code works once; a second use revokes the tokens of the first", async () => {
      const code = (await authorize()).get("code");
      const { status, body, headers } = await redeem(code);
      expect(status).to.equal(200);
      expect(headers.get("cache-control")).to.equal("no-store");
      expect(await works(body.access_token)).to.equal(true);
      const replayed = await redeem(code, {}, { gateway: 1 });
      expect([replayed.status, replayed.body.error]).to.deep.equal([400, "invalid_grant"]);
      expect(await works(body.access_token)).to.equal(false);
      expect(await works(body.access_token, 1)).to.equal(false);
      expect((await refresh(body.refresh_token)).body.error).to.equal("invalid_grant");
    });

    it("at most one of many concurrent redemptions of a code succeeds, at two gateways", async () => {
      const code = (await authorize()).get("code");
      const all = await Promise.all(
        [0, 1, 0, 1, 0].map((gateway) => redeem(code, {}, { gateway })),
      );
      expect(all.filter(({ status }) => status === 200).length).to.be.at.most(1);
      for (const { status, body } of all) {
        if (status !== 200) expect(body.error).to.equal("invalid_grant");
      }
    });

    it("a code works only for its client, redirect URI and verifier", async () => {
      const other = await world.makeClient();
      const verifier = randomBytes(32).toString("base64url");
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      const proved = { code_challenge: challenge, code_challenge_method: "S256" };
      const code = (await authorize(proved)).get("code");
      const wrong = [
        redeem(code, { code_verifier: verifier }, { by: other }),
        redeem(code, { code_verifier: verifier, redirect_uri: `${REDIRECT_URI}2` }),
        redeem(code, { code_verifier: "w".repeat(43) }),
        redeem(code),
      ];
      for (const { body } of await Promise.all(wrong)) expect(body.error).to.equal("invalid_grant");
      expect((await redeem(code, { code_verifier: verifier })).status).to.equal(200);
      // RFC 9700 section 4.8: PKCE can neither be removed from a request nor added to it later.
      const plain = (await authorize()).get("code");
      const added = await redeem(plain, { code_verifier: verifier });
      expect(added.body.error).to.equal("invalid_grant");
    });
  });

  describe("refresh tokens", () => {
    it("a retry within the grace period succeeds at any gateway, and each gets a different next token", async () => {
      const { refresh_token: first } = await tokens();
      const both = await Promise.all([refresh(first), refresh(first, { gateway: 1 })]);
      expect(both.map(({ status }) => status)).to.deep.equal([200, 200]);
      const [one, two] = both.map(({ body }) => body);
      expect(one.refresh_token).not.to.equal(two.refresh_token);
      expect((await works(one.access_token)) && (await works(two.access_token))).to.equal(true);
      expect((await refresh(two.refresh_token)).status).to.equal(200);
    });

    it("64 concurrent refreshes with one token at two gateways all succeed, and each next token works", async () => {
      const { refresh_token: first } = await tokens();
      let used = Array.from({ length: 64 }, () => first);
      for (const round of [1, 2]) {
        const all = await Promise.all(
          used.map((token, index) => refresh(token, { gateway: index % 2 })),
        );
        const statuses = all.map(({ status }) => status);
        expect(statuses, `${round}`).to.deep.equal(used.map(() => 200));
        const open = await Promise.all(all.map(({ body }) => works(body.access_token)));
        expect(open, `${round}`).to.deep.equal(used.map(() => true));
        used = all.map(({ body }) => body.refresh_token);
      }
      expect((await refresh(first)).status).to.equal(200);
    });

    it("a refresh may request fewer scopes, but not more, and not for another client", async () => {
      const { refresh_token: token } = await tokens();
      const more = await refresh(token, {}, { scope: "artifacts.write" });
      expect(more.body.error).to.equal("invalid_scope");
      const other = await world.makeClient();
      expect((await refresh(token, { by: other })).body.error).to.equal("invalid_grant");
      const less = await refresh(token, {}, { scope: "account.read" });
      expect(less.body.scope).to.equal("account.read");
    });
  });

  describe("clients", () => {
    it("a wrong secret, a wrong authentication method and a missing secret are invalid_client", async () => {
      const code = "x";
      const wrong = { ...client, client_secret: "nope" };
      const basic = await redeem(code, {}, { by: wrong });
      expect([basic.status, basic.body.error]).to.deep.equal([401, "invalid_client"]);
      expect(basic.headers.get("www-authenticate")).to.contain("Basic");
      const { client_id, client_secret } = client;
      const body = new URLSearchParams({ grant_type: "authorization_code", code, client_id });
      const none = await fetch(`${world.urls[0]}/oauth2/token`, { method: "POST", body });
      expect(none.status).to.equal(401);
      body.set("client_secret", client_secret);
      const posted = await fetch(`${world.urls[0]}/oauth2/token`, { method: "POST", body });
      expect(posted.status).to.equal(401);
    });

    it("both secrets of a rotation work, until the old one is deleted", async () => {
      const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}/rotate_secret`;
      const { refresh_token: token } = await tokens();
      const { body } = await world.api(path, { method: "POST" });
      const renewed = { ...client, client_secret: body.result.client_secret };
      const second = await refresh(token, { by: renewed, gateway: 1 });
      expect(second.status).to.equal(200);
      expect((await refresh(second.body.refresh_token)).status).to.equal(200);
      await world.api(path, { method: "DELETE" });
      expect((await refresh(second.body.refresh_token)).status).to.equal(401);
      client = renewed;
      expect((await refresh(second.body.refresh_token)).status).to.equal(200);
    });

    it("removing a scope or a client applies at once at every gateway", async () => {
      const gone = await world.makeClient();
      const mine = { client_id: gone.client_id };
      const { body } = await redeem((await authorize(mine)).get("code"), {}, { by: gone });
      const path = `/accounts/${world.accountId}/oauth_clients/${gone.client_id}`;
      const account = `/accounts/${world.accountId}`;
      const { access_token: token } = body;
      for (const gateway of [0, 1]) {
        expect((await world.api(account, { token, gateway })).status).to.equal(200);
        const members = await world.api(`${account}/members`, { token, gateway });
        expect(members.status).to.equal(200);
      }
      const changed = {
        method: "PATCH",
        json: { scopes: ["openid", "artifacts.read"], optional_scopes: [] },
      };
      expect((await world.api(path, changed)).status).to.equal(200);
      for (const gateway of [0, 1]) {
        const members = await world.api(`${account}/members`, { token, gateway });
        expect(members.status).to.equal(403);
      }
      await world.api(path, { method: "DELETE" });
      for (const gateway of [0, 1]) expect(await works(token, gateway)).to.equal(false);
      expect((await refresh(body.refresh_token, { by: gone })).status).to.equal(401);
    });

    it("a client can introspect and revoke only its own tokens", async () => {
      const { access_token: token } = await tokens();
      const other = await world.makeClient();
      expect((await post("/oauth2/introspect", { token }, { by: other })).body).to.deep.equal({
        active: false,
      });
      expect((await post("/oauth2/revoke", { token }, { by: other })).status).to.equal(200);
      expect(await works(token)).to.equal(true);
      expect((await post("/oauth2/introspect", { token })).body).to.include({ active: true });
      expect((await post("/oauth2/revoke", { token })).status).to.equal(200);
      for (const gateway of [0, 1]) expect(await works(token, gateway)).to.equal(false);
    });

    it("a token is revoked whatever its hint says (RFC 7009 section 2.1)", async () => {
      for (const token_type_hint of ["refresh_token", "access_token", "of_another_kind"]) {
        const { access_token, refresh_token } = await tokens();
        const given = [access_token, refresh_token].map((token) =>
          post("/oauth2/revoke", { token, token_type_hint }),
        );
        expect((await Promise.all(given)).map(({ status }) => status)).to.deep.equal([200, 200]);
        expect(await works(access_token)).to.equal(false);
        expect((await refresh(refresh_token)).body.error).to.equal("invalid_grant");
      }
    });

    it("browsers of the client's origins may use the token, revocation and userinfo endpoints, and other origins none", async () => {
      const { refresh_token: token, access_token } = (
        await redeem((await authorize({ scope: "openid account.read" })).get("code"))
      ).body;
      const good = { Origin: "https://app.example.com" };
      const bad = { Origin: "https://evil.example.com" };
      const who = (headers: Record<string, string>) =>
        fetch(`${world.urls[0]}/oauth2/userinfo`, {
          headers: { ...headers, Authorization: `Bearer ${access_token}` },
        });
      const allowed = [
        await refresh(token, { headers: good }),
        await who(good),
        await post("/oauth2/revoke", { token: "x" }, { headers: good }),
      ];
      for (const { status, headers } of allowed) {
        expect([status, headers.get("access-control-allow-origin")]).to.deep.equal([
          200,
          good.Origin,
        ]);
        expect(headers.get("access-control-allow-credentials")).to.equal(null);
      }
      const refused = [
        await refresh(token, { headers: bad }),
        await who(bad),
        await post("/oauth2/revoke", { token: access_token }, { headers: bad }),
      ];
      for (const { status, headers } of refused) {
        expect([status, headers.get("access-control-allow-origin")]).to.deep.equal([400, null]);
      }
      expect(await works(access_token)).to.equal(true);
      const introspected = await post(
        "/oauth2/introspect",
        { token: access_token },
        { headers: good },
      );
      const auth = await fetch(`${world.urls[0]}${query()}`, { headers: good, redirect: "manual" });
      const { headers } = await fetch(`${world.urls[0]}/login`, { headers: good });
      for (const other of [introspected.headers, auth.headers, headers]) {
        expect(other.get("access-control-allow-origin")).to.equal(null);
      }
    });
  });

  describe("people", () => {
    it("a person may decline optional scopes, and the token has the others", async () => {
      await owner.open(query({ scope: "account.read artifacts.write", prompt: "consent" }));
      await owner.submit({ decision: "allow", scope: [] });
      const code = new URL(owner.seen.url).searchParams.get("code");
      expect((await redeem(code)).body.scope).to.equal("account.read");
      await owner.open(query({ prompt: "consent" }));
      await owner.submit({ decision: "deny" });
      const denied = new URL(owner.seen.url).searchParams;
      expect([denied.get("error"), denied.get("iss")]).to.deep.equal([
        "access_denied",
        world.urls[0],
      ]);
    });

    it("an account in which the person has none of the requested permissions cannot be chosen, and says why", async () => {
      const { person, email, password } = await newPerson(world);
      const json = { email, roles: ["OAuth Client Write"] };
      const members = `/accounts/${world.accountId}/members`;
      const { body } = await world.api(members, { method: "POST", json });
      await person.open(`/login${new URL(body.result.invitation_url).search}`);
      await person.signIn({ email, password });
      await until("they see the account", async () => {
        await person.open(query({ scope: "artifacts.read" }));
        return person.seen.text.includes(world.accountId);
      });
      expect(person.seen.text).to.contain(
        "Your role there, OAuth Client Write, allows none of the requested permissions.",
      );
      expect(person.seen.text).to.contain("If one is missing, an administrator of it can invite");
      const chosen = await person.submit({ decision: "allow", account: [world.accountId] });
      expect([chosen.status, chosen.text.includes("Choose at least one account.")]).to.deep.equal([
        400,
        true,
      ]);
    });

    it("a private client works only for members of its account", async () => {
      const { person } = await newPerson(world);
      const { status, text } = await person.open(query());
      expect(status).to.equal(403);
      expect(text).to.contain("is private");
      await person.submit({ decision: "allow" });
      expect(new URL(person.seen.url).searchParams.get("error")).to.equal("access_denied");
    });

    it("a request continues only in the browser in which it began, and with its own form", async () => {
      const stranger = new Person(world.urls[0] ?? "");
      await stranger.open(query());
      const { url } = stranger.seen;
      const other = new Person(world.urls[0] ?? "");
      expect((await other.open(url)).status).to.equal(400);
      await owner.open(query({ prompt: "consent" }));
      const consent = owner.seen.url;
      expect((await owner.submit({ decision: "allow", mark: "x" })).status).to.equal(403);
      const uid = new URL(consent).searchParams.get("interaction") ?? "";
      expect((await other.open(`/oauth2/auth/${uid}`)).status).to.equal(400);
    });

    it("signing in makes a new session, does not reveal which users exist, and is throttled", async () => {
      const person = new Person(world.urls[0] ?? "");
      person.cookies.set("tl_session;/", { value: "fixed".repeat(8), path: "/" });
      await person.open("/login");
      const before = person.cookies.get("tl_session;/")?.value;
      const unknown = await person.signIn({ email: "nobody@example.com", password: "x" });
      const said = /role="alert"[^>]*>([^<]*)</.exec(unknown.text)?.[1];
      const wrong = await person.signIn({ ...world.owner, password: "x" });
      expect(wrong.text).to.contain(said);
      expect([unknown.status, wrong.status]).to.deep.equal([401, 401]);
      await person.signIn(world.owner);
      expect(person.cookies.get("tl_session;/")?.value).to.be.a("string").and.not.to.equal(before);
      const guesser = new Person(world.urls[0] ?? "");
      await guesser.open("/login");
      const tries = [];
      for (let i = 0; i < 12; i++) {
        tries.push((await guesser.signIn({ email: "one@example.com", password: "x" })).status);
      }
      expect(tries).to.deep.equal([...Array(10).fill(401), 429, 429]);
    });

    it("a new password ends the person's other sessions", async () => {
      const { person, email, password } = await newPerson(world);
      const elsewhere = new Person(world.urls[0] ?? "");
      await elsewhere.open("/login");
      await elsewhere.signIn({ email, password });
      expect((await elsewhere.open("/profile/clients")).text).to.contain("Authorized clients");
      await person.open("/profile/password");
      const form = { action: "/profile/password" };
      expect(
        (await person.submit({ current: "no", password: "better horse" }, form)).status,
      ).to.equal(403);
      expect((await person.submit({ current: password, password: "short" }, form)).status).to.equal(
        400,
      );
      await person.submit({ current: password, password: "better horse" }, form);
      expect(person.seen.text).to.contain("your other sessions have ended");
      expect((await elsewhere.open("/profile/clients")).url).to.contain("/login");
      expect((await elsewhere.signIn({ email, password })).status).to.equal(401);
      expect((await elsewhere.signIn({ email, password: "better horse" })).status).to.equal(200);
    });

    it("an invitation makes a new or existing user a member", async () => {
      const invite = async (email: string) => {
        const json = { email, roles: ["Member"] };
        const path = `/accounts/${world.accountId}/members`;
        const { body } = await world.api(path, { method: "POST", json });
        return new URL(body.result.invitation_url);
      };
      const fresh = new Person(world.urls[0] ?? "");
      const { pathname, search } = await invite("fresh@example.com");
      expect((await fresh.open(pathname + search)).text).to.contain("You are invited");
      await fresh.signUp({ password: "correct horse" });
      await until("they see the account", async () => {
        await fresh.open(query({ prompt: "consent" }));
        return fresh.seen.text.includes(world.accountId);
      });
      expect(fresh.seen.url).to.contain("/oauth2/consent");
      expect(fresh.seen.text).to.contain("Member");
      // A client cannot write data that the person may only read.
      const scope = "account.read artifacts.write";
      const code = (await authorize({ prompt: "consent", scope }, fresh)).get("code");
      const { access_token: token } = (await redeem(code)).body;
      const path = `/accounts/${world.accountId}/members`;
      expect((await world.api(path, { token })).status).to.equal(200);
      const json = { email: "x@example.com", roles: ["Member"] };
      expect((await world.api(path, { token, method: "POST", json })).status).to.equal(403);
      expect((await fresh.open(pathname + search)).text).to.contain("invitation is over");

      const { email, password } = await newPerson(world);
      const again = await invite(email);
      const known = new Person(world.urls[0] ?? "");
      await known.open(`/login${again.search}`);
      await known.signIn({ email, password });
      expect((await known.open(query())).url).to.contain("/oauth2/consent");
    });

    it("revoking a client on the page ends its tokens at every gateway", async () => {
      const { access_token: token } = await tokens();
      for (const gateway of [0, 1]) expect(await works(token, gateway)).to.equal(true);
      await owner.open("/profile/clients");
      await owner.submit({ client: client.client_id }, { action: "/profile/clients/revoke" });
      expect(owner.seen.text).to.contain("Revoked.");
      for (const gateway of [0, 1]) expect(await works(token, gateway)).to.equal(false);
      expect((await owner.open(query())).url).to.contain("/oauth2/consent");
    });

    it("a POST without a form is a request without parameters", async () => {
      for (const [path, expected] of [
        ["/oauth2/logout", "/oauth2/logout?"],
        ["/oauth2/auth", "/oauth2/auth?"],
      ]) {
        for (const body of [{}, { body: "{}", headers: { "Content-Type": "application/json" } }]) {
          const answer = await fetch(`${world.urls[0]}${path}`, {
            ...{ method: "POST", redirect: "manual", ...body },
          });
          expect(answer.status, path).to.equal(303);
          expect(answer.headers.get("Location")).to.match(
            new RegExp(`${RegExp.escape(expected ?? "")}$`),
          );
        }
      }
    });

    it("signing out redirects only to addresses that the client registered", async () => {
      const target = "https://bot.example.com/bye";
      const out = await world.makeClient({ post_logout_redirect_uris: [target] });
      const { person } = await newPerson(world);
      const leave = (uri: string, who = person) => {
        const given = { client_id: out.client_id, post_logout_redirect_uri: uri, state: "s" };
        return who.open(`/oauth2/logout?${new URLSearchParams(given)}`);
      };
      expect((await leave("https://evil.example.com/")).status).to.equal(400);
      expect((await leave(target)).text).to.contain("Sign out?");
      await person.submit({ logout: "yes" });
      expect(person.seen.url).to.equal(`${target}?state=s`);
      expect((await person.open("/profile/clients")).url).to.contain("/login");
      // A visitor without a session must choose to continue, so a link from another site redirects nobody.
      const stranger = await leave(target, new Person(world.urls[0] ?? ""));
      expect([stranger.status, new URL(stranger.url).origin]).to.deep.equal([200, world.urls[0]]);
      expect(stranger.text).to.contain(`href="${target}?state=s"`);
      expect(stranger.headers.getSetCookie().join()).to.not.contain("tl_session");
    });
  });

  it("pages forbid frames, scripts and caches; tokens and passwords are in no log", async () => {
    const { headers } = await new Person(world.urls[0] ?? "").open("/login");
    expect(headers.get("content-security-policy"))
      .to.contain("default-src 'none'")
      .and.to.contain("frame-ancestors 'none'")
      .and.not.to.contain("unsafe");
    expect(headers.get("cache-control")).to.equal("no-store");
    expect(headers.get("referrer-policy")).to.equal("no-referrer");
    const cookie = headers.getSetCookie().join();
    expect(cookie).to.contain("HttpOnly").and.to.contain("SameSite=Lax");
    const all = world.logs.join("");
    for (const secret of [/tl_(at|rt|ac)_/, /correct horse/, new RegExp(world.owner.password)]) {
      expect(all).not.to.match(secret);
    }
  });

  it("metadata names the authentication methods of each endpoint, is cacheable, and sets no cookie", async () => {
    const methods = ["client_secret_basic", "client_secret_post", "none"];
    const [base = ""] = world.urls;
    for (const path of ["oauth-authorization-server", "openid-configuration"]) {
      const answer = await fetch(`${base}/.well-known/${path}`);
      expect(await answer.json()).to.deep.include({
        token_endpoint_auth_methods_supported: methods,
        revocation_endpoint_auth_methods_supported: methods,
        introspection_endpoint_auth_methods_supported: methods,
      });
      expect(answer.headers.get("cache-control")).to.equal("public, max-age=3600");
      expect(answer.headers.get("set-cookie")).to.equal(null);
    }
  });

  it("no endpoint for programs sets a cookie", async () => {
    const [base = ""] = world.urls;
    for (const path of ["token", "revoke", "introspect", "userinfo"]) {
      const { headers } = await fetch(`${base}/oauth2/${path}`, {
        method: "POST",
        body: new URLSearchParams({ token: "x", grant_type: "refresh_token" }),
      });
      expect(headers.get("set-cookie"), path).to.equal(null);
    }
    const keys = await fetch(`${base}/.well-known/jwks.json`);
    expect(keys.headers.get("set-cookie")).to.equal(null);
  });

  it("metadata is the same at both well-known paths and at every gateway", async () => {
    const paths = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"];
    const found = await Promise.all(
      paths.flatMap((path) => world.urls.map(async (url) => (await fetch(url + path)).json())),
    );
    for (const other of found) expect(other).to.deep.equal(found[0]);
    expect(found[0]).to.deep.include({
      issuer: world.urls[0],
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
    });
    const keys = await Promise.all(
      world.urls.map(async (url) => (await fetch(`${url}/.well-known/jwks.json`)).json()),
    );
    expect(keys[0]).to.deep.equal(keys[1]);
    expect(JSON.stringify(keys)).not.to.contain('"d"');
    expect((await fetch(`${world.urls[0]}/oauth2/token`)).status).to.equal(405);
  });
});
