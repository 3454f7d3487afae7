import { once } from "node:events";
import { connect } from "node:net";
import { expect } from "chai";
import { type TestGateway, testConfig, testGateway } from "./testing/test-gateway.ts";

describe("gateway", () => {
  let gateway: TestGateway;
  const start = async (options: Parameters<typeof testGateway>[0] = {}) => {
    gateway = await testGateway(options);
  };
  beforeEach(() => start());
  afterEach(() => gateway.stop());
  const restart = async (options: Parameters<typeof testGateway>[0]) => {
    await gateway.stop();
    await start(options);
  };
  const tokens = () => `/v4/accounts/${gateway.accountId}/tokens`;

  describe("paths and methods", () => {
    it("answers 404 in the envelope where there is nothing", async () => {
      for (const path of ["/v4", "/v4/nothing", "/v4/Accounts", "/v5/accounts", "//v4/accounts"]) {
        const { status, json } = await gateway.ask(path);
        expect(status, path).to.equal(404);
        expect(json?.success).to.equal(false);
      }
    });

    it("answers 405 with what a path has, and OPTIONS with the same", async () => {
      const expected: [string, string][] = [
        ["/v4/accounts", "GET, HEAD, OPTIONS"],
        [tokens(), "GET, HEAD, OPTIONS, POST"],
        [`${tokens()}/${"0".repeat(32)}`, "DELETE, GET, HEAD, OPTIONS, PUT"],
        [`/v4/accounts/${gateway.accountId}/browser-rendering/pdf`, "OPTIONS, POST"],
        [`/v4/accounts/${gateway.accountId}/browser-run/pdf`, "OPTIONS, POST"],
        ["/v4/openapi.json", "GET, HEAD, OPTIONS"],
        ["/healthz", "GET, HEAD, OPTIONS"],
        ["/metrics", "GET, HEAD, OPTIONS"],
        ["/", "GET, HEAD, OPTIONS"],
        ["/docs", "GET, HEAD, OPTIONS"],
      ];
      for (const [path, allow] of expected) {
        const refused = await gateway.ask(path, { method: "PATCH" });
        expect(refused.status, path).to.equal(405);
        expect(refused.headers.get("allow")).to.equal(allow);
        expect(refused.json?.errors[0]?.code).to.equal(1005);
        const options = await gateway.ask(path, { method: "OPTIONS", token: null });
        expect(options.status).to.equal(204);
        expect(options.headers.get("allow")).to.equal(allow);
      }
    });

    it("answers HEAD like GET, without a body", async () => {
      const { status, headers, text } = await gateway.ask("/v4/accounts", { method: "HEAD" });
      expect(status).to.equal(200);
      expect(text).to.equal("");
      expect(Number(headers.get("content-length"))).to.be.above(0);
      expect((await gateway.ask("/v4/accounts", { method: "HEAD", token: null })).status).to.equal(
        401,
      );
    });

    it("refuses a path whose percent-encoding is broken", async () => {
      const { status, json } = await gateway.ask("/v4/accounts/%ff");
      expect(status).to.equal(400);
      expect(json?.errors[0]?.message).to.contain("percent-encoding");
    });

    it("lets no other origin in", async () => {
      const headers = {
        Origin: "http://evil.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
      };
      for (const method of ["GET", "OPTIONS"]) {
        const answer = await gateway.ask("/v4/accounts", { method, headers });
        const names = [...answer.headers.keys()];
        expect(names.filter((name) => name.startsWith("access-control-"))).to.deep.equal([]);
      }
    });
  });

  describe("request id", () => {
    it("answers with the id it was given when that is sane, else with one of its own", async () => {
      const ask = async (id: string) => {
        const { headers } = await gateway.ask("/v4/accounts", { headers: { "X-Request-Id": id } });
        return headers.get("x-request-id");
      };
      expect(await ask("a-B.c_9:1")).to.equal("a-B.c_9:1");
      expect(await ask("a".repeat(128))).to.equal("a".repeat(128));
      for (const id of ["a".repeat(129), "a b", '{"a"}', "ä"]) {
        expect(await ask(id)).to.match(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
      }
    });
  });

  describe("headers", () => {
    it("tell browsers to do as little as possible", async () => {
      const { headers } = await gateway.ask("/v4/accounts");
      expect(Object.fromEntries(headers)).to.include({
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
      });
      expect(headers.has("x-powered-by")).to.equal(false);
      expect(headers.has("strict-transport-security")).to.equal(false);
    });

    it("hold browsers to TLS where the public address has it", async () => {
      await restart({ config: { publicUrl: "https://example.com" } });
      const { headers } = await gateway.ask("/v4/accounts");
      expect(headers.get("strict-transport-security")).to.contain("max-age=");
    });
  });

  describe("health and metrics", () => {
    it("answers 200 when nothing is missing, else 503 that names it", async () => {
      const missing = ["nats-server", "a browser"];
      await restart({ missing: () => missing });
      const waiting = await gateway.ask("/healthz", { token: null });
      expect(waiting.status).to.equal(503);
      expect(waiting.headers.get("retry-after")).to.equal("1");
      expect(waiting.json?.errors.map(({ message }) => message)).to.deep.equal([
        "Cannot serve: nats-server is missing",
        "Cannot serve: a browser is missing",
      ]);
      missing.length = 0;
      const ready = await gateway.ask("/healthz", { token: null });
      expect(ready.status).to.equal(200);
      expect(ready.json?.result).to.deep.equal({ ready: true });
    });

    it("has no metrics when these have a port of their own", async () => {
      const other = await testGateway({ config: { metricsPort: 9090 } });
      const { status } = await other.ask("/metrics", { token: testConfig.metricsToken ?? null });
      expect(status).to.equal(404);
      await other.stop();
    });

    it("shows metrics to who has their token, and to nobody else", async () => {
      for (const token of [null, gateway.token, "opens-metrics-in-testz"]) {
        const refused = await gateway.ask("/metrics", { token });
        expect(refused.status).to.equal(401);
        expect(refused.headers.get("www-authenticate")).to.equal("Bearer");
        expect(refused.text).to.include("TRUNKLINE_METRICS_TOKEN").and.not.include("# HELP");
      }
      const shown = await gateway.ask("/metrics", { token: testConfig.metricsToken ?? null });
      expect(shown.status).to.equal(200);
      expect(shown.headers.get("cache-control")).to.equal("no-store");
    });

    it("counts requests by route and status, in closed lists", async () => {
      await gateway.ask("/v4/accounts");
      await gateway.ask("/v4/accounts", { token: null });
      await gateway.ask("/v4/nothing-known");
      const { text } = await gateway.ask("/metrics", { token: testConfig.metricsToken ?? null });
      const line = (labels: string) => `trunkline_http_requests_total{${labels}} 1`;
      expect(text).to.contain(line('method="GET",route="/accounts",status="200"'));
      expect(text).to.contain(line('method="GET",route="/accounts",status="401"'));
      expect(text).to.contain(line('method="GET",route="other",status="404"'));
      expect(text).to.contain("trunkline_http_requests_in_flight 0");
      expect(text).not.to.contain("nothing-known");
    });
  });

  it("stores nothing new on a full disk, but takes access away", async () => {
    let isFull = false;
    await restart({ isDiskFull: () => isFull });
    const policies = [{ effect: "allow", permission_groups: [{ id: "account.read" }] }];
    const json = { name: "leaked", policies };
    const { result } = (await gateway.ask(tokens(), { method: "POST", json })).json ?? {};
    isFull = true;
    const headers = { Authorization: `Bearer ${gateway.token}` };
    const created = await fetch(gateway.url + tokens(), { method: "POST", headers });
    expect(created.status).to.equal(507);
    const leaked = `${tokens()}/${result.id}`;
    const disabled = { ...json, status: "disabled" };
    expect((await gateway.ask(leaked, { method: "PUT", json: disabled })).status).to.equal(200);
    expect((await gateway.ask(`${leaked}/value`, { method: "PUT" })).status).to.equal(200);
  });

  it("answers what is not HTTP with 400 and survives it", async () => {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.end("GET /v4 HTTP/9.9\r\nbroken\r\n\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).to.match(/^HTTP\/1\.1 400 /);
    expect((await gateway.ask("/healthz")).status).to.equal(200);
  });
});
