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

  it("get() ends the subscription to an actor that has changed, unless a reload needs it", async () => {
    await get("a", "one");
    await get("b", "one");
    live.show("oauth-grant", "one", CHANGE);
    await until("the subscription has ended", () => live.watchers === 0);
    for (let number = 0; number < 20; number += 1) {
      await get("a", `${number}`);
      live.show("oauth-grant", `${number}`, CHANGE);
    }
    await until("all subscriptions have ended", () => live.watchers === 0);
  });

  it("get() caches a reload that begins after a change, although an earlier load ends later", async () => {
    const [slow, later] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()];
    const first = cache.get("a", source("one"), () => slow.promise);
    await new Promise((resolve) => setImmediate(resolve));
    live.show("oauth-grant", "one", CHANGE);
    await new Promise((resolve) => setImmediate(resolve));
    const second = cache.get("a", source("one"), () => later.promise);
    await new Promise((resolve) => setImmediate(resolve));
    slow.resolve(1);
    expect([await first, live.watchers]).to.deep.equal([1, 1]);
    later.resolve(2);
    expect([await second, await get(), live.watchers]).to.deep.equal([2, 2, 1]);
    live.show("oauth-grant", "one", CHANGE);
    loads = 10;
    await until("the change has arrived", async () => (await get()) === 11);
  });

  it("get() never has more subscriptions than entriesMax when all sources change", async () => {
    const entriesMax = 10;
    cache = new WatchedCache({ live, now: () => now, keptMs: 1_000, entriesMax });
    for (let number = 0; number < 2 * entriesMax; number += 1) {
      await get(`n${number}`, `${number}`);
      live.show("oauth-grant", `${number}`, CHANGE);
      await new Promise((resolve) => setImmediate(resolve));
      expect(live.watchers).to.be.at.most(entriesMax);
    }
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
