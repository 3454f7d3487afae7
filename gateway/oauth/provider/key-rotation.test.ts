import { createServer, type Server } from "node:http";
import { expect } from "chai";
import express from "express";
import * as oidc from "openid-client";
import { pino } from "pino";
import { user } from "../../../schemas/account/user.ts";
import { KEY_LEAD_MS } from "../../../schemas/oauth/limits.ts";
import { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import { freePort } from "../../../scripts/free-port.ts";
import { type MemoryActors, memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryLive } from "../../testing/memory-live.ts";
import { newClientSecret } from "../clients/client-secret.ts";
import { oauthRouter } from "../oauth-router.ts";
import { authorizationPath } from "../testing/client-calls.ts";
import { OAUTH_ACTORS, Person, REDIRECT_URI, type Wire } from "../testing/oauth-world.ts";
import { KEYS_CHECK_MS } from "./live-provider.ts";
import { KEY_SIGNS_MS } from "./signing-keys.ts";

const BYE = "https://bot.example.com/bye";
const CLIENT_ID = "c".repeat(32);
const PERSON = { email: "one@example.com", password: "correct horse" };
/** The time from the issue of the first tokens until the next key begins to sign. */
const BEFORE_MS = 60_000;
const silent = pino({ level: "silent" });

describe("rotation of signing keys", function () {
  this.timeout(120_000);
  let now: number;
  let actors: MemoryActors;
  let base: string;
  let server: Server;
  let stopping: AbortController;
  beforeEach(async () => {
    // oidc-provider reads the time from the real clock. The test's clock starts earlier, so that it equals the real
    // clock when the tokens are issued.
    now = Date.now() - KEY_SIGNS_MS - KEY_LEAD_MS + BEFORE_MS;
    actors = memoryActors({ actors: OAUTH_ACTORS, now: () => now });
    stopping = new AbortController();
    const port = await freePort();
    base = `http://127.0.0.1:${port}`;
    const router = oauthRouter({
      actors,
      live: new MemoryLive(),
      logger: silent,
      config: { publicUrl: base, requestsPerWindow: 0 },
      now: () => now,
      stopping: stopping.signal,
    });
    const app = express().use((_request, response, next) => {
      response.locals.logger = silent;
      next();
    });
    server = createServer(app.use(router)).listen(port, "127.0.0.1");
  });
  afterEach(() => {
    stopping.abort();
    server.closeAllConnections();
    server.close();
  });

  it("keeps earlier tokens, codes and started requests valid", async () => {
    const [old = ""] = await kids();
    now += KEY_SIGNS_MS;
    await until("the next key is shown", async () => (await kids()).length === 2);
    const [, next = ""] = await kids();
    const person = new Person(base);
    await person.open("/signup");
    await person.signUp(PERSON);
    // Opens their own account.
    await person.open("/profile/clients");
    const library = await discovered(await makeClient());
    now += KEY_LEAD_MS - BEFORE_MS;
    const before = await given(person, library);
    expect(kidOf(before)).to.equal(old);
    await person.open(authorizationPath({ client_id: CLIENT_ID, client_secret: "" }, ASKED));
    expect(person.seen.url).to.contain("/oauth2/consent");

    now += BEFORE_MS;
    await until("the next key signs", async () => {
      now += KEYS_CHECK_MS / 10;
      return (await kids())[0] === next;
    });
    expect(await kids()).to.deep.equal([next, old]);
    // After the change of keys, the open page still works and the person is still signed in.
    await person.submit({ decision: "allow" });
    const after = await redeemed(person, library);
    expect(kidOf(after)).to.equal(next);
    expect((await person.open("/profile/clients")).url).to.contain("/profile/clients");

    const { sub } = before.claims() ?? { sub: "" };
    const { access_token: token, refresh_token = "", id_token = "" } = before;
    expect(await oidc.fetchUserInfo(library, token, sub)).to.include({ sub });
    expect(await oidc.tokenIntrospection(library, token)).to.include({ active: true });
    const refreshed = await oidc.refreshTokenGrant(library, refresh_token);
    expect([kidOf(refreshed), refreshed.claims()?.sub]).to.deep.equal([next, sub]);
    const hint = new URLSearchParams({ id_token_hint: id_token, post_logout_redirect_uri: BYE });
    await person.open(`/oauth2/logout?${hint}`);
    await person.submit({ logout: "yes" });
    expect(person.seen.url).to.equal(BYE);
  });

  const ASKED = { scope: "openid account.read", prompt: "consent" };
  type Tokens = Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>;

  async function kids(): Promise<string[]> {
    const answer = await fetch(`${base}/.well-known/jwks.json`);
    return ((await answer.json()) as Wire).keys.map(({ kid }: { kid: string }) => kid);
  }

  async function given(person: Person, library: oidc.Configuration): Promise<Tokens> {
    await person.open(authorizationPath({ client_id: CLIENT_ID, client_secret: "" }, ASKED));
    await person.submit({ decision: "allow" });
    return redeemed(person, library);
  }

  /**
   * Exchanges the code for tokens. The client library finds the key by its id and verifies the signature of the ID
   * token.
   */
  function redeemed(person: Person, library: oidc.Configuration): Promise<Tokens> {
    return oidc.authorizationCodeGrant(library, new URL(person.seen.url), {
      idTokenExpected: true,
    });
  }

  async function makeClient(): Promise<string> {
    const [account] = (await actors.call(user, PERSON.email, "get", {})).accounts;
    const { text, hash, lastFour } = newClientSecret();
    await actors.call(oauthClient, CLIENT_ID, "create", {
      accountId: account?.accountId ?? "",
      by: { type: "system", id: "" },
      settings: {
        clientName: "Build Bot",
        grantTypes: ["authorization_code", "refresh_token"],
        responseTypes: ["code"],
        redirectUris: [REDIRECT_URI],
        postLogoutRedirectUris: [BYE],
        scopes: ["openid", "account.read"],
        optionalScopes: [],
        tokenEndpointAuthMethod: "client_secret_basic",
        allowedCorsOrigins: [],
      },
      secret: { hash, lastFour },
      pace: { pollMs: 60_000, windowMs: 60_000 },
    });
    return text;
  }

  async function discovered(secret: string): Promise<oidc.Configuration> {
    const execute = [oidc.allowInsecureRequests, oidc.enableNonRepudiationChecks];
    const method = oidc.ClientSecretBasic(secret);
    return oidc.discovery(new URL(base), CLIENT_ID, undefined, method, { execute });
  }
});

function kidOf({ id_token = "" }: { id_token?: string }): string {
  const [head = ""] = id_token.split(".");
  return JSON.parse(Buffer.from(head, "base64url").toString()).kid;
}
