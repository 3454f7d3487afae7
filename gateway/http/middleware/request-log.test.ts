import { expect } from "chai";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { type TestGateway, testConfig, testGateway } from "../../testing/test-gateway.ts";
import { LOGGED_PATH_CHARS_MAX } from "./request-log.ts";

describe("request log", () => {
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
  const lines = () => gateway.logs.filter(({ msg }) => msg === "request");
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
    gateway.ask(tokens(), {
      method: "POST",
      body,
      headers: { "Content-Type": "application/json", ...headers },
    });

  it("has one line per request, with a fixed list of fields and no secrets", async () => {
    await gateway.ask(`${tokens()}?secret=query-secret`, {
      headers: { "X-Request-Id": "id-1", Cookie: "session=cookie-secret" },
    });
    const created = await post(
      '{"name":"body-secret","policies":[{"effect":"allow","permission_groups":[{"id":"apps.read"}]}]}',
    );
    await gateway.ask("/v4/nothing?key=key-secret");
    expect(lines()).to.have.length(3);
    expect(lines()[0]).to.include({
      requestId: "id-1",
      method: "GET",
      route: "/accounts/{account_id}/tokens",
      status: 200,
      finished: true,
      account: gateway.accountId,
      token: gateway.token.slice(3, 35),
      client: "127.0.0.1",
    });
    const text = JSON.stringify(gateway.logs);
    for (const secret of ["query-secret", "cookie-secret", "body-secret", "key-secret"]) {
      expect(text).not.to.contain(secret);
    }
    expect(text).not.to.contain(gateway.token.slice(36));
    expect(text).not.to.contain(created.json?.result.value.slice(36));
  });

  it("names the refusal", async () => {
    await gateway.ask(`${tokens()}?page=0`);
    await gateway.ask(tokens(), { token: null });
    await gateway.ask(tokens());
    expect(lines().map(({ code }) => code)).to.deep.equal([
      "invalid_request",
      "unauthenticated",
      undefined,
    ]);
  });

  it("has the path of an unknown route, without its query and up to the limit", async () => {
    await gateway.ask("/v4/nothing?key=secret");
    await gateway.ask("/v4/accounts?key=secret", { method: "PUT" });
    await gateway.ask(`/${"a".repeat(LOGGED_PATH_CHARS_MAX - 1)}`);
    await gateway.ask(`/${"a".repeat(LOGGED_PATH_CHARS_MAX)}`);
    await gateway.ask("/docs");
    const longest = `/${"a".repeat(LOGGED_PATH_CHARS_MAX - 1)}`;
    expect(lines().map(({ method, path, status }) => [method, path, status])).to.deep.equal([
      ["GET", "/v4/nothing", 404],
      ["PUT", "/v4/accounts", 405],
      ["GET", longest, 404],
      ["GET", longest, 404],
      ["GET", undefined, 200],
    ]);
  });

  it("records a client that disconnected before the response as 499, as metrics do", async () => {
    const leaving = new AbortController();
    const asked = gateway.ask(`/v4/accounts/${gateway.accountId}/browser-rendering/pdf`, {
      method: "POST",
      json: { html: "hang" },
      signal: leaving.signal,
    });
    await gateway.printer.begun;
    leaving.abort();
    await asked.catch((error: Error) => expect(error.name).to.equal("AbortError"));
    await gateway.printer.cancelled;
    expect(lines()).to.have.length(1);
    expect(lines()[0]).to.include({ status: 499, code: "cancelled", finished: false });
    const { text } = await gateway.ask("/metrics", { token: testConfig.metricsToken ?? null });
    expect(text).to.match(/browser-rendering\/pdf",status="499"\} 1/);
  });

  it("trusts X-Forwarded-For only if configured", async () => {
    const headers = { "X-Forwarded-For": "203.0.113.9" };
    await gateway.ask("/v4/accounts", { headers });
    expect(gateway.logs.at(-1)).to.include({ client: "127.0.0.1" });
    await restart({ config: { trustProxy: "loopback" } });
    await gateway.ask("/v4/accounts", { headers });
    expect(gateway.logs.at(-1)).to.include({ client: "203.0.113.9" });
  });

  it("has an unexpected fault once with its cause, which the client does not see", async () => {
    await restart({ through: (actors) => failing(actors, new Error("disk on fire")) });
    const { status, json, headers } = await gateway.ask("/v4/accounts");
    expect(status).to.equal(500);
    expect(json?.errors).to.deep.equal([
      {
        code: 2000,
        message: "Cannot answer: internal error; its log line has the id of this request",
      },
    ]);
    const faults = gateway.logs.filter(({ level }) => Number(level) >= 50);
    expect(faults).to.have.length(1);
    expect(faults[0]).to.include({ requestId: headers.get("x-request-id") });
    expect(JSON.stringify(faults[0])).to.contain("disk on fire");
  });

  it("records no refusal as a fault, and refusals of the bus keep their status", async () => {
    const refused = new ActorError("unavailable", "Cannot reach account", { retryAfterS: 7 });
    await restart({ through: (actors) => failing(actors, refused) });
    const { status, headers } = await gateway.ask("/v4/accounts");
    expect(status).to.equal(503);
    expect(headers.get("retry-after")).to.equal("7");
    expect(gateway.logs.filter(({ level }) => Number(level) >= 50)).to.deep.equal([]);
  });
});

/** Returns a client of the actors whose calls all fail with this error. */
function failing(actors: ActorClient, error: Error): ActorClient {
  return { ...actors, call: () => Promise.reject(error) };
}
