import { expect } from "chai";
import { oauthGrant } from "../../schemas/oauth/oauth-grant.ts";
import { until } from "../../scripts/testing/until.ts";
import { TOKEN_CACHED_MS, TOKENS_CACHED_MAX } from "../oauth/tokens/access-tokens.ts";
import { MemoryLive } from "../testing/memory-live.ts";
import { WatchedCache } from "./watched-cache.ts";

const CHANGE = { change: "ended" };

describe("watched-cache", () => {
  let live: MemoryLive;
  let now: number;
  let loads: number;
  let cache: WatchedCache<number>;
  beforeEach(() => {
    live = new MemoryLive();
    now = 1_000;
    loads = 0;
    const bounds = { keptMs: TOKEN_CACHED_MS, entriesMax: TOKENS_CACHED_MAX };
    cache = new WatchedCache({ live, now: () => now, ...bounds });
  });

  const source = (key: string) => ({ contract: oauthGrant, key });
  const get = (name = "a", key = "one") => cache.get(name, source(key), async () => ++loads);

  it("get() caches a value for keptMs and no longer", async () => {
    expect([await get(), await get()]).to.deep.equal([1, 1]);
    now += TOKEN_CACHED_MS - 1;
    expect(await get()).to.equal(1);
    now += 1;
    expect(await get()).to.equal(2);
  });

  it("get() reloads after a change of the actor, and no other actor's value", async () => {
    await get("a", "one");
    await get("b", "one");
    await get("c", "two");
    live.show("oauth-grant", "one", CHANGE);
    await until("it is heard", async () => (await get("a", "one")) > 1);
    expect(await get("b", "one")).to.be.above(3);
    expect(await get("c", "two")).to.equal(3);
  });

  it("get() reloads after missed notifications", async () => {
    await get();
    live.miss("oauth-grant", "one");
    await until("it is heard", async () => (await get()) > 1);
  });

  it("get() does not cache a value that changed while it was loaded", async () => {
    const slow = cache.get("a", source("one"), async () => {
      live.show("oauth-grant", "one", CHANGE);
      await new Promise((resolve) => setImmediate(resolve));
      return ++loads;
    });
    expect(await slow).to.equal(1);
    expect(await get()).to.equal(2);
  });

  it("get() does not cache refusals, and ends their subscriptions", async () => {
    const failed = cache.get("a", source("one"), async () => {
      throw new Error("refused");
    });
    expect(String(await failed.catch((error: unknown) => error))).to.contain("refused");
    expect(live.watchers).to.equal(0);
    expect(await get()).to.equal(1);
  });

  it("get() caches nothing if it cannot subscribe", async () => {
    const deaf = {
      subscribe: async () => {
        throw new Error("no bus");
      },
    };
    cache = new WatchedCache({ live: deaf, now: () => now, keptMs: 1_000, entriesMax: 10 });
    expect([await get(), await get()]).to.deep.equal([1, 2]);
  });

  it("get() caches entriesMax values, and evicts the oldest for one more", async () => {
    for (let number = 0; number < TOKENS_CACHED_MAX; number++) await get(`n${number}`, `${number}`);
    expect([await get("n0", "0"), live.watchers]).to.deep.equal([1, TOKENS_CACHED_MAX]);
    await get("more", "more");
    expect(live.watchers).to.equal(TOKENS_CACHED_MAX);
    expect(await get("n1", "1")).to.equal(2);
    expect(await get("n0", "0")).to.be.above(TOKENS_CACHED_MAX);
  });
});
