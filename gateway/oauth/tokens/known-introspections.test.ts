import { randomBytes } from "node:crypto";
import { connect as connectTcp } from "node:net";
import { expect } from "chai";
import { Bus } from "../../../actors/runtime/bus/bus.ts";
import { until } from "../../../scripts/testing/until.ts";
import {
  type OAuthWorld,
  oauthWorld,
  Person,
  REDIRECT_URI,
  type TestClient,
  type Wire,
} from "../testing/oauth-world.ts";

describe("KnownIntrospections", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let client: TestClient;
  let tokens: { access_token: string; refresh_token: string };
  let watcher: Bus;
  /** The calls to actors of the observed kinds. */
  let calls: string[] = [];
  before(async () => {
    world = await oauthWorld();
    watcher = await Bus.connect({ url: world.bus.url, name: "watcher" });
    watcher.connection.subscribe("shard.>", {
      callback: (_error, { subject }) => {
        const [, , kind = ""] = subject.split(".");
        if (/^(oauth-|account$)/.test(kind)) calls.push(kind);
      },
    });
    await watcher.connection.flush();
  });
  after(async () => {
    await watcher?.close();
    await world?.stop();
  });
  beforeEach(async () => {
    client = await world.makeClient();
    const owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
    const fields = { client_id: client.client_id, response_type: "code", state: "s" };
    const query = new URLSearchParams({ ...fields, redirect_uri: REDIRECT_URI });
    await owner.open(`/oauth2/auth?${query}`);
    await owner.submit({ decision: "allow", account: [world.accountId] });
    const code = new URL(owner.seen.url).searchParams.get("code") ?? "";
    const form = { grant_type: "authorization_code", redirect_uri: REDIRECT_URI, code };
    tokens = (await post("token", form)).body;
    calls = [];
  });

  const basicOf = (secret = client.client_secret) =>
    `Basic ${Buffer.from(`${client.client_id}:${secret}`).toString("base64")}`;

  async function post(
    path: string,
    fields: Record<string, string>,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: Wire; headers: Record<string, string> }> {
    const answer = await fetch(`${world.urls[0]}/oauth2/${path}`, {
      method: "POST",
      headers: {
        Authorization: basicOf(),
        "Content-Type": "application/x-www-form-urlencoded",
        ...headers,
      },
      body: new URLSearchParams(fields).toString(),
    });
    const text = await answer.text();
    const { date: _date, "x-request-id": _id, ...kept } = Object.fromEntries(answer.headers);
    return { status: answer.status, body: text ? JSON.parse(text) : {}, headers: kept };
  }
  const introspect = (headers = {}, token = tokens.access_token) =>
    post("introspect", { token }, headers);

  it("repeats the answer of oidc-provider, with its headers, and calls no actor", async () => {
    // The first introspection authenticates the client. The response to the second is cached.
    await introspect();
    const first = await introspect();
    expect(first.body.active).to.equal(true);
    calls = [];
    for (let times = 0; times < 3; times++) {
      expect(await introspect()).to.deep.equal(first);
    }
    await watcher.connection.flush();
    expect(calls).to.deep.equal([]);
  });

  it("repeats no answer to another secret, another client, another token or a refresh token", async () => {
    await introspect();
    const other = await world.makeClient();
    expect((await introspect({ Authorization: basicOf("wrong") })).status).to.equal(401);
    const authorization = Buffer.from(`${other.client_id}:${other.client_secret}`);
    const foreign = { Authorization: `Basic ${authorization.toString("base64")}` };
    for (let times = 0; times < 2; times++) {
      expect((await introspect(foreign)).body).to.deep.equal({ active: false });
    }
    const changed = `${tokens.access_token.slice(0, -1)}${tokens.access_token.endsWith("A") ? "B" : "A"}`;
    expect((await introspect({}, changed)).body).to.deep.equal({ active: false });
    await introspect({}, tokens.refresh_token);
    calls = [];
    expect((await introspect({}, tokens.refresh_token)).body.active).to.equal(true);
    await watcher.connection.flush();
    expect(calls).to.include("oauth-grant");
  });

  it("refuses a removed secret, and a revoked token", async () => {
    const path = `/accounts/${world.accountId}/oauth_clients/${client.client_id}`;
    const old = basicOf();
    const { body } = await world.api(`${path}/rotate_secret`, { method: "POST" });
    const now = basicOf(body.result.client_secret);
    for (let times = 0; times < 2; times++) {
      expect((await introspect({ Authorization: old })).body.active).to.equal(true);
      expect((await introspect({ Authorization: now })).body.active).to.equal(true);
    }
    expect((await world.api(`${path}/rotate_secret`, { method: "DELETE" })).status).to.equal(200);
    expect((await introspect({ Authorization: old })).status).to.equal(401);
    expect((await introspect({ Authorization: now })).body.active).to.equal(true);
    await post("revoke", { token: tokens.access_token }, { Authorization: now });
    expect((await introspect({ Authorization: now })).body).to.deep.equal({ active: false });
  });

  it("looks an unknown client up once at each request, where wrong guesses are bounded", async () => {
    const unknown = Array.from({ length: 20 }, () => {
      const id = randomBytes(16).toString("hex");
      return { Authorization: `Basic ${Buffer.from(`${id}:guess`).toString("base64")}` };
    });
    for (const headers of unknown) expect((await introspect(headers)).status).to.equal(401);
    await watcher.connection.flush();
    expect(calls.filter((kind) => kind === "oauth-client")).to.have.length(unknown.length);
  });

  it("answers a form that comes in two pieces, and the next request of the connection", async () => {
    const { host, hostname, port } = new URL(world.urls[0] ?? "");
    const form = new URLSearchParams({ token: tokens.access_token }).toString();
    const head = `POST /oauth2/introspect HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${basicOf()}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${form.length}\r\n\r\n`;
    const socket = connectTcp(Number(port), hostname).setEncoding("latin1").setNoDelay(true);
    let text = "";
    socket.on("data", (piece) => {
      text += piece;
    });
    const answers = async (count: number) => {
      await until("answers", () => text.split('"active":true').length > count);
    };
    for (let times = 1; times <= 3; times++) {
      socket.write(head + form.slice(0, 20));
      await new Promise((resolve) => setImmediate(resolve));
      socket.write(form.slice(20));
      await answers(2 * times - 1);
      socket.write(head + form);
      await answers(2 * times);
    }
    socket.destroy();
  });
});
