import { expect } from "chai";
import {
  newPerson,
  type OAuthWorld,
  oauthWorld,
  Person,
  type Wire,
} from "../oauth/testing/oauth-world.ts";

const HEADER = { "X-Trunkline-Session": "use" };

describe("REST by the session of a browser", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let url: string;
  let owner: string;
  before(async () => {
    world = await oauthWorld();
    url = world.urls[0] ?? "";
    owner = await cookieOf(world.owner);
  });
  after(() => world?.stop());

  async function cookieOf(who: { email: string; password: string }): Promise<string> {
    const person = new Person(url);
    await person.open("/login");
    await person.signIn(who);
    return cookieHeader(person);
  }

  function cookieHeader(person: Person): string {
    const all = [...person.cookies].map(([name, { value }]) => `${name.split(";")[0]}=${value}`);
    return all.join("; ");
  }

  async function ask(
    path: string,
    {
      method = "GET",
      headers = {} as Record<string, string>,
      cookie = owner,
      json = undefined as unknown,
    } = {},
  ) {
    const response = await fetch(`${url}/v4${path}`, {
      method,
      headers: {
        Cookie: cookie,
        ...(json !== undefined && { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    });
    const body = (await response.json()) as Wire;
    return { status: response.status, headers: response.headers, body };
  }

  const own = (more: Record<string, string> = {}) => ({ ...HEADER, Origin: url, ...more });

  it("opens what the person's roles open, and names the person", async () => {
    expect((await ask("/user", { headers: HEADER })).body.result.email).to.equal(world.owner.email);
    const { body } = await ask("/accounts", { headers: HEADER });
    expect(body.result.map(({ id }: { id: string }) => id)).to.deep.equal([world.accountId]);
    const name = {
      name: "by session",
      policies: [{ effect: "allow", permission_groups: [{ id: "account.read" }] }],
    };
    const path = `/accounts/${world.accountId}/tokens`;
    const made = await ask(path, { method: "POST", headers: own(), json: name });
    expect(made.status).to.equal(200);
    const { value } = made.body.result;
    const who = await world.api("/user", { token: value });
    expect(who.body.result.email).to.equal(world.owner.email);
  });

  it("does not open another's account, nor what a role lacks", async () => {
    const { email } = await newPerson(world);
    const cookie = await cookieOf({ email, password: "correct horse" });
    const path = `/accounts/${world.accountId}`;
    expect((await ask(path, { headers: HEADER, cookie })).status).to.equal(404);
    expect((await ask(`${path}/tokens`, { headers: HEADER, cookie })).status).to.be.oneOf([
      403, 404,
    ]);
    const client = await world.api(`${path}/members`, {
      method: "POST",
      json: { email: "reader@example.com", roles: ["Member"] },
    });
    const reader = new Person(url);
    await reader.open(client.body.result.invitation_url);
    await reader.signUp({ password: "correct horse" });
    const readerCookie = cookieHeader(reader);
    expect(
      (await ask(`${path}/tokens`, { headers: HEADER, cookie: readerCookie })).status,
    ).to.equal(200);
    const json = { email: "x@example.com", roles: ["Member"] };
    const invited = await ask(`${path}/members`, {
      method: "POST",
      headers: own(),
      json,
      cookie: readerCookie,
    });
    expect(invited.status).to.equal(403);
  });

  const refused: [string, string, Record<string, string>, number][] = [
    ["a read without the header", "GET", {}, 401],
    ["a form of another site", "POST", { Origin: "https://evil.example" }, 401],
    ["a form of our own site", "POST", { Origin: "self" }, 401],
    ["another value of the header", "POST", { "X-Trunkline-Session": "1", Origin: "self" }, 401],
    ["a script of another origin", "POST", { ...HEADER, Origin: "https://evil.example" }, 403],
    ["a script of an app's port", "POST", { ...HEADER, Origin: "http://localhost:8800" }, 403],
    [
      "a script of another port of our host",
      "POST",
      { ...HEADER, Origin: "http://127.0.0.1:1" },
      403,
    ],
    ["an origin that is hidden", "POST", { ...HEADER, Origin: "null" }, 403],
    ["a write without an origin", "POST", HEADER, 403],
    ["a sub-domain of our site", "GET", { ...HEADER, "Sec-Fetch-Site": "same-site" }, 403],
    ["a read from another site", "GET", { ...HEADER, "Sec-Fetch-Site": "cross-site" }, 403],
    ["an address typed by a person", "GET", { ...HEADER, "Sec-Fetch-Site": "none" }, 403],
    ["a read that names another origin", "GET", { ...HEADER, Origin: "https://evil.example" }, 403],
  ];
  for (const [what, method, headers, status] of refused) {
    it(`refuses ${what}`, async () => {
      const sent = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, value === "self" ? url : value]),
      );
      const json =
        method === "POST" ? { email: "evil@example.com", roles: ["Administrator"] } : undefined;
      const path = `/accounts/${world.accountId}/members`;
      const answer = await ask(path, { method, headers: sent, json });
      expect(answer.status).to.equal(status);
      expect(answer.headers.get("access-control-allow-origin")).to.equal(null);
    });
  }

  it("grants no preflight request, so that no other origin can send the header", async () => {
    const response = await fetch(`${url}/v4/accounts`, {
      method: "OPTIONS",
      headers: {
        Origin: "https://evil.example",
        "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "x-trunkline-session",
      },
    });
    for (const name of ["origin", "headers", "credentials"]) {
      expect(response.headers.get(`access-control-allow-${name}`), name).to.equal(null);
    }
  });

  it("opens nothing with a made-up cookie, nor once the session has ended", async () => {
    const cookie = `tl_session=${"x".repeat(43)}`;
    expect((await ask("/user", { headers: HEADER, cookie })).status).to.equal(401);
    const other = await cookieOf(world.owner);
    const list = await ask("/user/sessions", { headers: HEADER, cookie: other });
    const [latest] = list.body.result;
    expect(latest.is_current).to.equal(true);
    // Ends this session from another browser.
    const ended = await ask(`/user/sessions/${latest.id}`, { method: "DELETE", headers: own() });
    expect(ended.status).to.equal(200);
    expect((await ask("/user", { headers: HEADER, cookie: other })).status).to.equal(401);
    const again = await ask(`/user/sessions/${latest.id}`, { method: "DELETE", headers: own() });
    expect(again.status).to.equal(404);
  });

  it("shows and ends no session to a token, not even to one of the person's own", async () => {
    const [one] = (await ask("/user/sessions", { headers: HEADER })).body.result;
    const json = {
      name: "all of the account",
      policies: [{ effect: "allow", permission_groups: [{ id: "account.write" }] }],
    };
    const path = `/accounts/${world.accountId}/tokens`;
    const made = await ask(path, { method: "POST", headers: own(), json });
    const { value: token } = made.body.result;
    for (const [sessions, method] of [
      ["/user/sessions", "GET"],
      [`/user/sessions/${one.id}`, "DELETE"],
    ] as const) {
      expect((await world.api(sessions, { method, token })).status, method).to.equal(403);
    }
    expect((await ask("/user", { headers: HEADER })).status).to.equal(200);
  });

  it("neither lists nor ends another person's sessions", async () => {
    const { email } = await newPerson(world);
    const cookie = await cookieOf({ email, password: "correct horse" });
    const mine = await ask("/user/sessions", { headers: HEADER });
    const theirs = await ask("/user/sessions", { headers: HEADER, cookie });
    const ids = ({ body }: typeof mine) => body.result.map(({ id }: { id: string }) => id);
    expect(ids(theirs)).to.not.have.members(ids(mine)).and.not.be.empty;
    const [id] = ids(mine);
    const path = `/user/sessions/${id}`;
    const ended = await ask(path, { method: "DELETE", headers: own(), cookie });
    expect(ended.status).to.equal(404);
    expect((await ask("/user", { headers: HEADER })).status).to.equal(200);
  });

  it("a person's own sessions need no permission in an account", async () => {
    const invited = await world.api(`/accounts/${world.accountId}/members`, {
      method: "POST",
      json: { email: "clients@example.com", roles: ["OAuth Client Write"] },
    });
    const person = new Person(url);
    await person.open(invited.body.result.invitation_url);
    await person.signUp({ password: "correct horse" });
    const cookie = cookieHeader(person);
    const [own] = (await ask("/user/sessions", { headers: HEADER, cookie })).body.result;
    expect(own.is_current).to.equal(true);
    const path = `/user/sessions/${own.id}`;
    const headers = { ...HEADER, Origin: url };
    expect((await ask(path, { method: "DELETE", headers, cookie })).status).to.equal(200);
    expect((await ask("/user", { headers: HEADER, cookie })).status).to.equal(401);
  });

  it("every member can leave an account, except the last Super Administrator and by a token", async () => {
    const path = `/user/accounts/${world.accountId}`;
    const leave = (cookie: string) => ask(path, { method: "DELETE", headers: own(), cookie });
    const invited = await world.api(`/accounts/${world.accountId}/members`, {
      method: "POST",
      json: { email: "leaver@example.com", roles: ["OAuth Client Write"] },
    });
    const person = new Person(url);
    await person.open(invited.body.result.invitation_url);
    await person.signUp({ password: "correct horse" });
    const cookie = cookieHeader(person);
    const clients = () =>
      ask(`/accounts/${world.accountId}/oauth_clients`, { headers: HEADER, cookie });
    expect((await clients()).status).to.equal(200);
    expect((await world.api(path, { method: "DELETE" })).status).to.equal(403);
    const left = await leave(cookie);
    expect([left.status, left.body.result]).to.deep.equal([200, { id: world.accountId }]);
    expect((await clients()).status).to.equal(404);
    expect((await leave(cookie)).status).to.equal(404);
    const last = await leave(owner);
    expect(last.status).to.equal(409);
    expect(last.body.errors[0].message).to.contain("give this role to another member first");
  });

  it("a token in the header counts more than the cookie beside it", async () => {
    const headers = { ...own(), Authorization: "Bearer tl_none" };
    expect((await ask("/user", { headers })).status).to.equal(401);
  });

  it("sign-in leads to a page of the console and nowhere else", async () => {
    for (const [next, led] of [
      ["/console/x?y=1", "/console/x?y=1"],
      ["https://evil.example/console", "/console"],
      ["//evil.example", "/console"],
      ["/console/..//evil.example", "/console"],
      ["/console\\..\\..\\evil", "/console"],
      ["/consoles", "/console"],
      ["/profile", "/console"],
    ] as const) {
      const person = new Person(url);
      await person.open(`/login?${new URLSearchParams({ next })}`);
      await person.signIn(world.owner);
      expect(person.seen.url, next).to.equal(url + led);
      expect(person.seen.status).to.equal(200);
    }
  });

  it("the page of the console has a strict policy, and asks for sign-in without a session", async () => {
    const person = new Person(url);
    await person.open("/console/a/b?c=d");
    expect(person.seen.url).to.contain(`/login?next=${encodeURIComponent("/console/a/b?c=d")}`);
    await person.signIn(world.owner);
    expect(person.seen.url).to.equal(`${url}/console/a/b?c=d`);
    const policy = person.seen.headers.get("content-security-policy") ?? "";
    expect(policy).to.contain("default-src 'none'").and.to.contain("frame-ancestors 'none'");
    expect(policy).to.contain("require-trusted-types-for 'script'");
    // The policy names the program's folder, because apps serve their own scripts on the same origin.
    expect(policy).to.contain(`script-src ${url}/console/files/;`);
    expect(policy.replaceAll(`${url}/console/files/`, "")).to.not.match(/unsafe|https?:|\*/);
    expect(person.seen.text).to.not.match(/<script(?![^>]* src=)/);
  });
});
