import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { ActorClient } from "../actors/runtime/actor-client.ts";
import { apiToken } from "../schemas/api-token.ts";
import { ActorError } from "../schemas/errors.ts";
import { BODIES_BYTES_MAX, RENDER_BODY_BYTES_MAX } from "../schemas/limits.ts";
import { type TestGateway, testGateway } from "./testing/test-gateway.ts";

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
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    gateway.ask(tokens(), {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json", ...headers },
    });

  describe("authentication", () => {
    it("refuses every kind of wrong token alike, as RFC 6750 says", async () => {
      const { token } = gateway;
      const wrong = [
        "Bearer",
        "Bearer x",
        `Basic ${token}`,
        `Bearer ${token}x`,
        `Bearer ${token.slice(0, -1)}`,
        `Bearer ${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`,
        `Bearer tl_${"0".repeat(32)}_${token.slice(36)}`,
        `Bearer ${token} ${token}`,
      ];
      for (const Authorization of wrong) {
        const answer = await gateway.ask("/v4/accounts", {
          token: null,
          headers: { Authorization },
        });
        expect(answer.status, Authorization).to.equal(401);
        expect(answer.json?.errors).to.deep.equal([
          { code: 10_000, message: "Cannot authenticate: unknown token" },
        ]);
        expect(answer.headers.get("www-authenticate")).to.equal(
          'Bearer realm="trunkline", error="invalid_token"',
        );
      }
    });

    it("says what is expected when there is no token", async () => {
      const { status, headers, json } = await gateway.ask("/v4/accounts", { token: null });
      expect(status).to.equal(401);
      expect(headers.get("www-authenticate")).to.equal('Bearer realm="trunkline"');
      expect(json?.errors[0]?.message).to.contain("Authorization: Bearer");
    });

    it("takes the scheme in any case, and leaves no challenge on what succeeds", async () => {
      const headers = { Authorization: `bearer  ${gateway.token}` };
      const answer = await gateway.ask("/v4/accounts", { token: null, headers });
      expect(answer.status).to.equal(200);
      expect(answer.headers.has("www-authenticate")).to.equal(false);
    });

    it("knows a revoked token no more, at once", async () => {
      await gateway.actors.call(apiToken, gateway.token.slice(3, 35), "revoke", {});
      expect((await gateway.ask("/v4/accounts")).status).to.equal(401);
    });
  });

  describe("request limit", () => {
    it("counts in RateLimit headers, refuses past the limit, and counts anew", async () => {
      await restart({ config: { requestsPerWindow: 2 } });
      const first = await gateway.ask("/v4/accounts");
      expect(first.headers.get("ratelimit-policy")).to.equal('"default";q=2;w=300');
      expect(first.headers.get("ratelimit")).to.equal('"default";r=1;t=300');
      gateway.clock.now += 60_000;
      const second = await gateway.ask("/v4/user/tokens/verify");
      expect(second.headers.get("ratelimit")).to.equal('"default";r=0;t=240');
      const refused = await gateway.ask("/v4/accounts");
      expect(refused.status).to.equal(429);
      expect(refused.json?.errors[0]?.code).to.equal(2001);
      expect(refused.headers.get("retry-after")).to.equal("240");
      expect(refused.headers.get("ratelimit")).to.equal('"default";r=0;t=240');
      gateway.clock.now += 240_000;
      expect((await gateway.ask("/v4/accounts")).status).to.equal(200);
    });

    it("is off at 0", async () => {
      const { headers } = await gateway.ask("/v4/accounts");
      expect(headers.has("ratelimit")).to.equal(false);
    });
  });

  describe("bodies", () => {
    it("refuses what is not JSON by its type", async () => {
      for (const type of [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "application/jsonp",
        "",
      ]) {
        const { status, json } = await post("{}", { "Content-Type": type });
        expect(status, type).to.equal(415);
        expect(json?.errors[0]?.message).to.contain("application/json");
      }
    });

    it("reads JSON under its usual names", async () => {
      for (const type of [
        "application/json",
        "Application/JSON; charset=UTF-8",
        'application/json;charset="utf-8"',
        "application/merge-patch+json",
      ]) {
        const { status, json } = await post("{}", { "Content-Type": type });
        expect(status, type).to.equal(400);
        expect(json?.errors[0]?.message).to.contain("Missing");
      }
    });

    it("says where malformed JSON breaks off", async () => {
      const { status, json } = await post('{\n  "name": ,\n}');
      expect(status).to.equal(400);
      expect(json?.errors[0]?.message).to.equal(
        "Cannot read body: expected a value at line 2, column 11 (position 12)",
      );
    });

    it("refuses an empty body, a field given twice, and __proto__", async () => {
      expect((await post("")).json?.errors[0]?.message).to.contain("expected a JSON object");
      const twice = await post('{"name":"a","name":"b","policies":[]}');
      expect(twice.status).to.equal(400);
      expect(twice.json?.errors[0]?.message).to.contain("given twice");
      const proto = await post('{"__proto__":{"name":"a"},"constructor":{"prototype":{"x":1}}}');
      expect(proto.status).to.equal(400);
      expect("x" in {}).to.equal(false);
      const inherited = await post('{"constructor":{"prototype":{"x":1}}}');
      expect(inherited.json?.errors.map(({ source }) => source?.pointer)).to.include(
        "/constructor",
      );
    });

    it("unpacks gzip up to the limit, and refuses an encoding it does not know", async () => {
      const gzip = { "Content-Encoding": "gzip" };
      expect((await post(new Uint8Array(gzipSync("{}")), gzip)).status).to.equal(400);
      const bomb = new Uint8Array(gzipSync(`{"name":"${"a".repeat(10_000_000)}"}`));
      expect(bomb.length).to.be.below(20_000);
      expect((await post(bomb, gzip)).status).to.equal(413);
      expect((await post("{}", { "Content-Encoding": "lzma" })).status).to.equal(415);
      expect((await post("no gzip", gzip)).status).to.equal(400);
    });

    it("reads a body that comes in chunks, and refuses one that grows past the limit", async () => {
      const headers = { "Content-Type": "application/json" };
      const ask = (count: number) =>
        gateway.ask(tokens(), { method: "POST", headers, body: spaces(count) });
      expect((await ask(2)).status).to.equal(400);
      expect((await ask(100)).status).to.equal(413);
    });

    it("takes no fault in a client that leaves while it sends", async () => {
      const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
      socket.write(
        `POST ${tokens()} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.token}\r\n` +
          "Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n",
      );
      await once(socket, "data");
      socket.write("{");
      const logged = gateway.logs.length;
      socket.destroy();
      while (gateway.logs.length === logged) await new Promise(setImmediate);
      expect(gateway.logs.slice(logged)).to.have.length(1);
      expect(gateway.logs.at(-1)).to.include({ msg: "request", finished: false });
    });

    it("takes no more large bodies at once than memory is meant for", async () => {
      const port = Number(new URL(gateway.url).port);
      const path = `/v4/accounts/${gateway.accountId}/browser-rendering/pdf`;
      const fitting = Math.floor(BODIES_BYTES_MAX / RENDER_BODY_BYTES_MAX);
      const sockets = Array.from({ length: fitting }, () => connect(port, "127.0.0.1"));
      for (const socket of sockets) {
        socket.write(
          `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gateway.token}\r\n` +
            `Content-Type: application/json\r\nContent-Length: ${RENDER_BODY_BYTES_MAX}\r\n` +
            "Expect: 100-continue\r\n\r\n",
        );
      }
      await Promise.all(sockets.map((socket) => once(socket, "data")));
      const large = () =>
        gateway.ask(path, {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: spaces(1),
        });
      let refused = await large();
      // The server says "continue" before it has found out who asks.
      while (refused.status !== 503) refused = await large();
      expect(refused.json?.errors[0]?.code).to.equal(2004);
      expect(refused.headers.get("retry-after")).to.equal("1");
      // Small ones are still taken.
      expect((await post("{}")).status).to.equal(400);
      const logged = gateway.logs.length;
      for (const socket of sockets) socket.destroy();
      while (gateway.logs.length < logged + fitting) await new Promise(setImmediate);
      expect((await large()).status).to.equal(400);
    });

    it("reads no body before it knows who asks", async () => {
      const refused = await gateway.ask(tokens(), {
        method: "POST",
        token: null,
        headers: { "Content-Type": "text/plain" },
        body: "x",
      });
      expect(refused.status).to.equal(401);
    });
  });

  describe("paths and methods", () => {
    it("answers 404 in the envelope where there is nothing", async () => {
      for (const path of [
        "/",
        "/v4",
        "/v4/nothing",
        "/v4/Accounts",
        "/v5/accounts",
        "//v4/accounts",
      ]) {
        const { status, json } = await gateway.ask(path);
        expect(status, path).to.equal(404);
        expect(json?.success).to.equal(false);
      }
    });

    it("answers 405 with what a path has, and OPTIONS with the same", async () => {
      const expected: [string, string][] = [
        ["/v4/accounts", "GET, HEAD, OPTIONS"],
        [tokens(), "GET, HEAD, OPTIONS, POST"],
        [`${tokens()}/${"0".repeat(32)}`, "DELETE, GET, HEAD, OPTIONS"],
        [`/v4/accounts/${gateway.accountId}/browser-rendering/pdf`, "OPTIONS, POST"],
        [`/v4/accounts/${gateway.accountId}/browser-run/pdf`, "OPTIONS, POST"],
        ["/v4/openapi.json", "GET, HEAD, OPTIONS"],
        ["/healthz", "GET, HEAD, OPTIONS"],
        ["/metrics", "GET, HEAD, OPTIONS"],
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

  describe("log", () => {
    it("has one line a request, in a closed list of fields, and no secret", async () => {
      await gateway.ask(`${tokens()}?secret=query-secret`, {
        headers: { "X-Request-Id": "id-1", Cookie: "session=cookie-secret" },
      });
      const created = await post(
        '{"name":"body-secret","policies":[{"effect":"allow","permission_groups":[{"id":"apps.read"}]}]}',
      );
      await gateway.ask("/v4/path-secret");
      const lines = gateway.logs.filter(({ msg }) => msg === "request");
      expect(lines).to.have.length(3);
      expect(lines[0]).to.include({
        requestId: "id-1",
        method: "GET",
        route: "/accounts/{account_id}/tokens",
        status: 400,
        finished: true,
        account: gateway.accountId,
        token: gateway.token.slice(3, 35),
        client: "127.0.0.1",
      });
      const text = JSON.stringify(gateway.logs);
      for (const secret of ["query-secret", "cookie-secret", "body-secret", "path-secret"]) {
        expect(text).not.to.contain(secret);
      }
      expect(text).not.to.contain(gateway.token.slice(36));
      expect(text).not.to.contain(created.json?.result.value.slice(36));
    });

    it("believes X-Forwarded-For only where it was told to", async () => {
      const headers = { "X-Forwarded-For": "203.0.113.9" };
      await gateway.ask("/v4/accounts", { headers });
      expect(gateway.logs.at(-1)).to.include({ client: "127.0.0.1" });
      await restart({ config: { trustProxy: "loopback" } });
      await gateway.ask("/v4/accounts", { headers });
      expect(gateway.logs.at(-1)).to.include({ client: "203.0.113.9" });
    });

    it("has an unexpected fault once, with its cause; the client hears nothing of it", async () => {
      await restart({ through: (actors) => failing(actors, new Error("disk on fire")) });
      const { status, json, headers } = await gateway.ask("/v4/accounts");
      expect(status).to.equal(500);
      expect(json?.errors).to.deep.equal([
        { code: 2000, message: "Cannot answer: a fault on our side" },
      ]);
      const faults = gateway.logs.filter(({ level }) => Number(level) >= 50);
      expect(faults).to.have.length(1);
      expect(faults[0]).to.include({ requestId: headers.get("x-request-id") });
      expect(JSON.stringify(faults[0])).to.contain("disk on fire");
    });

    it("has no refusal as a fault, and refusals of the bus keep their status", async () => {
      const refused = new ActorError("unavailable", "Cannot reach account", { retryAfterS: 7 });
      await restart({ through: (actors) => failing(actors, refused) });
      const { status, headers } = await gateway.ask("/v4/accounts");
      expect(status).to.equal(503);
      expect(headers.get("retry-after")).to.equal("7");
      expect(gateway.logs.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
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

    it("counts requests by route and status, in closed lists", async () => {
      await gateway.ask("/v4/accounts");
      await gateway.ask("/v4/accounts", { token: null });
      await gateway.ask("/v4/nothing-known");
      const { text } = await gateway.ask("/metrics", { token: null });
      const line = (labels: string) => `trunkline_http_requests_total{${labels}} 1`;
      expect(text).to.contain(line('method="GET",route="/accounts",status="200"'));
      expect(text).to.contain(line('method="GET",route="/accounts",status="401"'));
      expect(text).to.contain(line('method="GET",route="other",status="404"'));
      expect(text).to.contain("trunkline_http_requests_in_flight 0");
      expect(text).not.to.contain("nothing-known");
    });
  });

  it("answers what is not HTTP with 400 and survives it", async () => {
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1");
    socket.end("GET /v4 HTTP/9.9\r\nbroken\r\n\r\n");
    const [answer] = await once(socket, "data");
    expect(String(answer)).to.match(/^HTTP\/1\.1 400 /);
    expect((await gateway.ask("/healthz")).status).to.equal(200);
  });
});

function spaces(kilobytes: number): ReadableStream {
  let left = kilobytes;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(1024).fill(0x20));
      else {
        controller.enqueue(Buffer.from("{}"));
        controller.close();
      }
    },
  });
}

/** Actors of which none answers. */
function failing(actors: ActorClient, error: Error): ActorClient {
  return { ...actors, call: () => Promise.reject(error) };
}
