import { expect } from "chai";
import { oauthGrantActor } from "../../actors/oauth/oauth-grant/oauth-grant.ts";
import { REFRESH_GRACE_MS } from "../../schemas/oauth/limits.ts";
import { authorize, ClientCalls } from "./testing/client-calls.ts";
import { type OAuthWorld, oauthWorld, Person, type TestClient } from "./testing/oauth-world.ts";

describe("a refresh whose answer is lost", function () {
  this.timeout(120_000);
  let world: OAuthWorld;
  let calls: ClientCalls;
  let by: TestClient;
  let first: { access_token: string; refresh_token: string };
  let laterMs = 0;
  const { handlers } = oauthGrantActor;
  const { refresh, find } = handlers;
  // Only the grant sees the later time: the clocks of the bus and of the leases must go on.
  const later: Pick<typeof handlers, "refresh" | "find"> = {
    refresh: (state, input, context) =>
      refresh(state, input, { ...context, now: context.now + laterMs }),
    find: (state, input, context) => find(state, input, { ...context, now: context.now + laterMs }),
  };
  before(async () => {
    Object.assign(handlers, later);
    world = await oauthWorld({ gateways: 2 });
    calls = new ClientCalls(world);
  });
  after(async () => {
    Object.assign(handlers, { refresh, find });
    await world?.stop();
  });
  beforeEach(async () => {
    laterMs = 0;
    by = await world.makeClient();
    const owner = new Person(world.urls[0] ?? "");
    await owner.open("/login");
    await owner.signIn(world.owner);
    first = (await calls.redeem((await authorize(owner, by)).get("code"), { by })).body;
  });

  const refreshed = (token: string, gateway = 0) => calls.refresh(token, { by, gateway });

  it("is repeated after the grace period, and its own tokens open nothing any more", async () => {
    const lost = await refreshed(first.refresh_token);
    expect(lost.status).to.equal(200);
    laterMs = 2 * REFRESH_GRACE_MS;
    const again = await refreshed(first.refresh_token, 1);
    expect(again.status, JSON.stringify(again.body)).to.equal(200);
    expect(await calls.opened(lost.body.access_token)).to.deep.equal([401, 401, 401, 401]);
    expect(await calls.opened(again.body.access_token)).to.deep.equal([200, 200, 200, 200]);
    const next = await refreshed(again.body.refresh_token);
    expect(next.status).to.equal(200);
    // The lost refresh token appears: somebody else has it.
    expect((await refreshed(lost.body.refresh_token)).body.error).to.equal("invalid_grant");
    expect((await refreshed(next.body.refresh_token)).body.error).to.equal("invalid_grant");
    expect(await calls.opened(next.body.access_token)).to.deep.equal([401, 401, 401, 401]);
  });

  it("ends the grant if the access token of the answer was used before", async () => {
    const { body } = await refreshed(first.refresh_token);
    expect(await calls.opened(body.access_token)).to.deep.equal([200, 200, 200, 200]);
    laterMs = 2 * REFRESH_GRACE_MS;
    expect((await refreshed(first.refresh_token)).body.error).to.equal("invalid_grant");
    expect((await refreshed(body.refresh_token)).body.error).to.equal("invalid_grant");
  });
});
