import { createHmac } from "node:crypto";
import { connect } from "node:net";
import { sign } from "@octokit/webhooks-methods";
import { expect } from "chai";
import { eventOf } from "../../../actors/apps/agent-inbox/testing/inbox.ts";
import { agentInbox } from "../../../schemas/apps/agent-inbox.ts";
import { appUsage } from "../../../schemas/apps/app-usage.ts";
import {
  EVENT_INLINE_BYTES_MAX,
  EVENTS_WAITING_MAX,
  WEBHOOK_BODY_BYTES_MAX,
} from "../../../schemas/apps/limits.ts";
import { APP_USAGE_KEPT_MS } from "../account-room.ts";
import { HOOK_ACCOUNT, webhookServer } from "./testing/webhook-server.ts";

const SECRET = "secret";
const GITHUB = {
  ...{ path: "/webhooks/github", provider: "github", secret: ["OLD", "GITHUB"], agent: "REPOS" },
  entity: { body: "/repository/full_name" },
};
const HMAC = {
  ...{ path: "/hooks/:entity/in", provider: "hmac", secret: "GITHUB", agent: "REPOS" },
  ...{ entity: { path: true }, hmac: { header: "X-Sig" } },
};
const SLACK = {
  ...{ path: "/slack", provider: "slack", secret: "GITHUB", agent: "REPOS" },
  entity: { body: "/team_id" },
};
const SECRETS = { GITHUB: SECRET };

const push = (fields: object = {}) =>
  JSON.stringify({ repository: { full_name: "Owner/Repo" }, ...fields });
let ids = 0;
const newId = () => `delivery-${++ids}`;

async function github(
  url: string,
  body = push(),
  headers: Record<string, string> = {},
): Promise<Response> {
  const { "X-Hub-Signature-256": given, ...others } = headers;
  return fetch(`${url}/webhooks/github`, {
    method: "POST",
    headers: {
      "Content-Type": "application/json",
      "X-GitHub-Event": "push",
      "X-GitHub-Delivery": newId(),
      "X-Hub-Signature-256": given ?? (await sign(SECRET, body)),
      ...others,
    },
    body,
  });
}

const errorOf = async (answer: Response) =>
  ((await answer.json()) as { errors: { code: number; message: string }[] }).errors[0];

describe("declared endpoint", () => {
  it("answer() is 202 once the event is stored, and the agent of its entity gets it as it came", async () => {
    await using server = await webhookServer([GITHUB], SECRETS);
    const body = push({ text: "grüße" });
    const answer = await github(server.url, body, {
      "X-GitHub-Delivery": "first",
      Cookie: "a=b",
      "X-Trunkline-Event-Id": "forged",
    });
    expect(answer.status).to.equal(202);
    const { result } = (await answer.json()) as { result: unknown };
    expect(result).to.deep.equal({ id: "1", is_new: true });
    await server.actors.settled();
    const [delivered, ...others] = server.delivered;
    expect(others).to.deep.equal([]);
    expect(delivered?.key).to.equal(`${HOOK_ACCOUNT}.hooks.RepoAgent.owner-repo`);
    const { request, attempt } = delivered?.delivery ?? {};
    expect(attempt).to.equal(1);
    expect(request).to.include({ method: "POST", url: "http://app.test/webhooks/github" });
    expect(request?.body).to.deep.equal({ text: body });
    const headers = new Headers(request?.headers);
    expect(headers.get("x-github-event")).to.equal("push");
    expect(headers.get("x-trunkline-event-id")).to.equal("first");
    expect(headers.get("x-trunkline-event-type")).to.equal("push");
    expect(headers.get("cookie")).to.equal(null);
  });

  it("answer() keeps as many events in the log, and for as long, as the configuration says", async () => {
    const deliveries = { keep_days: 3, keep_count: 2 };
    await using server = await webhookServer([GITHUB], SECRETS, { deliveries });
    const key = `${HOOK_ACCOUNT}.hooks.RepoAgent.owner-repo`;
    const kept = async () => {
      await server.actors.settled();
      const { deliveries: log } = await server.actors.call(agentInbox, key, "list", { limit: 10 });
      return log.map(({ number }) => number);
    };
    for (let events = 0; events < 3; events++) {
      expect((await github(server.url)).status).to.equal(202);
      await server.actors.settled();
    }
    expect(await kept()).to.deep.equal([3, 2]);
    for (let days = 0; days < 4; days++) {
      server.clock.now += 86_400_000;
      await server.actors.remind();
    }
    expect(await kept()).to.deep.equal([]);
  });

  it("answer() is 202 also for a repetition, which is not delivered", async () => {
    await using server = await webhookServer([GITHUB], SECRETS);
    const body = push({ text: "x".repeat(EVENT_INLINE_BYTES_MAX) });
    for (const is_new of [true, false, false]) {
      const answer = await github(server.url, body, { "X-GitHub-Delivery": "same" });
      expect(answer.status).to.equal(202);
      expect(await answer.json()).to.deep.include({ result: { id: "1", is_new } });
    }
    await server.actors.settled();
    expect(server.delivered).to.have.length(1);
    expect(server.blobs.blobs.size).to.equal(1);
  });

  it("answer() takes events of two senders with the same id, each one time", async () => {
    const idIn = { ...HMAC, event_id: { body: "/id" }, entity: { body: "/customer" } };
    const paths = ["/billing", "/shipping"];
    const endpoints = paths.map((path) => ({ ...idIn, path }));
    await using server = await webhookServer(endpoints, SECRETS);
    const body = JSON.stringify({ id: 1_001, customer: "c7" });
    const post = async (path: string) => {
      const headers = { "X-Sig": createHmac("sha256", SECRET).update(body).digest("hex") };
      const answer = await fetch(server.url + path, { method: "POST", headers, body });
      return ((await answer.json()) as { result: unknown }).result;
    };
    for (const is_new of [true, false]) {
      expect(await post("/billing")).to.deep.equal({ id: "1", is_new });
      expect(await post("/shipping")).to.deep.equal({ id: "2", is_new });
    }
    await server.actors.settled();
    const delivered = server.delivered.map(({ delivery }) => delivery.request.url);
    expect(delivered).to.deep.equal(paths.map((path) => `http://app.test${path}`));
  });

  it("answer() takes events of any provider with the same id, if their endpoints say where the id is", async () => {
    const paths = ["/orders", "/refunds"];
    const endpoints = paths.map((path) => {
      return { ...GITHUB, path, event_id: { body: "/id" }, entity: { body: "/customer" } };
    });
    await using server = await webhookServer(endpoints, SECRETS);
    const body = JSON.stringify({ id: 1_001, customer: "c7" });
    const signature = await sign(SECRET, body);
    const post = async (path: string) => {
      const headers = {
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": newId(),
        "X-Hub-Signature-256": signature,
      };
      const answer = await fetch(server.url + path, { method: "POST", headers, body });
      return ((await answer.json()) as { result: unknown }).result;
    };
    for (const is_new of [true, false]) {
      expect(await post("/orders")).to.deep.equal({ id: "1", is_new });
      expect(await post("/refunds")).to.deep.equal({ id: "2", is_new });
    }
  });

  it("answer() recognizes a repetition that an earlier version stored, if its endpoint is the only one", async () => {
    const idIn = { ...HMAC, path: "/billing", event_id: { body: "/id" } };
    const body = JSON.stringify({ id: 1_001 });
    const post = async (url: string) => {
      const headers = {
        "X-Sig": createHmac("sha256", SECRET).update(body).digest("hex"),
        "X-Customer": "c7",
      };
      const answer = await fetch(`${url}/billing`, { method: "POST", headers, body });
      return ((await answer.json()) as { result: { is_new: boolean } }).result.is_new;
    };
    const billing = { ...idIn, entity: { header: "X-Customer" } };
    for (const [others, path, isNew] of [
      [[], "/billing", false],
      [[], "/removed", true],
      [[{ ...billing, path: "/shipping" }], "/billing", true],
    ] as const) {
      await using server = await webhookServer([billing, ...others], SECRETS);
      const key = `${HOOK_ACCOUNT}.hooks.RepoAgent.c7`;
      const early = eventOf("1001", { source: "hmac" });
      const stored = { ...early, request: { ...early.request, url: `http://app.test${path}` } };
      expect(await server.actors.call(agentInbox, key, "receive", stored)).to.include({
        isNew: true,
      });
      expect(await post(server.url)).to.equal(isNew);
    }
  });

  it("answer() puts a large body beside the message, and one that is no text in base64", async () => {
    await using server = await webhookServer([HMAC], SECRETS);
    const post = (body: Buffer) =>
      fetch(`${server.url}/hooks/Device%2F1/in`, {
        method: "POST",
        headers: { "X-Sig": createHmac("sha256", SECRET).update(body).digest("hex") },
        body: new Uint8Array(body),
      });
    const bytes = Buffer.from([0, 159, 146, 150]);
    const large = Buffer.alloc(EVENT_INLINE_BYTES_MAX + 1, 1);
    for (const body of [bytes, large, Buffer.alloc(WEBHOOK_BODY_BYTES_MAX, 2)]) {
      expect((await post(body)).status).to.equal(202);
    }
    await server.actors.settled();
    const keys = new Set(server.delivered.map(({ key }) => key));
    expect([...keys]).to.deep.equal([`${HOOK_ACCOUNT}.hooks.RepoAgent.device-1`]);
    const [first, second] = server.delivered.map(({ delivery }) => delivery.request.body);
    expect(first).to.deep.equal({ base64: bytes.toString("base64") });
    const blob = second && "blob" in second ? second.blob : "";
    expect(blob.startsWith(`app.${HOOK_ACCOUNT}.hooks.event.`)).to.equal(true);
    expect(large.equals(server.blobs.blobs.get(blob) ?? Buffer.alloc(0))).to.equal(true);
    expect((await post(Buffer.alloc(WEBHOOK_BODY_BYTES_MAX + 1))).status).to.equal(413);
  });

  it("answer() is 413 as soon as the size is known, also without a declared length", async () => {
    await using server = await webhookServer([GITHUB], SECRETS);
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    let answered = "";
    socket.on("data", (chunk) => {
      answered += chunk;
    });
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {});
    socket.write(
      "POST /webhooks/github HTTP/1.1\r\nHost: a\r\nX-Hub-Signature-256: sha256=00\r\n" +
        "Transfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = Buffer.alloc(1024 * 1024);
    for (let i = 0; i < 6; i++) {
      socket.write(`${chunk.length.toString(16)}\r\n`);
      socket.write(chunk);
      socket.write("\r\n");
    }
    await closed;
    expect(answered).to.match(/^HTTP\/1\.1 413 /);
    expect(server.delivered).to.deep.equal([]);
  });

  it("answer() is 405 with Allow for any other method", async () => {
    await using server = await webhookServer([GITHUB], SECRETS);
    for (const method of ["GET", "PUT", "DELETE", "OPTIONS"]) {
      const answer = await fetch(`${server.url}/webhooks/github`, { method });
      expect([answer.status, answer.headers.get("allow")]).to.deep.equal([405, "POST"]);
    }
  });

  it("answer() is 401 without a signature that holds, and says nothing of why", async () => {
    await using server = await webhookServer([GITHUB], SECRETS);
    for (const signature of ["sha256=00", await sign("other", push()), "nonsense"]) {
      const answer = await github(server.url, push(), { "X-Hub-Signature-256": signature });
      expect(answer.status).to.equal(401);
      const { message } = (await errorOf(answer)) ?? {};
      expect(message).to.equal("Cannot accept event: its signature is not valid");
    }
    const changed = await github(server.url, push({ n: 2 }), {
      "X-Hub-Signature-256": await sign(SECRET, push({ n: 1 })),
    });
    expect(changed.status).to.equal(401);
    await server.actors.settled();
    expect(server.delivered).to.deep.equal([]);
  });

  it("answer() is 400 if entity, id or type is missing, and names the place where it was expected", async () => {
    await using server = await webhookServer(
      [{ ...GITHUB, event_type: { body: "/action" } }],
      SECRETS,
    );
    const ok = { action: "opened" };
    const cases: [string, Record<string, string>, string][] = [
      [JSON.stringify(ok), {}, "the entity, at /repository/full_name"],
      [push({ ...ok, repository: { full_name: " " } }), {}, "the entity"],
      [push({ ...ok, repository: { full_name: ["a"] } }), {}, "the entity"],
      ["no json", {}, "the entity"],
      [push({ ...ok, repository: { full_name: "x".repeat(257) } }), {}, "at most 256 characters"],
      [push({ ...ok, repository: { full_name: "é".repeat(256) } }), {}, "entity is too long"],
      [push(ok), { "X-GitHub-Delivery": "" }, "the event's id, in header x-github-delivery"],
      [push(), {}, "the event's type, at /action"],
    ];
    for (const [body, headers, message] of cases) {
      const answer = await github(server.url, body, headers);
      expect(answer.status, body).to.equal(400);
      expect((await errorOf(answer))?.message).to.include(message);
    }
    expect((await github(server.url, push(ok))).status).to.equal(202);
  });

  it("answer() is 404 for an unknown agent class, and leaves other paths to the app", async () => {
    await using server = await webhookServer([{ ...GITHUB, agent: "NOBODY" }], SECRETS);
    expect((await github(server.url)).status).to.equal(404);
    for (const path of ["/", "/webhooks", "/webhooks/github/x", "/webhooks/%E0%A4%A"]) {
      expect((await fetch(server.url + path, { method: "POST" })).status).to.equal(418);
    }
  });

  it("answer() is 429 with Retry-After when as many wait as may", async () => {
    await using server = await webhookServer([GITHUB], SECRETS, { waiting: EVENTS_WAITING_MAX });
    const answer = await github(server.url);
    expect(answer.status).to.equal(429);
    expect(Number(answer.headers.get("retry-after"))).to.be.greaterThan(0);
  });

  it("answer() leaves no body of a refused event in the store", async () => {
    const large = push({ text: "x".repeat(EVENT_INLINE_BYTES_MAX) });
    await using full = await webhookServer([GITHUB], SECRETS, { waiting: EVENTS_WAITING_MAX });
    expect((await github(full.url, large)).status).to.equal(429);
    expect(full.blobs.blobs.size).to.equal(0);
    await using server = await webhookServer([GITHUB], SECRETS);
    expect((await github(server.url, large)).status).to.equal(202);
    expect(server.blobs.blobs.size).to.equal(1);
  });

  it("answer() takes events while the account's agents keep less than they may, and says so after", async () => {
    const bytesMax = 1_000_000;
    await using server = await webhookServer([GITHUB], SECRETS, { bytesMax });
    const stored = { agent: `${HOOK_ACCOUNT}.hooks.RepoAgent.other`, part: "inbox" as const };
    const keep = (bytes: number) =>
      server.actors.send(appUsage, HOOK_ACCOUNT, "stored", { ...stored, bytes });
    await keep(bytesMax - 1);
    expect((await github(server.url)).status).to.equal(202);
    await keep(bytesMax);
    // The gateway still uses the account's cached usage.
    expect((await github(server.url)).status).to.equal(202);
    server.clock.now += APP_USAGE_KEPT_MS;
    const answer = await github(server.url);
    expect(answer.status).to.equal(409);
    const { code, message } = (await errorOf(answer)) ?? {};
    expect(code).to.equal(1007);
    expect(message).to.match(
      /store 1000000 bytes, which is the limit \(TRUNKLINE_AGENT_BYTES_PER_/,
    );
  });

  it("answer() is 503 with Retry-After while the app has no secret", async () => {
    await using server = await webhookServer([GITHUB], { OTHER: "x", OLD: "" });
    const answer = await github(server.url);
    expect(answer.status).to.equal(503);
    expect(Number(answer.headers.get("retry-after"))).to.be.greaterThan(0);
  });

  it("answer() answers the test messages of GitHub and Slack, only if they are signed", async () => {
    await using server = await webhookServer([GITHUB, SLACK], SECRETS);
    const ping = await github(server.url, '{"zen":"x"}', { "X-GitHub-Event": "ping" });
    expect([ping.status, await ping.text()]).to.deep.equal([200, "pong"]);
    const slack = (body: string, secret = SECRET) => {
      const time = String(Math.floor(server.clock.now / 1_000));
      const mac = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
      return fetch(`${server.url}/slack`, {
        method: "POST",
        headers: { "X-Slack-Request-Timestamp": time, "X-Slack-Signature": `v0=${mac}` },
        body,
      });
    };
    const asked = JSON.stringify({ type: "url_verification", challenge: "abc" });
    const answer = await slack(asked);
    expect([answer.status, await answer.json()]).to.deep.equal([200, { challenge: "abc" }]);
    expect((await slack(asked, "other")).status).to.equal(401);
    const event = { team_id: "T1", event_id: "Ev1", event: { type: "message" } };
    for (let i = 0; i < 2; i++) expect((await slack(JSON.stringify(event))).status).to.equal(202);
    await server.actors.settled();
    expect(server.delivered.map(({ key }) => key)).to.deep.equal([
      `${HOOK_ACCOUNT}.hooks.RepoAgent.t1`,
    ]);
  });

  it("answer() reads GitHub's JSON in a form, and an entity in a header", async () => {
    const byHeader = { ...HMAC, path: "/by-header", entity: { header: "X-Device" } };
    await using server = await webhookServer([GITHUB, byHeader], SECRETS);
    const form = new URLSearchParams({ payload: push() }).toString();
    const type = { "Content-Type": "application/x-www-form-urlencoded" };
    expect((await github(server.url, form, type)).status).to.equal(202);
    const post = (headers: Record<string, string>) =>
      fetch(`${server.url}/by-header`, {
        method: "POST",
        headers: { "X-Sig": createHmac("sha256", SECRET).update("{}").digest("hex"), ...headers },
        body: "{}",
      });
    expect((await post({})).status).to.equal(400);
    expect((await post({ "X-Device": "Lamp/7" })).status).to.equal(202);
    // The event has no id by which a repetition could be recognized.
    expect((await post({ "X-Device": "Lamp/7" })).status).to.equal(202);
    await server.actors.settled();
    expect(server.delivered.map(({ key }) => key.split(".").at(-1))).to.deep.equal([
      "owner-repo",
      "lamp-7",
      "lamp-7",
    ]);
  });
});
