import { expect } from "chai";
import { type TestGateway, testGateway } from "../../testing/test-gateway.ts";

describe("limit requests", () => {
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

  it("counts in RateLimit headers, refuses past the limit, and restarts with the next window", async () => {
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
