import { expect } from "chai";
import { apiToken } from "../../schemas/api-token.ts";
import { type TestGateway, testGateway } from "../testing/test-gateway.ts";

describe("authenticate", () => {
  let gateway: TestGateway;
  beforeEach(async () => {
    gateway = await testGateway();
  });
  afterEach(() => gateway.stop());

  it("refuses every kind of wrong token alike, as RFC 6750 says", async () => {
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

  it("says what is expected where the header has another form, and does not repeat it", async () => {
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
