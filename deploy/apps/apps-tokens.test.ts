import { createHmac } from "node:crypto";
import { readFile } from "node:fs/promises";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { expect } from "chai";
import { Person, REDIRECT_URI } from "../../gateway/oauth/testing/oauth-world.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";
import { REPOSITORY } from "../../scripts/tools.ts";

const BUNDLE = `
import { createHmac } from "node:crypto";
import { Agent, routeAgentRequest, timingSafeEqual, verifyToken } from "trunkline/agents";

export class Desk extends Agent {
  initialState = { visitors: 0 };
  onConnect() { this.setState({ visitors: this.state.visitors + 1 }); }
  async onRequest(request) { return Response.json(await verifyToken(request)); }
}

const allowed = async (request) => {
  const who = await verifyToken(request.headers.has("authorization") ? request : new URL(request.url).searchParams.get("token"));
  if (who === null) return new Response("Who are you?", { status: 401 });
  if (!who.permissions.includes("artifacts.read")) return new Response("Not you", { status: 403 });
};

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/who") return Response.json(await verifyToken(request));
    if (pathname === "/odd") {
      return Response.json(await Promise.all([undefined, null, "", "x", "tl_" + "0".repeat(32) + "_" + "a".repeat(43), "t".repeat(100_000)].map(verifyToken)));
    }
    if (pathname === "/signed") {
      const expected = createHmac("sha256", "key").update(await request.bytes()).digest("hex");
      return Response.json(timingSafeEqual(expected, request.headers.get("x-signature") ?? ""));
    }
    return (await routeAgentRequest(request, env, { onBeforeConnect: allowed, onBeforeRequest: allowed }))
      ?? new Response("none", { status: 404 });
  },
};
`;

describe("tokens that an app is sent", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    const agents = [{ binding: "Desk", class_name: "Desk" }];
    const { status, body } = await platform.deploy("desk", BUNDLE, { agents });
    expect(status, JSON.stringify(body)).to.equal(200);
  });
  after(() => platform?.[Symbol.asyncDispose]());

  const bearing = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
  const who = async (token: string) =>
    JSON.parse((await platform.ask("desk", "/who", bearing(token))).text);

  async function mint(...permissions: string[]): Promise<{ id: string; value: string }> {
    const permission_groups = permissions.map((id) => ({ id }));
    const policies = [{ effect: "allow", permission_groups }];
    return (await platform.rest("POST", "/tokens", { name: "made", policies })).body.result;
  }

  it("identify their owner and permissions; invalid ones identify nothing", async () => {
    const { id, value } = await mint("artifacts.read", "apps.read");
    const permissions = ["artifacts.read", "apps.read"];
    const { accountId } = platform;
    expect(await who(value)).to.deep.equal({
      ...{ kind: "api", id, accountIds: [accountId] },
      ...{ scopes: permissions, permissions },
    });
    await platform.rest("DELETE", `/tokens/${id}`);
    await until("it is revoked", async () => (await who(value)) === null);
    const odd = JSON.parse((await platform.ask("desk", "/odd")).text);
    expect(odd).to.deep.equal([null, null, null, null, null, null]);
    expect(JSON.parse((await platform.ask("desk", "/who")).text)).to.equal(null);
  });

  it("of a person name the person, the client and the granted scopes, until the person revokes them", async () => {
    const { email, password } = platform.credentials.user;
    const owner = new Person(platform.url);
    await owner.open("/login");
    await owner.submit({ email, password });
    const { client, token, revoke } = await authorize(owner);
    const found = await who(token);
    expect(found).to.deep.include({
      ...{ kind: "oauth", clientId: client, accountIds: [platform.accountId] },
      ...{ scopes: ["openid", "artifacts.read"], permissions: ["artifacts.read"] },
    });
    expect(found.userId).to.match(/^[0-9a-f]{32}$/);
    expect(found.expiresAt).to.be.within(Date.now(), Date.now() + 3_600_000);
    expect(JSON.stringify(found)).to.not.contain(token.slice(-20));
    // An agent gets the same information about the token as the app's own code.
    const inside = await platform.ask("desk", "/agents/desk/a", bearing(token));
    expect(JSON.parse(inside.text)).to.deep.equal(found);
    await revoke();
    await until("it is revoked", async () => (await who(token)) === null);
  });

  it("can be required to open a socket", async () => {
    const good = await mint("artifacts.read");
    const poor = await mint("apps.read");
    const path = "/agents/desk/room";
    const watcher = await platform.watch("desk", `${path}?token=${good.value}`);
    await watcher.shown("the state", () => watcher.states.length > 0);
    watcher.socket.close();
    const answers = [];
    for (const query of ["", "?token=nonsense", `?token=${poor.value}`]) {
      const refused = await platform.watch("desk", path + query).catch((error: Error) => error);
      answers.push(refused instanceof Error ? refused.message : "opened");
    }
    expect(answers).to.deep.equal([
      "Unexpected answer 401",
      "Unexpected answer 401",
      "Unexpected answer 403",
    ]);
  });

  it("open an app to its account's members by the guide's lines", async () => {
    const guide = await readFile(join(REPOSITORY, "docs/guides/apps-and-agents.md"), "utf8");
    const examples = Array.from(guide.matchAll(/```ts\n([\s\S]*?)```/g), ([, text = ""]) => text);
    const lines = examples.find((text) => text.includes("Members only")) ?? "";
    const code = `import { Agent } from "trunkline/agents";
      export class Desk extends Agent { onRequest() { return new Response("in"); } }`;
    const agents = [{ binding: "Desk", class_name: "Desk" }];
    const bundle = `${code}\n${stripTypeScriptTypes(lines)}`;
    expect((await platform.deploy("members", bundle, { agents })).status).to.equal(200);
    const { value } = await mint("apps.read");
    const path = "/agents/desk/a";
    const answers = await Promise.all([
      platform.ask("members", path),
      platform.ask("members", path, bearing(value)),
      platform.ask("members", `${path}?token=${value}`),
    ]);
    expect(answers.map(({ text }) => text)).to.deep.equal(["Members only", "in", "in"]);
  });

  it("timingSafeEqual() compares signatures, of one length or not", async () => {
    const body = "hello";
    const signature = createHmac("sha256", "key").update(body).digest("hex");
    const answers = [];
    for (const given of [signature, signature.slice(1), `${signature.slice(0, -1)}x`, ""]) {
      const asking = { method: "POST", headers: { "x-signature": given }, body };
      answers.push(JSON.parse((await platform.ask("desk", "/signed", asking)).text));
    }
    expect(answers).to.deep.equal([true, false, false, false]);
  });

  /** Registers an OAuth client and grants it all scopes that it requests. */
  async function authorize(person: Person) {
    const scopes = ["openid", "artifacts.read"];
    const made = await platform.rest("POST", "/oauth_clients", {
      ...{ client_name: "Desk", grant_types: ["authorization_code"] },
      ...{ response_types: ["code"], redirect_uris: [REDIRECT_URI], scopes },
      token_endpoint_auth_method: "client_secret_basic",
    });
    expect(made.status, JSON.stringify(made.body)).to.equal(200);
    const { client_id, client_secret } = made.body.result;
    const fields = { client_id, response_type: "code", state: "s", scope: scopes.join(" ") };
    const asked = new URLSearchParams({ ...fields, redirect_uri: REDIRECT_URI });
    await person.open(`/oauth2/auth?${asked}`);
    await person.submit({ decision: "allow", account: [platform.accountId] });
    const code = new URL(person.seen.url).searchParams.get("code") ?? "";
    const post = async (path: string, form: Record<string, string>) => {
      const basic = Buffer.from(`${client_id}:${client_secret}`).toString("base64");
      const headers = { Authorization: `Basic ${basic}` };
      const body = new URLSearchParams(form);
      const answer = await fetch(platform.url + path, { method: "POST", headers, body });
      const text = await answer.text();
      return text ? JSON.parse(text) : {};
    };
    const grant = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI };
    const { access_token: token } = await post("/oauth2/token", grant);
    return { client: client_id, token, revoke: () => post("/oauth2/revoke", { token }) };
  }
});
