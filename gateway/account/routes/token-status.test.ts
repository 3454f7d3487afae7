import { expect } from "chai";
import { START, type TestGateway, testGateway } from "../../testing/test-gateway.ts";

const HOUR_MS = 3_600_000;
const timeOf = (ms: number) => new Date(ms).toISOString();
const wanted = {
  name: "ci",
  policies: [{ effect: "allow", permission_groups: [{ id: "apps.read" }] }],
};

describe("status of a token", () => {
  let gateway: TestGateway;
  let path: string;
  let value: string;
  beforeEach(async () => {
    gateway = await testGateway();
    const tokens = `/v4/accounts/${gateway.accountId}/tokens`;
    const json = { ...wanted, expires_on: timeOf(START + HOUR_MS) };
    const made = (await gateway.ask(tokens, { method: "POST", json })).json?.result;
    path = `${tokens}/${made.id}`;
    value = made.value;
  });
  afterEach(() => gateway.stop());

  const put = async (json: Record<string, unknown>) => {
    const { status, json: answer } = await gateway.ask(path, { method: "PUT", json });
    expect(status, JSON.stringify(answer)).to.equal(200);
    return answer?.result.status;
  };
  const opens = async () =>
    (await gateway.ask("/v4/user/tokens/verify", { token: value })).status === 200;

  it("a disabled token stays so after a change without a status, until it is active again", async () => {
    const until = { ...wanted, expires_on: timeOf(START + 2 * HOUR_MS) };
    expect(await put({ ...until, status: "disabled" })).to.equal("disabled");
    expect(await put({ ...until, name: "renamed" })).to.equal("disabled");
    expect(await opens()).to.equal(false);
    expect(await put({ ...until, status: "active" })).to.equal("active");
    expect(await put(until)).to.equal("active");
    expect(await opens()).to.equal(true);
  });

  it("a disabled token that has expired stays disabled when it is sent back with a later end", async () => {
    const { json } = await gateway.ask(path);
    expect(await put({ ...json?.result, status: "disabled" })).to.equal("disabled");
    gateway.clock.now += HOUR_MS;
    const read = (await gateway.ask(path)).json?.result;
    expect(read.status).to.equal("expired");
    const later = timeOf(gateway.clock.now + HOUR_MS);
    expect(await put({ ...read, expires_on: later })).to.equal("disabled");
    expect(await opens()).to.equal(false);
    expect(await put({ ...read, status: "active", expires_on: later })).to.equal("active");
    expect(await opens()).to.equal(true);
  });

  it("a token that was not disabled opens again with a later end", async () => {
    gateway.clock.now += HOUR_MS;
    const read = (await gateway.ask(path)).json?.result;
    expect([read.status, await opens()]).to.deep.equal(["expired", false]);
    expect(await put({ ...read, expires_on: timeOf(START + 2 * HOUR_MS) })).to.equal("active");
    expect(await opens()).to.equal(true);
  });
});
