import { expect } from "chai";
import express, { type ErrorRequestHandler } from "express";
import { requestLimitActor } from "../../../actors/account/request-limit/request-limit.ts";
import { account } from "../../../schemas/account/account.ts";
import { REVOCATIONS_PER_WINDOW } from "../../../schemas/account/limits.ts";
import { ALL_PERMISSIONS } from "../../../schemas/account/permissions.ts";
import { startHttpServer } from "../../../scripts/testing/loopback-server.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { type Caller, localsOf } from "../../http/locals.ts";
import { oauthWorld, Person } from "../../oauth/testing/oauth-world.ts";
import { giveToken, type TestGateway, testGateway } from "../../testing/test-gateway.ts";
import { limitRequests } from "./limit-requests.ts";

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

  it("revokes a token that has used up the account's window, and only REVOCATIONS_PER_WINDOW times", async () => {
    await restart({ config: { requestsPerWindow: 2 } });
    const leaked = await gateway.tokenWith("browser-rendering.read");
    const { tokens } = await gateway.actors.call(account, gateway.accountId, "listTokens", {});
    const path = `/v4/accounts/${gateway.accountId}/tokens/${tokens.at(-1)?.id}`;
    for (const status of [403, 403, 429]) {
      const used = await gateway.ask(`/v4/accounts/${gateway.accountId}/tokens`, { token: leaked });
      expect(used.status).to.equal(status);
    }
    const remove = (token?: string) =>
      gateway.ask(path, { method: "DELETE", ...(token !== undefined && { token }) });
    // The leaked token can use up its own revocations, and nobody else's.
    for (let made = 0; made < REVOCATIONS_PER_WINDOW; made += 1) {
      expect((await remove(leaked)).status).to.equal(403);
    }
    const past = await remove(leaked);
    expect([past.status, past.headers.get("retry-after")]).to.deep.equal([429, "300"]);
    const { status, headers } = await remove();
    expect(status).to.equal(200);
    expect(headers.get("ratelimit-policy")).to.equal(
      '"default";q=2;w=300, "revocations";q=60;w=300',
    );
    expect(headers.get("ratelimit")).to.equal('"default";r=0;t=300, "revocations";r=59;t=300');
    expect((await gateway.ask("/v4/accounts", { token: leaked })).status).to.equal(401);
  });

  it("is off at 0", async () => {
    const { headers } = await gateway.ask("/v4/accounts");
    expect(headers.has("ratelimit")).to.equal(false);
  });

  it("counts a person of the console apart from the tokens of the account", async function () {
    this.timeout(120_000);
    const world = await oauthWorld({ config: { requestsPerWindow: 2 } });
    try {
      const [url = ""] = world.urls;
      const { accountId } = world;
      const token = await giveToken(world.bus.actors, accountId, ALL_PERMISSIONS);
      const { tokens } = await world.bus.actors.call(account, accountId, "listTokens", {});
      for (const status of [200, 200, 429]) {
        expect((await world.api("/accounts", { token })).status).to.equal(status);
      }
      const person = new Person(url);
      await person.open("/login");
      await person.signIn(world.owner);
      const all = [...person.cookies].map(([name, { value }]) => `${name.split(";")[0]}=${value}`);
      const own = { Cookie: all.join("; "), "X-Trunkline-Session": "use", Origin: url };
      const ask = async (path: string, method = "GET") =>
        (await fetch(`${url}/v4${path}`, { method, headers: own })).status;
      for (const status of [200, 200, 429]) expect(await ask("/user")).to.equal(status);
      const path = `/accounts/${accountId}/tokens/${tokens.at(-1)?.id}`;
      expect(await ask(path, "DELETE")).to.equal(200);
      expect((await world.api("/accounts", { token })).status).to.equal(401);
    } finally {
      await world.stop();
    }
  });

  it("counts the code of apps apart from the tokens of the account, and gives it no revocations", async () => {
    const caller = { accountId: "a".repeat(32), permissions: [] };
    const callers: Record<string, Caller> = {
      token: { ...caller, tokenId: "t" },
      one: { ...caller, tokenId: "app one", app: "one" },
      two: { ...caller, tokenId: "app two", app: "two" },
    };
    const server = express();
    server.use((request, response, next) => {
      const asking = callers[request.path.slice(1)];
      if (asking) localsOf(response).caller = asking;
      next();
    });
    server.use(
      limitRequests(memoryActors({ actors: [requestLimitActor] }), 2, { isRevocation: true }),
    );
    server.use((_request, response) => void response.status(200).end());
    const refuse: ErrorRequestHandler = ({ code }, _request, response, _next) => {
      response.status(code === "rate_limited" ? 429 : 500).end();
    };
    server.use(refuse);
    const listening = await startHttpServer(server);
    const ask = async (name: string) =>
      (await fetch(`http://${listening.address}:${listening.port}/${name}`)).status;
    const statuses = [];
    for (const name of ["one", "two", "one", "two", "token"]) statuses.push(await ask(name));
    await listening.close();
    expect(statuses).to.deep.equal([200, 200, 429, 429, 200]);
  });
});
