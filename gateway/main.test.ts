import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { Agent, createServer, get, request } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { context, propagation } from "@opentelemetry/api";
import { expect } from "chai";
import { pino } from "pino";
import { WebSocket } from "ws";
import { accountActor } from "../actors/account/account/account.ts";
import { apiTokenActor } from "../actors/account/api-token/api-token.ts";
import { installationActor } from "../actors/account/installation/installation.ts";
import { userActor } from "../actors/account/user/user.ts";
import { browserTimeActor } from "../actors/rendering/browser-time/browser-time.ts";
import type { ActorClient } from "../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../schemas/errors.ts";
import { freePort } from "../scripts/free-port.ts";
import { memoryActors } from "../scripts/testing/memory-actors.ts";
import { startTracing } from "../scripts/tracing.ts";
import { type GatewayContext, type RunningGateway, startGateway } from "./main.ts";
import { testCrawls } from "./testing/test-crawls.ts";
import { testConfig } from "./testing/test-gateway.ts";
import { testPrinter } from "./testing/test-printer.ts";

describe("gateway process", () => {
  let dataDir: string;
  let gateway: RunningGateway | undefined;
  const logs: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line) => logs.push(JSON.parse(line)) });
  const printer = testPrinter();
  const actors = memoryActors({
    actors: [accountActor, apiTokenActor, browserTimeActor, installationActor, userActor],
    workers: [printer.worker],
  });
  // Without this setting, the first start generates the token for /metrics.
  const config = () => ({ ...testConfig, dataDir, metricsToken: undefined });
  const { blobs, live, secrets } = testCrawls();
  const shared = { blobs, live, secrets, logger };
  const start = async (changes: Partial<GatewayContext> = {}) => {
    gateway = await startGateway({ actors, ...shared, config: config(), ...changes });
    return `http://127.0.0.1:${gateway.port}`;
  };
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), "gateway-"));
  });
  after(() => rm(dataDir, { recursive: true }));
  afterEach(async () => {
    await gateway?.stop();
    gateway = undefined;
  });
  const credentials = async () =>
    JSON.parse(await readFile(join(dataDir, "credentials.json"), "utf8"));

  it("startGateway() serves with the credentials it wrote", async () => {
    const url = await start();
    const { account_id, api_token, metrics_token } = await credentials();
    const headers = { Authorization: `Bearer ${api_token}` };
    const response = await fetch(`${url}/v4/accounts/${account_id}`, { headers });
    expect(response.status).to.equal(200);
    expect((await fetch(`${url}/healthz`)).status).to.equal(200);
    expect((await fetch(`${url}/livez`)).status).to.equal(200);
    expect((await fetch(`${url}/metrics`)).status).to.equal(401);
    const opening = { Authorization: `Bearer ${metrics_token}` };
    expect(await (await fetch(`${url}/metrics`, { headers: opening })).text()).to.contain(
      "process_resident_memory_bytes",
    );
  });

  it("startGateway() waits for actors that are not there yet, and says so", async () => {
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const leaving = new AbortController();
    const call = () => {
      ask();
      return Promise.reject(new ActorError("unavailable", "Cannot reach installation"));
    };
    const port = await freePort();
    const starting = startGateway({
      actors: { ...actors, call },
      ...shared,
      config: { ...config(), port },
      missing: () => ["a browser"],
      signal: leaving.signal,
    }).catch((error: unknown) => error);
    await asked;
    const health = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect(health.status).to.equal(503);
    expect(await health.text())
      .to.contain("a browser")
      .and.to.contain("the first account");
    leaving.abort();
    expect(await starting).to.include({ name: "AbortError" });
    const refused = await fetch(`http://127.0.0.1:${port}/healthz`).catch(
      (error: unknown) => error,
    );
    expect(refused).to.be.instanceOf(Error);
  });

  it("startGateway() says in one line that its port is in use", async () => {
    await start();
    const taken = { ...config(), port: gateway?.port ?? 0 };
    const error = await startGateway({ actors, ...shared, config: taken }).catch((e: unknown) => e);
    expect(String(error)).to.equal(
      `Error: Cannot listen on 127.0.0.1:${taken.port}: the port is in use, TRUNKLINE_PORT chooses another`,
    );
  });

  it("leave() fails the health check and serves on, and each answer closes its connection", async () => {
    const url = await start();
    const agent = new Agent({ keepAlive: true });
    const answerOf = async (path: string) => {
      const [answer] = await once(get(`${url}${path}`, { agent }), "response");
      return {
        status: answer.statusCode,
        connection: answer.headers.connection,
        text: await text(answer),
      };
    };
    expect(await answerOf("/livez")).to.include({ status: 200, connection: "keep-alive" });
    gateway?.leave();
    expect(await answerOf("/livez")).to.include({ status: 200, connection: "close" });
    const health = await answerOf("/healthz");
    expect(health).to.include({ status: 503, connection: "close" });
    expect(health.text).to.contain("Cannot serve: this process is stopping");
    const { api_token } = await credentials();
    const headers = { Authorization: `Bearer ${api_token}` };
    expect((await fetch(`${url}/v4/accounts`, { headers })).status).to.equal(200);
    agent.destroy();
  });

  it("stop() lets what is in flight finish, and takes nothing new", async () => {
    // The shutdown time is long, so that the request can finish even on a slow machine.
    const url = await start({ config: { ...config(), shutdownSeconds: 60 } });
    const { account_id, api_token } = await credentials();
    const agent = new Agent({ keepAlive: true });
    const client = request(`${url}/v4/accounts/${account_id}/browser-rendering/pdf`, {
      agent,
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
    });
    client.end(JSON.stringify({ html: "chunks 1000" }));
    const [response] = await once(client, "response");
    const stopped = gateway?.stop();
    const refused = await fetch(`${url}/healthz`).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(Error);
    const body = await text(response);
    expect(body.length).to.equal(Number(response.headers["content-length"]));
    // The kept-alive connection must not delay the stop.
    await stopped;
    agent.destroy();
    gateway = undefined;
  });

  it("stop() cuts off, after a while, what does not finish", async () => {
    const url = await start({ config: { ...config(), shutdownSeconds: 0.1 } });
    const { account_id, api_token } = await credentials();
    const asked = fetch(`${url}/v4/accounts/${account_id}/browser-rendering/pdf`, {
      method: "POST",
      headers: { Authorization: `Bearer ${api_token}`, "Content-Type": "application/json" },
      body: JSON.stringify({ html: "hang" }),
    }).catch((error: unknown) => error);
    const tasks = printer.tasks;
    while (printer.tasks === tasks) await new Promise(setImmediate);
    await gateway?.stop();
    gateway = undefined;
    expect(await asked).to.be.instanceOf(Error);
    await printer.cancelled;
    expect(logs.some(({ msg }) => msg === "requests cut off: the time to stop is over")).to.equal(
      true,
    );
  });

  it("stop() says goodbye on WebSockets", async () => {
    const url = await start({
      socketRoutes: [
        {
          match: ({ pathname }) => pathname === "/ws",
          admit: async () => ({ accountId: "one", accept() {} }),
        },
      ],
    });
    const socket = new WebSocket(`${url}/ws`);
    await once(socket, "open");
    const closed = once(socket, "close");
    await gateway?.stop();
    gateway = undefined;
    expect((await closed)[0]).to.equal(1001);
  });

  it("closes a connection whose request does not come to its end in time", async () => {
    const url = await start({ timeouts: { headersMs: 50, requestMs: 100 } });
    for (const begun of [
      "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
      "POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1",
    ]) {
      const socket = connect(Number(new URL(url).port), "127.0.0.1");
      socket.on("error", () => {}); // It may be reset as well as ended.
      socket.write(begun);
      await once(socket.resume(), "close");
    }
  });

  it("finishes an answer that takes longer than its request may take", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    let holds = false;
    const call: ActorClient["call"] = async (...parameters) => {
      if (holds) ask();
      if (holds) await released;
      return actors.call(...parameters);
    };
    const timeouts = { headersMs: 5_000, requestMs: 100 };
    const url = await start({ actors: { ...actors, call }, timeouts });
    const { api_token } = await credentials();
    holds = true;
    const headers = { Authorization: `Bearer ${api_token}` };
    const answer = fetch(`${url}/v4/accounts`, { headers });
    const status = answer.then((given) => given.status, String);
    await asked;
    // This request arrives later, so when its time is over, that of the other request is over too.
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.on("error", () => {}); // It may be reset as well as ended.
    socket.write("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n1");
    await once(socket.resume(), "close");
    release();
    expect(await status).to.equal(200);
  });

  it("refuses headers that are too large", async () => {
    const url = await start();
    const [response] = await once(
      get(url, { headers: { "X-Large": "x".repeat(20_000) } }),
      "response",
    );
    expect(response.statusCode).to.equal(431);
    response.resume();
  });

  it("sends a span for each request, child of the client's, and hands it on", async () => {
    const { promise: received, resolve: receive } = Promise.withResolvers<string>();
    const receiver = createServer(async (incoming, response) => {
      const body = await text(incoming);
      response.setHeader("Content-Type", "application/json").end("{}");
      expect(incoming.url).to.equal("/v1/traces");
      if (body.includes("GET /accounts")) receive(body);
    }).listen(0, "127.0.0.1");
    await once(receiver, "listening");
    const address = receiver.address();
    const port = typeof address === "object" ? address?.port : 0;
    const handedOn: Record<string, string>[] = [];
    const call: ActorClient["call"] = (...parameters) => {
      const carrier = {};
      propagation.inject(context.active(), carrier);
      handedOn.push(carrier);
      return actors.call(...parameters);
    };
    const tracing = await startTracing(`http://127.0.0.1:${port}/`);
    const url = await start({
      actors: { ...actors, call },
      config: { ...config(), otlpEndpoint: `http://127.0.0.1:${port}/` },
    });
    const { api_token } = await credentials();
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const headers = {
      Authorization: `Bearer ${api_token}`,
      traceparent: `00-${traceId}-b7ad6b7169203331-01`,
    };
    handedOn.length = 0;
    const response = await fetch(`${url}/v4/accounts`, { headers });
    await response.text();
    expect(handedOn).to.have.length(2);
    // Stopping sends the remaining spans.
    await tracing.stop();
    const [span] = JSON.parse(await received).resourceSpans[0].scopeSpans[0].spans;
    expect(span).to.include({ traceId, parentSpanId: "b7ad6b7169203331", name: "GET /accounts" });
    for (const { traceparent } of handedOn) {
      expect(traceparent).to.equal(`00-${traceId}-${span.spanId}-01`);
    }
    const attributes = JSON.stringify(span.attributes);
    expect(attributes).to.contain(response.headers.get("x-request-id"));
    expect(attributes).not.to.contain(api_token);
    receiver.close();
  });
});
