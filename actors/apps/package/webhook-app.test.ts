import { createHmac } from "node:crypto";
import { expect } from "chai";
import { until } from "../../../scripts/testing/until.ts";
import { MemoryHost } from "./testing/memory-host.ts";

/**
 * Code as in common webhook guides. The platform must offer everything that such code calls, with the same behaviour.
 */
const CODE = `
import { Agent, callable, getAgentByName, routeAgentRequest } from "trunkline/agents";

async function isSigned(body, signature, secret) {
  if (!signature || !/^sha256=[0-9a-f]{64}$/i.test(signature)) return false;
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  const bytes = Uint8Array.from(signature.slice(7).match(/.{2}/g) ?? [], (byte) => Number.parseInt(byte, 16));
  return crypto.subtle.verify("HMAC", key, bytes, encoder.encode(body));
}

export class RepoAgent extends Agent<{ WEBHOOK_SECRET: string }, { stats: number; lastEvent?: object }> {
  initialState = { stats: 0 };
  async onStart() {
    this.sql\`
      CREATE TABLE IF NOT EXISTS events (id TEXT PRIMARY KEY, type TEXT NOT NULL, payload TEXT, timestamp TEXT NOT NULL)
    \`;
    this.sql\`CREATE INDEX IF NOT EXISTS by_time ON events(timestamp DESC)\`;
  }
  async onRequest(request: Request): Promise<Response> {
    if (request.method !== "POST") return new Response("Method not allowed", { status: 405 });
    const body = await request.text();
    if (!(await isSigned(body, request.headers.get("X-Hub-Signature-256"), this.env.WEBHOOK_SECRET))) {
      return new Response("Invalid signature", { status: 401 });
    }
    const id = request.headers.get("X-GitHub-Delivery") ?? crypto.randomUUID();
    await this.processEvent(id, request.headers.get("X-GitHub-Event") ?? "unknown", JSON.parse(body));
    if (new URL(request.url).searchParams.has("later")) {
      await this.queue("processWebhook", { id });
      const submission = await this.submit("notify", { id }, { idempotencyKey: id });
      return Response.json({ submissionId: submission.submissionId }, { status: 202 });
    }
    return new Response("OK");
  }
  private async processEvent(id: string, type: string, payload: unknown) {
    const existing = [...this.sql\`SELECT id FROM events WHERE id = \${id}\`];
    if (existing.length > 0) return;
    this.sql\`INSERT INTO events (id, type, payload, timestamp) VALUES (\${id}, \${type}, \${JSON.stringify(payload)}, \${new Date().toISOString()})\`;
    this.setState({ ...this.state, stats: this.state.stats + 1, lastEvent: { type, timestamp: new Date().toISOString() } });
    this.sql\`DELETE FROM events WHERE id NOT IN (SELECT id FROM events ORDER BY timestamp DESC LIMIT 100)\`;
    this.sql\`DELETE FROM events WHERE timestamp < datetime('now', '-30 days')\`;
  }
  async processWebhook({ id }) { this.sql\`UPDATE events SET type = type || ' processed' WHERE id = \${id}\`; }
  async notify({ id }) {
    const body = JSON.stringify({ id });
    const key = await crypto.subtle.importKey("raw", new TextEncoder().encode("out"), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(body));
    const signature = [...new Uint8Array(mac)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    const response = await fetch("https://receiver.example/hook", { method: "POST", headers: { "Content-Type": "application/json", "X-Signature": signature }, body });
    if (!response.ok) throw new Error("Notification failed: " + response.status);
  }
  @callable()
  getEvents(limit = 20) {
    return [...this.sql\`SELECT * FROM events ORDER BY timestamp DESC LIMIT \${limit}\`];
  }
  @callable()
  getEventsByType(type: string, limit = 20) {
    return [...this.sql\`SELECT * FROM events WHERE type = \${type} ORDER BY timestamp DESC LIMIT \${limit}\`];
  }
}

export default {
  async fetch(request: Request, env: any): Promise<Response> {
    const url = new URL(request.url);
    if (url.pathname === "/webhooks/github" && request.method === "POST") {
      const body = await request.clone().text();
      if (!(await isSigned(body, request.headers.get("X-Hub-Signature-256"), env.WEBHOOK_SECRET))) {
        return new Response("Invalid signature", { status: 401 });
      }
      const repository = JSON.parse(body).repository?.full_name;
      if (!repository) return new Response("Missing repository", { status: 400 });
      const agent = await getAgentByName(env.RepoAgent, repository.toLowerCase().replace(/\\//g, "-"));
      return agent.fetch(request);
    }
    if (url.pathname === "/read") {
      const agent = await getAgentByName(env.RepoAgent, "read");
      await request.text();
      return agent.fetch(request).catch((error) => new Response(String(error), { status: 500 }));
    }
    return (await routeAgentRequest(request, env)) || new Response("Not found", { status: 404 });
  },
};
`;

const SECRET = "it is a secret";

describe("an app that takes webhooks by its own code", function () {
  this.timeout(120_000);
  let host: MemoryHost;
  before(async () => {
    host = await MemoryHost.start({
      code: CODE,
      values: { WEBHOOK_SECRET: SECRET },
      agents: [{ binding: "RepoAgent", className: "RepoAgent" }],
      operate: async () => ({ type: "answer", answer: { status: 200, headers: [] } }),
    });
  });
  after(() => host.stop());

  const post = (payload: unknown, headers: Record<string, string> = {}, query = "") => {
    const body = JSON.stringify(payload);
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    return host.entry(`/webhooks/github${query}`, {
      method: "POST",
      body,
      headers: { "X-Hub-Signature-256": signature, "X-GitHub-Event": "push", ...headers },
    });
  };
  const repository = { full_name: "Octo/Hello" };

  it("a signed event is stored once and changes the state", async () => {
    for (const id of ["1", "1", "2"]) {
      const response = await post({ repository }, { "X-GitHub-Delivery": id });
      expect([response.status, await response.text()]).to.deep.equal([200, "OK"]);
    }
    expect(await host.invoke("RepoAgent/octo-hello", "getEvents")).to.have.length(2);
    expect(await host.invoke("RepoAgent/octo-hello", "getEventsByType", "push", 1)).to.have.length(
      1,
    );
    expect(await host.invoke("RepoAgent/octo-hello", "getEventsByType", "issues")).to.have.length(
      0,
    );
  });

  it("answers 401, 400, 404 and 405 as the guides say", async () => {
    expect((await post({ repository }, { "X-Hub-Signature-256": "sha256=00" })).status).to.equal(
      401,
    );
    expect((await post({})).status).to.equal(400);
    expect((await host.entry("/elsewhere")).status).to.equal(404);
    expect((await host.entry("/agents/repo-agent/octo-hello")).status).to.equal(405);
  });

  it("refuses to pass on a request whose body it has read itself", async () => {
    const response = await host.entry("/read", { method: "POST", body: "event" });
    expect(response.status).to.equal(500);
    expect(await response.text())
      .to.include("its body has been read")
      .and.include("clone()");
  });

  it("answers 202 and goes on: by the queue, and by a submission that sends a signed webhook", async () => {
    const response = await post({ repository }, { "X-GitHub-Delivery": "3" }, "?later");
    expect(response.status).to.equal(202);
    const { submissionId } = (await response.json()) as { submissionId: string };
    const submission = await host.invoke("RepoAgent/octo-hello", "waitForSubmission", submissionId);
    expect(submission).to.include({ status: "completed" });
    await until("the queue is through", async () => {
      const events = await host.invoke("RepoAgent/octo-hello", "getEventsByType", "push processed");
      return (events as unknown[]).length === 1;
    });
    const [sent] = host.operations.filter(({ type }) => type === "fetch");
    const expected = createHmac("sha256", "out").update('{"id":"3"}').digest("hex");
    expect(sent)
      .to.have.deep.nested.property("request.headers")
      .that.deep.includes(["x-signature", expected]);
  });
});
