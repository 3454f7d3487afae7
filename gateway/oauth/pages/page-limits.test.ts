import { Kvm } from "@nats-io/kv";
import { expect } from "chai";
import { account } from "../../../schemas/account/account.ts";
import {
  ACCOUNTS_PER_USER_MAX,
  LOGIN_WINDOW_MS,
  PASSWORD_CHARS_MIN,
} from "../../../schemas/account/limits.ts";
import { requestLimit } from "../../../schemas/account/request-limit.ts";
import { user } from "../../../schemas/account/user.ts";
import { grantList } from "../../../schemas/oauth/grant-list.ts";
import {
  ACCOUNTS_PER_GRANT_MAX,
  CLIENTS_PER_PAGE,
  CLIENTS_PER_USER_MAX,
} from "../../../schemas/oauth/limits.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  LOGINS_PER_ADDRESS_MAX,
  PASSWORD_CHARS_MAX,
  SIGNUPS_PER_ADDRESS_MAX,
} from "../../account/pages/sign-in.ts";
import { FORM_BYTES_MAX, FORM_FIELDS_MAX } from "../../account/pages/visit.ts";
import { AUTHORIZATIONS_PER_ADDRESS_MAX, SIGN_OUTS_PER_ADDRESS_MAX } from "../oauth-router.ts";
import { ID_TOKEN_MS, INTERACTION_MS } from "../provider/provider-configuration.ts";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type Seen,
  type TestClient,
  type Wire,
} from "../testing/oauth-world.ts";

const ADDRESS = "127.0.0.1";
const id = (number: number) => number.toString(16).padStart(32, "0");

describe("limits of pages", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  before(async () => {
    world = await oauthWorld();
    client = await world.makeClient();
  });
  after(() => world?.stop());

  const query = (changes: Record<string, string> = {}) =>
    `/oauth2/auth?${new URLSearchParams({
      client_id: client.client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      ...changes,
    })}`;
  const stranger = () => new Person(world.urls[0] ?? "");
  /** Counts attempts of other people until only `left` attempts remain. */
  const takeAllBut = async (left: number, key: string, limit: number) => {
    const asked = { limit, windowMs: LOGIN_WINDOW_MS };
    for (;;) {
      const { remaining } = await world.bus.actors.call(requestLimit, key, "take", asked);
      if (remaining <= left) return;
    }
  };

  const passwordOf = (length: number) => "horse correct battery ".repeat(20).slice(0, length);

  it("refuses common passwords", async () => {
    const person = stranger();
    await person.open("/signup");
    const email = "guessable@example.com";
    for (const password of ["password", "PassW0rd", "12345678", "Qwerty123!", "guessable", email]) {
      const { status, text } = await person.submit({ email, password });
      expect([status, text.includes("harder to guess")], password).to.deep.equal([400, true]);
    }
    expect((await person.submit({ email, password: passwordOf(12) })).status).to.equal(200);
  });

  it("accepts passwords within the bounds of their length only", async () => {
    const signup = async (email: string, length: number) => {
      const person = stranger();
      await person.open("/signup");
      const password = passwordOf(length);
      return (await person.submit({ email, password })).status;
    };
    expect(await signup("short@example.com", PASSWORD_CHARS_MIN - 1)).to.equal(400);
    expect(await signup("short@example.com", PASSWORD_CHARS_MIN)).to.equal(200);
    expect(await signup("long@example.com", PASSWORD_CHARS_MAX + 1)).to.equal(400);
    expect(await signup("long@example.com", PASSWORD_CHARS_MAX)).to.equal(200);
    const person = stranger();
    await person.open("/login");
    const password = passwordOf(PASSWORD_CHARS_MAX);
    const long = { email: "long@example.com", password };
    expect((await person.signIn({ ...long, password: `${password}p` })).status).to.equal(401);
    await person.signIn(long);
    expect(person.seen.url).to.contain("/console");
  });

  it("accepts a form up to its size limit", async () => {
    const send = async (bytes: number) => {
      const body = "email=a%40example.com&password=".padEnd(bytes, "p");
      const headers = { "Content-Type": "application/x-www-form-urlencoded" };
      const answer = await fetch(`${world.urls[0]}/login`, { method: "POST", headers, body });
      return [answer.status, (await answer.text()).includes("cannot be read")];
    };
    // The form comes from another page.
    expect(await send(FORM_BYTES_MAX)).to.deep.equal([403, false]);
    expect(await send(FORM_BYTES_MAX + 1)).to.deep.equal([413, true]);
    const withFields = async (count: number) => {
      const body = Array.from({ length: count }, (_, number) => `f${number}=`).join("&");
      const headers = { "Content-Type": "application/x-www-form-urlencoded" };
      return (await fetch(`${world.urls[0]}/login`, { method: "POST", headers, body })).status;
    };
    expect(await withFields(FORM_FIELDS_MAX)).to.equal(403);
    expect(await withFields(FORM_FIELDS_MAX + 1)).to.equal(413);
  });

  it("an authorization request expires after INTERACTION_MS", async () => {
    const person = stranger();
    const before = Date.now();
    const { url } = await person.open(query());
    const after = Date.now();
    const uid = new URL(url).searchParams.get("interaction");
    const bucket = await new Kvm(world.bus.bus.connection).open("state-0");
    // An actor's key is written to the bucket some time after the actor has answered.
    const stored: Wire = await until("it is written", async () =>
      (await bucket.get(`interaction.${uid}`))?.json(),
    );
    // The stored time may be rounded to whole seconds.
    expect(stored.state.expiresAt - INTERACTION_MS).to.be.within(before - 1_000, after + 1_000);
  });

  it("an ID token is valid for ID_TOKEN_MS", async () => {
    const { person } = await newPerson(world);
    const open = await world.makeClient({ scopes: ["openid"], optional_scopes: [] });
    await invited(person);
    await person.open(query({ client_id: open.client_id, scope: "openid" }));
    await person.submit({ decision: "allow" });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const basic = Buffer.from(`${open.client_id}:${open.client_secret}`).toString("base64");
    const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
    const answer = await fetch(`${world.urls[0]}/oauth2/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams(fields),
    });
    const { id_token } = (await answer.json()) as { id_token: string };
    const [, payload = ""] = id_token.split(".");
    const { exp, iat } = JSON.parse(Buffer.from(payload, "base64url").toString());
    expect((exp - iat) * 1_000).to.equal(ID_TOKEN_MS);
  });

  it("a person may choose as many accounts as a grant allows, and not one more", async () => {
    const { person, email } = await newPerson(world);
    await invited(person);
    const { actors } = world.bus;
    const { id: userId } = await actors.call(user, email, "get", {});
    const roles = ["Super Administrator" as const];
    for (let number = 0; number < ACCOUNTS_PER_GRANT_MAX; number++) {
      const owner = { userId, email, roles };
      await actors.call(account, id(number), "open", { name: `Account ${number}`, owner });
      await actors.send(user, email, "joined", { userId, accountId: id(number), roles });
    }
    const all = Array.from({ length: ACCOUNTS_PER_GRANT_MAX }, (_, number) => id(number));
    await until("they see all", async () => {
      await person.open(query());
      return all.every((one) => person.seen.text.includes(one));
    });
    const past = await person.submit({ decision: "allow", account: [...all, world.accountId] });
    expect([past.status, past.text.includes("Choose at most 100 accounts.")]).to.deep.equal([
      400,
      true,
    ]);
    await person.submit({ decision: "allow", account: all });
    expect(person.seen.url).to.contain("code=");
  });

  it("a person may belong to ACCOUNTS_PER_USER_MAX accounts, and cannot be invited to one more", async () => {
    const { person, email } = await newPerson(world);
    const { actors } = world.bus;
    const { id: userId } = await actors.call(user, email, "get", {});
    const roles = ["Member" as const];
    const join = (number: number) =>
      actors.send(user, email, "joined", { userId, accountId: id(number), roles });
    // The person's own account counts too.
    await Promise.all(
      Array.from({ length: ACCOUNTS_PER_USER_MAX - 1 }, (_, number) => join(number)),
    );
    const count = async () => (await actors.call(user, email, "get", {})).accounts.length;
    await until("they belong to all", async () => (await count()) === ACCOUNTS_PER_USER_MAX);
    const { status, text } = await invited(person);
    expect([status, text.includes("500 accounts")]).to.deep.equal([409, true]);
    await actors.send(user, email, "left", { userId, accountId: id(0) });
    await until("they left one", async () => (await count()) < ACCOUNTS_PER_USER_MAX);
    await invited(person);
    await until("they belong to one more", async () => (await count()) === ACCOUNTS_PER_USER_MAX);
  });

  it("a person may allow clients up to the limit, and must revoke one to allow one more", async () => {
    const { person, email } = await newPerson(world);
    await invited(person);
    const { id: userId } = await world.bus.actors.call(user, email, "get", {});
    const accountIds = Array.from({ length: ACCOUNTS_PER_GRANT_MAX }, (_, i) => id(i));
    const consent = { scopes: ["account.read" as const], rejectedScopes: [], accountIds };
    for (let number = 1; number <= CLIENTS_PER_USER_MAX; number++) {
      const allowed = { ...consent, clientId: id(number) };
      await world.bus.actors.call(grantList, userId, "consent", allowed);
    }
    expect(await listed(person))
      .to.have.length(CLIENTS_PER_USER_MAX)
      .and.include(id(1));
    await person.open(query());
    const past = await person.submit({ decision: "allow" });
    expect([past.status, past.text.includes("500 clients")]).to.deep.equal([409, true]);
    const waiting = past.url;
    await world.bus.actors.call(grantList, userId, "revokeClient", { clientId: id(1) });
    expect(waiting).to.contain("/oauth2/consent");
    await person.submit({ decision: "allow" });
    expect(person.seen.url).to.contain("code=");
  });

  it("limits sign-ins, sign-ups and authorizations of one address", async () => {
    const person = stranger();
    await person.open("/signup");
    await takeAllBut(1, `signup-from ${ADDRESS}`, SIGNUPS_PER_ADDRESS_MAX);
    const signup = { email: "last@example.com", password: "correct horse" };
    expect((await person.signUp(signup)).url).to.contain("/console");
    const more = stranger();
    await more.open("/signup");
    const past = await more.submit({ ...signup, email: "past@example.com" });
    expect([past.status, past.text.includes("Too many tries")]).to.deep.equal([429, true]);
    expectRetry(past);

    await more.open("/login");
    await takeAllBut(1, `login-from ${ADDRESS}`, LOGINS_PER_ADDRESS_MAX);
    expect((await more.signIn({ email: "one@example.com", password: "x" })).status).to.equal(401);
    const refused = await more.signIn({ email: "two@example.com", password: "x" });
    expect(refused.status).to.equal(429);
    expectRetry(refused);

    await takeAllBut(1, `authorize-from ${ADDRESS}`, AUTHORIZATIONS_PER_ADDRESS_MAX);
    expect((await more.open(query())).url).to.contain("/login");
    const late = await more.open(query());
    expect(late.status).to.equal(429);
    expect(late.headers.get("content-type")).to.contain("text/html");
    expect(late.text).to.contain("Too many requests");
    expectRetry(late);
  });

  it("limits sign-outs of one address that name a client, known or not, and no others", async () => {
    const somebody = stranger();
    const signOut = (clientId: string) => somebody.open(`/oauth2/logout?client_id=${clientId}`);
    await takeAllBut(1, `sign-out-from ${ADDRESS}`, SIGN_OUTS_PER_ADDRESS_MAX);
    expect((await signOut(id(1))).status).to.equal(400);
    const past = await signOut(id(2));
    expect(past.status).to.equal(429);
    expectRetry(past);
    const header = Buffer.from('{"alg":"none"}').toString("base64url");
    const claims = Buffer.from(JSON.stringify({ aud: id(3) })).toString("base64url");
    // oidc-provider looks up the client that the token names before it verifies the signature. So this unsigned token
    // causes a lookup too.
    const hint = `id_token_hint=${header}.${claims}.`;
    for (const fields of [hint, `client_id=&${hint}`]) {
      expect((await somebody.open(`/oauth2/logout?${fields}`)).status, fields).to.equal(429);
    }
    expect((await somebody.open("/oauth2/logout")).status).to.equal(200);
    const signedOut = "/oauth2/logout/success";
    expect((await somebody.open(`${signedOut}?client_id=${client.client_id}`)).status).to.equal(
      429,
    );
    expect((await somebody.open(signedOut)).status).to.equal(200);
  });

  /** Returns all clients that the person's profile pages list. */
  async function listed(person: Person): Promise<string[]> {
    const clients: string[] = [];
    let next: string | undefined = "/profile/clients";
    while (next !== undefined) {
      const { text } = await person.open(next);
      const found = [...text.matchAll(/name="client" value="([0-9a-f]{32})"/g)];
      expect(found).to.have.length.within(1, CLIENTS_PER_PAGE);
      clients.push(...found.map(([, one = ""]) => one));
      next = /href="(\/profile\/clients\?after=[^"]+)"/.exec(text)?.[1];
    }
    return [...new Set(clients)];
  }

  function expectRetry({ headers }: Seen): void {
    expect(Number(headers.get("retry-after"))).to.be.within(60, LOGIN_WINDOW_MS / 1_000);
  }

  /** Makes the person a member of the first account, which owns the private clients. */
  async function invited(person: Person): Promise<Seen> {
    const { text } = await person.open("/profile/password");
    const [, email = ""] = /autocomplete="username" value="([^"]+)"/.exec(text) ?? [];
    const { body } = await world.api(`/accounts/${world.accountId}/members`, {
      method: "POST",
      json: { email, roles: ["Member"] },
    });
    const { search } = new URL(body.result.invitation_url);
    await person.open(`/login${search}`);
    return person.signIn({ email, password: "correct horse" });
  }
});
