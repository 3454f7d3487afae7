/**
 * Runs each role as a process with its own user of the bus. Checks that all requests work and that the server rejects
 * none of the users' operations.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { WebSocket } from "ws";
import { RawCdp } from "../scripts/testing/raw-cdp.ts";
import { type Credentials, RoleProcess } from "../scripts/testing/role-process.ts";
import { SecuredNats } from "../scripts/testing/secured-nats.ts";
import { until as untilWithin } from "../scripts/testing/until.ts";
import { WebSite } from "../scripts/testing/web-site.ts";

const run = promisify(execFile);
/** Time limit of each wait. On a busy machine, processes and browsers start slowly. */
const WAIT_MS_MAX = 240_000;
const until: typeof untilWithin = (what, look) => untilWithin(what, look, WAIT_MS_MAX);
const ROLES = ["gateway", "actors", "browser"] as const;

const APP = `
import { Agent, getAgentByName, routeAgentRequest } from "trunkline/agents";
export class Counter extends Agent {
  initialState = { count: 0, rung: false };
  async onRequest(request) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname.endsWith("/send")) {
      const secret = this.env.TOKEN;
      await this.webhook(searchParams.get("to"), { hello: 1 }, { secret });
    }
    if (pathname.endsWith("/ring")) await this.schedule(1, "ring", {});
    this.setState({ ...this.state, count: this.state.count + 1 });
    console.log("counted", this.state.count);
    return Response.json({ ...this.state, secret: this.env.TOKEN });
  }
  ring() { this.setState({ ...this.state, rung: true }); }
}
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url);
    if (pathname === "/large") return new Response("x".repeat(3_000_000));
    return (await routeAgentRequest(request, env)) ?? new Response("not here", { status: 404 });
  },
};
`;

describe("users of the bus, each with a process of its own", function () {
  this.timeout(900_000);
  let folder: string;
  let nats: SecuredNats;
  let site: WebSite;
  const processes = new Map<(typeof ROLES)[number], RoleProcess>();
  let credentials: Credentials;
  const gateway = () => processes.get("gateway")?.url ?? "";
  const account = () => `${gateway()}/v4/accounts/${credentials.account_id}`;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-users-"));
    // If root runs the tests, browsers run as another user, and their profiles are in this folder.
    await chmod(folder, 0o755);
    nats = await SecuredNats.start();
    site = await WebSite.start();
    for (const role of ["gateway", "browser", "actors"] as const) {
      if (role === "actors") await until("the others wait", () => waiting().length === 2);
      const instance = await RoleProcess.start(role, folder, {
        ...nats.settings(role),
        TRUNKLINE_ROLES: role,
        TRUNKLINE_EGRESS_ALLOW: "127.0.0.0/8",
        TRUNKLINE_SECRETS_KEY: role === "browser" ? "" : Buffer.alloc(32, 7).toString("base64"),
        TRUNKLINE_REQUESTS_PER_5_MINUTES: "0",
      });
      processes.set(role, instance);
    }
    await Promise.all([...processes.values()].map((instance) => instance.ready()));
    const first = processes.get("gateway");
    if (!first) throw new Error("There is no gateway");
    credentials = await first.credentials();
  });

  afterEach(function () {
    const found = nats.violations.splice(0);
    if (this.currentTest?.state === "failed") print(found);
    expect(found).to.deep.equal([]);
  });

  after(async () => {
    await Promise.all([...processes.values()].map((one) => one[Symbol.asyncDispose]()));
    await site[Symbol.asyncDispose]();
    await nats[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, maxRetries: 10 });
  });

  const waiting = () =>
    [...processes]
      .filter(([, { lines }]) => lines.some((line) => line.includes("waiting for streams")))
      .map(([role]) => role);

  function print(violations: readonly string[]): void {
    console.log(violations.join("\n"));
    for (const [role, { lines }] of processes) {
      const bad = lines.filter((line) => /"level":[456]0/.test(line)).slice(-15);
      console.log(role, bad.map((line) => line.slice(0, 500)).join("\n"));
    }
  }

  it("processes that may not make streams wait for the role that does", () => {
    expect(waiting()).to.deep.equal(["gateway", "browser"]);
  });

  it("a PDF, a picture and a large page are rendered", async () => {
    const pdf = await ask("POST", "/browser-rendering/pdf", { html: "<p>one" });
    expect(pdf.bytes.subarray(0, 5).toString()).to.equal("%PDF-");
    // This page is too large for a task message, so the worker fetches it from the gateway.
    const html = `<p>${"long ".repeat(150_000)}`;
    const large = await ask("POST", "/browser-rendering/content", { html });
    expect(large.status, large.bytes.toString().slice(0, 300)).to.equal(200);
    const shot = await ask("POST", "/browser-rendering/screenshot", { html: "<p>two" });
    expect(shot.status).to.equal(200);
  });

  it("a site is crawled with and without a browser, and the crawl is removed", async () => {
    const links = ["/a", "/b"].map((path) => site.page(path, `<p>page ${path}`));
    const start = site.page("/", links.map((url) => `<a href="${url}">x</a>`).join(""));
    for (const render of [false, true]) {
      const body = { url: start, limit: 3, render, formats: ["markdown"] };
      const { result: id } = await json("POST", "/browser-rendering/crawl", body);
      const done = await until(`crawl with render ${render}`, async () => {
        const { result } = await json("GET", `/browser-rendering/crawl/${id}`);
        return result.status === "completed" ? result : undefined;
      });
      expect(done.finished).to.equal(3);
      await ask("DELETE", `/browser-rendering/crawl/${id}`);
    }
  });

  it("a repository is pushed, cloned and imported", async () => {
    const { result } = await json("POST", "/artifacts/namespaces/default/repos", { name: "one" });
    const checkout = join(folder, "checkout");
    const header = `http.extraHeader=Authorization: Bearer ${result.token}`;
    await run("git", ["init", "-q", "-b", "main", checkout]);
    await writeFile(join(checkout, "file"), "content");
    await run("git", ["-C", checkout, "add", "."]);
    const author = ["-c", "user.name=Me", "-c", "user.email=me@example.com"];
    await run("git", ["-C", checkout, ...author, "commit", "-q", "-m", "One"]);
    await run("git", ["-C", checkout, "-c", header, "push", "-q", result.remote, "main"]);
    await run("git", ["-c", header, "clone", "-q", result.remote, join(folder, "clone")]);
    const imported = { url: "http://127.0.0.2:9/none.git" };
    await ask("POST", "/artifacts/namespaces/default/repos/two/import", imported);
    await until("the import has failed", async () => {
      const { result: repo, success } = await json(
        "GET",
        "/artifacts/namespaces/default/repos/two",
      );
      return !success || repo.status !== "importing";
    });
    expect((await ask("DELETE", "/artifacts/namespaces/default/repos/one")).status).to.be.below(
      300,
    );
  });

  it("an app is deployed, called, posts a webhook, is read and is removed", async () => {
    await json("PUT", "/apps/counts/secrets/TOKEN", { value: "open sesame" });
    const config = {
      name: "counts",
      compatibility_date: "2026-11-20",
      agents: [{ binding: "Counter", class_name: "Counter" }],
    };
    const deployed = await json("PUT", "/apps/counts", { config, bundle: APP });
    expect(deployed.errors).to.deep.equal([]);
    const app = `${gateway()}/apps/${credentials.account_id}/counts`;
    const counted = await (await fetch(`${app}/agents/counter/one/x`)).json();
    expect(counted).to.deep.equal({ count: 1, rung: false, secret: "open sesame" });
    expect((await (await fetch(`${app}/large`)).text()).length).to.equal(3_000_000);
    site.page("/hook", "taken");
    await fetch(`${app}/agents/counter/one/send?to=${encodeURIComponent(`${site.url}/hook`)}`);
    await until("the webhook has arrived", () => site.paths.includes("/hook"));
    await fetch(`${app}/agents/counter/one/ring`);
    const socket = new WebSocket(`${app.replace("http", "ws")}/agents/counter/one`);
    const states: string[] = [];
    socket.on("message", (data) => states.push(String(data)));
    await once(socket, "open");
    await until("the timer has rung", () => states.some((text) => text.includes('"rung":true')));
    const lines = await until("a line of its log", async () => {
      const { result } = await json("GET", "/apps/counts/logs");
      return result?.length > 0 ? result : undefined;
    });
    expect(JSON.stringify(lines)).to.include("counted");
    socket.close();
    expect((await ask("DELETE", "/apps/counts")).status).to.be.below(300);
    await until("its name is free again", async () => {
      const { result } = await json("GET", "/apps");
      return result.length === 0;
    });
  });

  it("a DevTools session is driven", async () => {
    const devtools = "/browser-rendering/devtools";
    const { sessionId } = await json("POST", `${devtools}/browser?keep_alive=60000`);
    const headers = { Authorization: `Bearer ${credentials.api_token}` };
    const url = `${account().replace("http", "ws")}${devtools}/browser/${sessionId}`;
    const cdp = await RawCdp.open(new WebSocket(url, { headers }));
    const page = await cdp.openPage();
    expect(await cdp.evaluate('"x".repeat(2_000_000).length', page.sessionId)).to.equal(2_000_000);
    cdp.socket.close();
    await ask("DELETE", `${devtools}/browser/${sessionId}`);
  });

  it("OAuth clients are registered and their domains and logos looked up", async () => {
    const client = {
      client_name: "Bot",
      grant_types: ["authorization_code"],
      response_types: ["code"],
      token_endpoint_auth_method: "client_secret_basic",
      redirect_uris: ["https://bot.example.com/callback"],
      client_uri: "https://bot.example.com",
      logo_uri: "https://bot.example.com/logo.png",
      scopes: ["account.read"],
    };
    const made = await json("POST", "/oauth_clients", client);
    expect(made.errors, JSON.stringify(made)).to.deep.equal([]);
    const id = made.result.client_id;
    await until("the domain was looked up", async () => {
      const { result } = await json("GET", `/oauth_clients/${id}`);
      return JSON.stringify(result).includes("last_answer");
    });
    await ask("DELETE", `/oauth_clients/${id}`);
  });

  it("every process shows its metrics, and only hosts of actors know the age of tasks", async () => {
    for (const [role, instance] of processes) {
      const metrics = await instance.metrics();
      expect(metrics, role).to.match(/^trunkline_tasks_waiting\{/m);
      expect(/^trunkline_tasks_oldest_seconds\{/m.test(metrics), role).to.equal(role === "actors");
    }
  });

  it("processes stop without a refusal", async () => {
    for (const instance of processes.values()) {
      instance.signal("SIGTERM");
      expect(await instance.exit()).to.equal(0);
    }
  });

  async function ask(method: string, path: string, body?: unknown) {
    const response = await fetch(account() + path, {
      method,
      headers: {
        authorization: `Bearer ${credentials.api_token}`,
        ...(body !== undefined && { "content-type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
  }

  // biome-ignore lint/suspicious/noExplicitAny: a test looks at the answer of whatever route it asked.
  async function json(method: string, path: string, body?: unknown): Promise<any> {
    return JSON.parse((await ask(method, path, body)).bytes.toString());
  }
});
