import { createHmac } from "node:crypto";
import { expect } from "chai";
import {
  AGENT_BYTES_PER_ACCOUNT,
  AGENT_NAME_CHARS_MAX,
  AGENT_ROOM_BYTES,
  AGENTS_PER_ACCOUNT,
  APP_REQUEST_BYTES_MAX,
} from "../../schemas/apps/limits.ts";
import { AppPlatform } from "../../scripts/testing/app-platform.ts";
import { until } from "../../scripts/testing/until.ts";

const BUNDLE = `
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";

export class RepoAgent extends Agent {
  initialState = { events: 0, last: null };
  onStart() {
    this.sql\`CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, body TEXT)\`;
  }
  async onRequest(request) {
    if (request.method === "GET") {
      return Response.json({ state: this.state, rows: this.sql\`SELECT id, body FROM events\` });
    }
    const id = request.headers.get("x-github-delivery") ?? "none";
    const body = await request.text();
    this.sql\`INSERT INTO events VALUES (\${id}, \${body})\`;
    const [{ count }] = this.sql\`SELECT count(*) AS count FROM events\`;
    this.setState({ events: count, last: id });
    return Response.json({ events: count });
  }
  onMessage(connection, message) {
    if (message.startsWith("flood")) {
      const frame = "x".repeat(100_000);
      for (let index = 0; index < 100; index++) connection.send(frame);
    } else connection.send("echo " + message);
  }
  onClose(connection, code) {
    this.setState({ ...this.state, last: "closed " + code });
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    switch (pathname) {
      case "/version": return new Response(VERSION);
      case "/headers": return Response.json([...request.headers]);
      case "/page": return new Response("<h1>page</h1>", {
        headers: { "content-type": "text/html", "set-cookie": "app=1", location: "/next" },
      });
      case "/size": return new Response(String((await request.arrayBuffer()).byteLength));
      case "/secret": return new Response(env.TOKEN + " " + env.PLAIN);
      case "/print": console.warn("printed", { a: 1 }); return new Response("ok");
      case "/throw": throw new Error("inside of the app");
      case "/refuse-sockets": return new Response("no", { status: 401 });
    }
    return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
  },
};
`;
const bundle = (version: string) => `const VERSION = ${JSON.stringify(version)};\n${BUNDLE}`;
const agents = [{ binding: "RepoAgent", class_name: "RepoAgent" }];
const SECRET = "webhook secret";

describe("apps", function () {
  this.timeout(300_000);
  let platform: AppPlatform;
  before(async () => {
    platform = await AppPlatform.start();
    const secrets = { TOKEN: "first", HOOK: SECRET };
    for (const [name, value] of Object.entries(secrets)) {
      const put = await platform.rest("PUT", `/apps/hooks/secrets/${name}`, { value });
      expect(put.status).to.equal(200);
    }
    const deployed = await platform.deploy("hooks", bundle("one"), {
      agents,
      vars: { PLAIN: "text" },
      secrets: { required: ["TOKEN"] },
      webhooks: [
        {
          path: "/in/github",
          provider: "github",
          secret: "HOOK",
          agent: "RepoAgent",
          entity: { body: "/repository/full_name" },
        },
      ],
    });
    expect(deployed.body.errors).to.deep.equal([]);
    expect(deployed.body.result.serving_version).to.equal(1);
  });
  after(() => platform[Symbol.asyncDispose]());
  const text = async (path: string) => (await platform.ask("hooks", path)).text;

  it("are served below the platform's address without cookies, and sandboxed", async () => {
    const { headers, status } = await platform.ask("hooks", "/page");
    expect(status).to.equal(200);
    expect(headers["set-cookie"]).to.equal(undefined);
    expect(headers["content-security-policy"]).to.equal("sandbox");
    expect(headers.location).to.equal(`/apps/${platform.accountId}/hooks/next`);
    const asked = await platform.ask("hooks", "/headers", { headers: { cookie: "ours=1" } });
    expect(asked.text).to.not.include("ours");
  });

  it("are served at their own origin, with their own cookies and all paths", async () => {
    const own = { ownOrigin: true };
    const { headers } = await platform.ask("hooks", "/page", {}, own);
    expect(headers["set-cookie"]).to.deep.equal(["app=1"]);
    expect(headers["content-security-policy"]).to.equal(undefined);
    const asked = await platform.ask("hooks", "/headers", { headers: { cookie: "app=1" } }, own);
    expect(asked.text).to.include("app=1");
    for (const path of ["/healthz", "/v4/openapi.json", "/login", "/metrics"]) {
      expect((await platform.ask("hooks", path, {}, own)).text, path).to.equal("not here");
    }
    expect((await platform.ask("nobody", "/", {}, own)).status).to.equal(404);
  });

  it("accept a request of the limit and refuse a larger one", async () => {
    const most = Buffer.alloc(APP_REQUEST_BYTES_MAX, "x");
    const taken = await platform.ask("hooks", "/size", { method: "POST", body: most });
    expect(taken.text).to.equal(String(APP_REQUEST_BYTES_MAX));
    const more = Buffer.alloc(APP_REQUEST_BYTES_MAX + 1, "x");
    const refused = await platform.ask("hooks", "/size", { method: "POST", body: more });
    expect(refused.status).to.equal(413);
  });

  it("accept a request whose client offers another protocol", async () => {
    const headers = { connection: "upgrade", upgrade: "h2c" };
    const taken = await platform.ask("hooks", "/size", { method: "POST", headers, body: "abc" });
    expect(taken.text).to.equal("3");
  });

  it("have vars and secrets, which apply from the next request; no client can read a secret back", async () => {
    expect(await text("/secret")).to.equal("first text");
    await platform.rest("PUT", "/apps/hooks/secrets/TOKEN", { value: "second" });
    await until("the new secret is there", async () => (await text("/secret")) === "second text");
    const shown = JSON.stringify((await platform.rest("GET", "/apps/hooks")).body);
    expect(shown).to.include('"TOKEN"').and.not.include("second");
  });

  it("print to a log, which clients can follow, and which shows failures", async () => {
    const logs = async (query: string) =>
      (await platform.rest("GET", `/apps/hooks/logs?${query}`)).body.result;
    const last = (await logs("limit=1"))[0]?.id ?? 0;
    const waiting = logs(`after=${last}&wait_seconds=20`);
    await text("/print");
    const [line] = await waiting;
    expect(line).to.deep.include({ level: "warn", agent: null });
    expect(line.text).to.include("printed").and.include("a: 1");
    const failed = await platform.ask("hooks", "/throw");
    expect(failed.status).to.equal(500);
    expect(failed.text).to.not.include("inside of the app");
    await until("the fault is in the log", async () =>
      JSON.stringify(await logs("limit=20")).includes("inside of the app"),
    );
  });

  it("keep serving with the old version when the next one does not start", async () => {
    for (const broken of ["export default {", 'throw new Error("at start");']) {
      const { status, body } = await platform.deploy("hooks", broken);
      expect(status, broken).to.equal(422);
      expect(body.errors[0].message, broken).to.include('Cannot deploy app "hooks"');
    }
    const lacking = await platform.deploy("hooks", "export default { fetch() {} }", { agents });
    expect(lacking.body.errors[0].message).to.include("RepoAgent");
    expect(await text("/version")).to.equal("one");
  });

  it("verify webhooks that are declared, answer 202 at once, and deliver each once", async () => {
    const body = JSON.stringify({ repository: { full_name: "Octo/Cat" } });
    const signature = (text: string) =>
      `sha256=${createHmac("sha256", SECRET).update(text).digest("hex")}`;
    const send = (id: string, signed = signature(body)) =>
      platform.ask("hooks", "/in/github", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "x-github-event": "push",
          "x-github-delivery": id,
          "x-hub-signature-256": signed,
        },
        body,
      });
    expect((await send("d1", signature("other"))).status).to.equal(401);
    for (const id of ["d1", "d2", "d1", "d3", "d2"]) expect((await send(id)).status).to.equal(202);
    const path = "/agents/repo-agent/octo-cat";
    const seen = async () => JSON.parse(await text(path));
    await until("all are delivered", async () => (await seen()).state.events === 3);
    const ids = (await seen()).rows.map(({ id }: { id: string }) => id);
    expect(ids).to.deep.equal(["d1", "d2", "d3"]);
    const log = "/apps/hooks/agents/RepoAgent/octo-cat/deliveries";
    await until("the log says so", async () => {
      const { result } = (await platform.rest("GET", log)).body;
      return (
        result.length === 3 && result.every((one: { status: string }) => one.status === "delivered")
      );
    });
    expect((await platform.ask("hooks", "/in/github")).headers.allow).to.equal("POST");
  });

  it("appear in their gateway's metrics, without their paths", async () => {
    await platform.ask("hooks", "/version");
    const line = 'trunkline_http_requests_total{method="GET",route="app",status="200"}';
    await until("it is counted", async () => (await platform.instance.metrics()).includes(line));
  });

  it("are refused for an unknown key, with the nearest known name", async () => {
    const unknown = { agnets: [], agents: [{ binding: "A", clas_name: "A" }] };
    const { status, body } = await platform.deploy("unknown", bundle("none"), unknown as object);
    expect(status).to.equal(400);
    const told = body.errors.map(({ message }: { message: string }) => message).join("\n");
    expect(told).to.include("is agents meant?").and.include("is class_name meant?");
  });

  it("leave nothing in the list if refused for an invalid configuration", async () => {
    const config = { name: "hooks", compatibility_date: "2026-11-20" };
    const refused = await platform.rest("PUT", "/apps/other", { config, bundle: bundle("none") });
    expect(refused.status).to.equal(400);
    expect(refused.body.errors[0].message).to.include('its configuration is that of "hooks"');
    const { result } = (await platform.rest("GET", "/apps")).body;
    expect(result.map(({ name }: { name: string }) => name)).to.not.include("other");
  });

  it("send sockets their agent's state, in the frames of published clients", async () => {
    const watcher = await platform.watch("hooks", "/agents/repo-agent/room?_pk=me");
    await watcher.shown("three frames", ({ length }) => length === 3);
    expect(watcher.frames.map((frame) => JSON.parse(frame).type)).to.deep.equal([
      "cf_agent_identity",
      "cf_agent_state",
      "cf_agent_mcp_servers",
    ]);
    const headers = { "x-github-delivery": "e1" };
    await platform.ask("hooks", "/agents/repo-agent/room", { method: "POST", headers, body: "x" });
    await watcher.shown("the new state", () => watcher.states.length === 2);
    expect(watcher.states).to.deep.equal([
      { events: 0, last: null },
      { events: 1, last: "e1" },
    ]);
    for (let index = 0; index < 50; index++) watcher.socket.send(String(index));
    await watcher.shown("all echoes", (frames) => frames.at(-1) === "echo 49");
    const echoes = watcher.frames.filter((frame) => frame.startsWith("echo"));
    expect(echoes).to.deep.equal(Array.from({ length: 50 }, (_, index) => `echo ${index}`));
    watcher.socket.close(4001, "done");
    await until("the agent heard of the close", async () =>
      (await text("/agents/repo-agent/room")).includes('"closed 4001"'),
    );
  });

  it("disconnect a slow reader, and continue with the others", async () => {
    const path = "/agents/repo-agent/slow";
    const slow = await platform.watch("hooks", path);
    const other = await platform.watch("hooks", path);
    slow.socket.send("flood");
    slow.socket.pause();
    await until("the agent heard of it", async () => (await text(path)).includes('"closed'));
    other.socket.send("still here");
    await other.shown("an answer", (frames) => frames.includes("echo still here"));
    other.socket.close();
    slow.socket.terminate();
  });

  it("refuse a socket with the response of their router", async () => {
    for (const [path, status] of [
      ["/refuse-sockets", 401],
      ["/agents/nobody/x", 400],
      ["/elsewhere", 404],
    ]) {
      const failure = await platform.watch("hooks", String(path)).catch((error) => error);
      expect(failure.message, String(path)).to.equal(`Unexpected answer ${status}`);
    }
  });

  it("refuse a socket without an agent, and do not reveal the errors of their code", async () => {
    const refused = (path: string) =>
      platform.watch("hooks", path).then(
        ({ socket }) => socket.terminate(),
        ({ message }: Error) => message,
      );
    for (const [path, status] of [
      ["/agents/nobody/x", 400],
      [`/agents/repo-agent/${"n".repeat(AGENT_NAME_CHARS_MAX + 1)}`, 400],
      [`/agents/repo-agent/${"%F0%9F%98%80".repeat(100)}`, 400],
      ["/agents/repo-agent/%ff", 400],
      ["/throw", 500],
    ] as const) {
      expect(await refused(path), path).to.equal(`Unexpected answer ${status}`);
    }
    const headers = {
      connection: "upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    };
    const told = await platform.ask("hooks", "/throw", { headers });
    expect(told.text).to.equal("Cannot answer: the app's code failed");
  });

  it("switch versions and back without losing a socket or agents' data", async () => {
    const path = "/agents/repo-agent/kept";
    const watcher = await platform.watch("hooks", path);
    const post = (id: string) =>
      platform.ask("hooks", path, {
        method: "POST",
        headers: { "x-github-delivery": id },
        body: "x",
      });
    await post("k1");
    const { result } = (await platform.deploy("hooks", bundle("two"), { agents })).body;
    await until("the new version serves", async () => (await text("/version")) === "two");
    await post("k2");
    await watcher.shown("the state of the new version", () =>
      JSON.stringify(watcher.states.at(-1)).includes("k2"),
    );
    const back = await platform.rest("POST", "/apps/hooks/rollback", {});
    expect(back.body.result.serving_version).to.be.below(result.serving_version);
    await until("the old version serves", async () => (await text("/version")) === "one");
    await post("k3");
    await watcher.shown("the state of the old version", () =>
      JSON.stringify(watcher.states.at(-1)).includes("k3"),
    );
    expect(watcher.socket.readyState).to.equal(1);
    watcher.socket.close();
  });

  it("are deleted with their agents' data", async () => {
    await platform.rest("PUT", "/apps/brief/secrets/HOOK", { value: SECRET });
    await platform.deploy("brief", bundle("one"), {
      agents,
      webhooks: [
        {
          path: "/in/:entity",
          provider: "hmac",
          secret: "HOOK",
          agent: "RepoAgent",
          entity: { path: true },
          hmac: { header: "x-signature" },
        },
      ],
    });
    const path = "/agents/repo-agent/x";
    await platform.ask("brief", path, { method: "POST", body: "x" });
    const event = await platform.ask("brief", "/in/x", {
      method: "POST",
      headers: { "x-signature": createHmac("sha256", SECRET).update("{}").digest("hex") },
      body: "{}",
    });
    expect(event.status).to.equal(202);
    const usage = async () => {
      const { status, body } = await platform.rest("GET", "/agents/usage");
      expect(status).to.equal(200);
      const { agents_limit, stored_bytes_limit, apps } = body.result;
      expect(agents_limit).to.equal(AGENTS_PER_ACCOUNT);
      // On a small disk, an account may store less.
      expect(stored_bytes_limit).to.be.above(0).and.at.most(AGENT_BYTES_PER_ACCOUNT);
      return apps.find(({ name }: { name: string }) => name === "brief");
    };
    const isCounted = async () => (await usage())?.stored_bytes === 2 * AGENT_ROOM_BYTES;
    await until("its database and its inbox are counted", isCounted);
    expect(await usage()).to.include({ agents: 1 });
    expect((await platform.rest("DELETE", "/apps/brief")).status).to.equal(200);
    await until(
      "it answers no more",
      async () => (await platform.ask("brief", path)).status === 404,
    );
    await until("its name is free", async () => {
      const { status } = await platform.deploy("brief", bundle("one"), { agents });
      return status === 200;
    });
    await until("nothing is counted of it", async () => (await usage()) === undefined);
    const { state } = JSON.parse((await platform.ask("brief", path)).text);
    expect(state).to.deep.equal({ events: 0, last: null });
    const log = await platform.rest("GET", "/apps/brief/agents/RepoAgent/x/deliveries");
    expect(log.body.result).to.deep.equal([]);
  });
});
