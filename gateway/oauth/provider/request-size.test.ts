import { expect } from "chai";
import { LOGOUT_TEXT_CHARS_MAX } from "../../../schemas/account/limits.ts";
import { AUTHORIZATION_QUERY_CHARS_MAX } from "../oauth-router.ts";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
} from "../testing/oauth-world.ts";
import { TOKEN_REQUEST_BYTES_MAX } from "./request-size.ts";

const BYE = "https://bot.example.com/bye";

describe("size of requests to the authorization server", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let base: string;
  let client: TestClient;
  let person: Person;
  before(async () => {
    world = await oauthWorld();
    [base = ""] = world.urls;
    client = await world.makeClient({ post_logout_redirect_uris: [BYE] });
    person = new Person(base);
    await person.open("/login");
    await person.signIn(world.owner);
  });
  after(() => world?.stop());
  afterEach(() => {
    expect(world.logs.filter((line) => line.includes("server failed"))).to.deep.equal([]);
  });

  it("an authorization request may be a form, up to the size limit", async () => {
    const { client_id } = client;
    const fields = {
      client_id,
      response_type: "code",
      redirect_uri: REDIRECT_URI,
      scope: "openid",
    };
    const post = (body: URLSearchParams) =>
      fetch(`${base}/oauth2/auth`, { method: "POST", body, redirect: "manual" });
    const rest = new URLSearchParams({ ...fields, state: "" }).toString().length;
    const state = "s".repeat(AUTHORIZATION_QUERY_CHARS_MAX - rest);
    const { status, headers } = await post(new URLSearchParams({ ...fields, state }));
    expect(status).to.equal(303);
    await person.open(headers.get("location") ?? "");
    expect(person.seen.url).to.contain("/oauth2/consent");
    const refused = await post(new URLSearchParams({ ...fields, state: `${state}s` }));
    expect(refused.status).to.equal(400);
    expect(await refused.text()).to.contain(`${AUTHORIZATION_QUERY_CHARS_MAX} characters`);
  });

  const kept = { scope: "openid account.read", redirect_uri: REDIRECT_URI };
  const error = () => /<strong>([a-z_]+)<\/strong>/.exec(person.seen.text)?.[1];

  it("stored parameters are accepted up to their limit, and refused past it before consent", async () => {
    const rest = JSON.stringify({ nonce: "", ...kept }).length;
    const nonce = "n".repeat(TOKEN_REQUEST_BYTES_MAX - rest);
    await ask({ nonce: `${nonce}n` });
    expect(error()).to.equal("invalid_request");
    // The limit counts the stored form of the parameters (escaped JSON), which is larger than the sent form.
    await ask({ nonce: '"'.repeat(TOKEN_REQUEST_BYTES_MAX / 2) });
    expect(error()).to.equal("invalid_request");
    await ask({ nonce });
    expect(person.seen.url).to.contain("/oauth2/consent");
    await person.submit({ decision: "allow" });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const { client_id, client_secret } = client;
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const fields = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
    const answer = await fetch(`${base}/oauth2/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams(fields),
    });
    const { id_token: token } = (await answer.json()) as { id_token: string };
    const claims = Buffer.from(token.split(".")[1] ?? "", "base64url").toString();
    expect(JSON.parse(claims).nonce).to.equal(nonce);
  });

  it("a sign-out may be requested by a form, and redirects to a registered address", async () => {
    const fields = { client_id: client.client_id, post_logout_redirect_uri: BYE, state: "s" };
    expect((await person.post("/oauth2/logout", fields)).text).to.contain("Sign out?");
    await person.submit({ logout: "yes" });
    expect(person.seen.url).to.equal(`${BYE}?state=s`);
    await person.open("/login");
    await person.signIn(world.owner);
    const { id_token_hint } = await idToken();
    await person.post("/oauth2/logout", { id_token_hint, post_logout_redirect_uri: BYE });
    await person.submit({ logout: "yes" });
    expect(person.seen.url).to.equal(BYE);
    await person.open("/login");
    await person.signIn(world.owner);
    const elsewhere = { ...fields, post_logout_redirect_uri: "https://evil.example.com/" };
    expect((await person.post("/oauth2/logout", elsewhere)).status).to.equal(400);
    const long = { ...fields, state: "s".repeat(AUTHORIZATION_QUERY_CHARS_MAX) };
    expect((await person.post("/oauth2/logout", long)).status).to.equal(400);
  });

  it("the state of a sign-out is accepted up to its limit and refused past it", async () => {
    const state = "s".repeat(LOGOUT_TEXT_CHARS_MAX);
    const leave = (given: string) => {
      const fields = { client_id: client.client_id, post_logout_redirect_uri: BYE, state: given };
      return person.open(`/oauth2/logout?${new URLSearchParams(fields)}`);
    };
    const refused = await leave(`${state}s`);
    expect([refused.status, refused.text.includes("invalid_request")]).to.deep.equal([400, true]);
    expect((await leave(state)).text).to.contain("Sign out?");
    await person.submit({ logout: "yes" });
    expect(person.seen.url).to.equal(`${BYE}?state=${state}`);
  });

  async function idToken() {
    const { client_id, client_secret } = client;
    await ask({ scope: "openid" });
    if (person.seen.url.includes("/consent")) await person.submit({ decision: "allow" });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
    const { redirect_uri } = kept;
    const answer = await fetch(`${base}/oauth2/token`, {
      method: "POST",
      headers: { Authorization: `Basic ${basic}` },
      body: new URLSearchParams({ grant_type: "authorization_code", redirect_uri, code }),
    });
    const { id_token } = (await answer.json()) as { id_token: string };
    return { id_token_hint: id_token };
  }

  function ask(fields: Record<string, string>) {
    const all = { client_id: client.client_id, response_type: "code", ...kept, ...fields };
    return person.open(`/oauth2/auth?${new URLSearchParams(all)}`);
  }
});
