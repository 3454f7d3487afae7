import { expect } from "chai";
import { apiToken } from "../../../schemas/account/api-token.ts";
import { type TestGateway, testGateway } from "../../testing/test-gateway.ts";
import { newToken } from "../api-token-text.ts";
import {
  AUTHENTICATION_FAILURES_MAX,
  AUTHENTICATION_WINDOW_MS,
} from "../failed-authentications.ts";

describe("authenticate", () => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await testGateway();
  });
  afterEach(() => gateway.stop());

  it("refuses every kind of invalid token alike, as RFC 6750 requires", async () => {
    const { token } = gateway;
    const wrong = [
      "Bearer x",
      `Bearer ${token}x`,
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`,
      `Bearer tl_${"0".repeat(32)}_${token.slice(36)}`,
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

  it("names the expected form of a malformed header, and does not repeat the header", async () => {
    const { token } = gateway;
    for (const Authorization of [token, "Bearer", `Basic ${token}`, `Bearer ${token} ${token}`]) {
      const { status, text, json, headers } = await gateway.ask("/v4/accounts", {
        token: null,
        headers: { Authorization },
      });
      expect(status).to.equal(401);
      expect(json?.errors[0]?.message).to.contain("Authorization: Bearer <token>");
      expect(text).not.to.contain(token);
      expect(headers.get("www-authenticate")).to.contain('error="invalid_token"');
    }
  });

  it("names the expected header when there is no token", async () => {
    const { status, headers, json } = await gateway.ask("/v4/accounts", { token: null });
    expect(status).to.equal(401);
    expect(headers.get("www-authenticate")).to.equal('Bearer realm="trunkline"');
    expect(json?.errors[0]?.message).to.contain("Authorization: Bearer");
  });

  it("accepts the scheme in any case, and sends no challenge on success", async () => {
    const headers = { Authorization: `bearer  ${gateway.token}` };
    const answer = await gateway.ask("/v4/accounts", { token: null, headers });
    expect(answer.status).to.equal(200);
    expect(answer.headers.has("www-authenticate")).to.equal(false);
  });

  it("answers 429 past the limit of unknown tokens until the window ends, and still admits known clients", async () => {
    const unknown = (token: string) => gateway.ask("/v4/accounts", { token });
    const invented = Array.from({ length: AUTHENTICATION_FAILURES_MAX + 1 }, () => newToken().text);
    expect((await gateway.ask("/v4/accounts")).status).to.equal(200);
    const last = invented.pop() ?? "";
    for (const token of invented) expect((await unknown(token)).status).to.equal(401);
    const refused = await unknown(last);
    expect(refused.status).to.equal(429);
    expect(refused.headers.get("retry-after")).to.equal("60");
    expect(refused.headers.has("www-authenticate")).to.equal(false);
    expect((await gateway.ask("/v4/accounts")).status).to.equal(200);
    gateway.clock.now += AUTHENTICATION_WINDOW_MS;
    expect((await unknown(last)).status).to.equal(401);
  });

  it("admits valid tokens from an address that sends unknown ones, also a token not seen before", async () => {
    const text = await gateway.tokenWith("account.read");
    for (let i = 0; i <= AUTHENTICATION_FAILURES_MAX; i++) {
      await gateway.ask("/v4/accounts", { token: newToken().text });
    }
    expect((await gateway.ask("/v4/accounts", { token: newToken().text })).status).to.equal(429);
    expect((await gateway.ask("/v4/accounts", { token: text })).status).to.equal(200);
  });

  it("limits guesses at one token's secret, and still admits that token if it was valid before", async () => {
    const id = gateway.token.slice(3, 35);
    const guess = () => `tl_${id}_${newToken().text.slice(36)}`;
    expect((await gateway.ask("/v4/accounts")).status).to.equal(200);
    for (let i = 0; i < AUTHENTICATION_FAILURES_MAX; i++) {
      expect((await gateway.ask("/v4/accounts", { token: guess() })).status).to.equal(401);
    }
    expect((await gateway.ask("/v4/accounts", { token: guess() })).status).to.equal(429);
    expect((await gateway.ask("/v4/accounts")).status).to.equal(200);
  });

  it("refuses a revoked token at once", async () => {
    await gateway.actors.call(apiToken, gateway.token.slice(3, 35), "revoke", {});
    expect((await gateway.ask("/v4/accounts")).status).to.equal(401);
  });
});
