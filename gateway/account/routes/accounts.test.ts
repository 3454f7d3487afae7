import { expect } from "chai";
import { openAccount, START, type TestGateway, testGateway } from "../../testing/test-gateway.ts";

describe("routes of accounts", () => {
  let gateway: TestGateway;
  before(async () => {
    gateway = await testGateway();
  });
  after(() => gateway.stop());

  it("listAccounts() lists the token's own account, whatever its permissions", async () => {
    await openAccount(gateway.actors, "Two");
    const token = await gateway.tokenWith("apps.read");
    const { status, json } = await gateway.ask("/v4/accounts", { token });
    expect(status).to.equal(200);
    const own = {
      id: gateway.accountId,
      name: "One",
      type: "standard",
      created_on: new Date(START).toISOString(),
    };
    expect(json?.result).to.deep.equal([own]);
    expect(json?.result_info).to.include({ count: 1, total_count: 1, total_pages: 1 });
    const one = await gateway.ask(`/v4/accounts/${gateway.accountId}`, { token });
    expect(one.json?.result).to.deep.equal(own);
  });

  it("listAccounts() finds by name", async () => {
    const found = await gateway.ask("/v4/accounts?name=One&page=1&per_page=50&direction=desc");
    expect(found.json?.result).to.have.length(1);
    expect((await gateway.ask("/v4/accounts?name=Two")).json?.result).to.deep.equal([]);
  });

  it("getAccount() answers alike for another account and an unknown one", async () => {
    const other = await openAccount(gateway.actors, "Two");
    for (const id of [other, "f".repeat(32), "x", "%2e%2e"]) {
      const { status, json } = await gateway.ask(`/v4/accounts/${id}`);
      expect(status).to.equal(404);
      expect(json?.errors[0]?.code).to.equal(1004);
    }
  });

  it("getAccount() ignores a query it does not know", async () => {
    const { status } = await gateway.ask(`/v4/accounts/${gateway.accountId}?a=1`);
    expect(status).to.equal(200);
  });
});
