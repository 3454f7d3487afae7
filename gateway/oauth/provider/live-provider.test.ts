import { expect } from "chai";
import { pino } from "pino";
import { oauthKeysActor } from "../../../actors/oauth/oauth-keys/oauth-keys.ts";
import type { ActorClient } from "../../../actors/runtime/calls/actor-client.ts";
import { OAUTH_KEYS_KEY, oauthKeys } from "../../../schemas/oauth/oauth-keys.ts";
import { memoryActors } from "../../../scripts/testing/memory-actors.ts";
import { until } from "../../../scripts/testing/until.ts";
import { FailedAuthentications } from "../../account/failed-authentications.ts";
import { cookieNames } from "../../account/pages/browser-cookies.ts";
import { linkBelow } from "../../pages/page.ts";
import { MemoryLive } from "../../testing/memory-live.ts";
import { libraryPages } from "../pages/library-pages.ts";
import { KEYS_CHECK_MS, LiveProvider } from "./live-provider.ts";

const PUBLIC_URL = "http://127.0.0.1:8787";

describe("live-provider", () => {
  let now: number;
  let asked: number;
  let isAway: boolean;
  let live: MemoryLive;
  let holder: LiveProvider;
  let stopping: AbortController;
  beforeEach(() => {
    now = Date.now();
    asked = 0;
    isAway = false;
    live = new MemoryLive();
    stopping = new AbortController();
    const memory = memoryActors({ actors: [oauthKeysActor], now: () => now });
    const call: ActorClient["call"] = async (contract, key, message, ...rest) => {
      if (message === "get") asked += 1;
      if (isAway) throw new Error("away");
      return memory.call(contract, key, message, ...rest);
    };
    holder = new LiveProvider({
      actors: { ...memory, call },
      live,
      logger: pino({ level: "silent" }),
      now: () => now,
      publicUrl: PUBLIC_URL,
      requestsPerWindow: 0,
      cookies: cookieNames(PUBLIC_URL),
      failed: new FailedAuthentications(() => now),
      pages: libraryPages(linkBelow(PUBLIC_URL)),
      introspections: { record() {} },
      stopping: stopping.signal,
    });
  });
  afterEach(() => stopping.abort());

  it("provider() checks the keys every KEYS_CHECK_MS, and returns the same provider while they are unchanged", async () => {
    const first = await holder.provider();
    now += KEYS_CHECK_MS - 1;
    expect(await holder.provider()).to.equal(first);
    expect(asked).to.equal(1);
    now += 1;
    expect(await holder.provider()).to.equal(first);
    await until("they were looked for", () => asked === 2);
    expect(await holder.provider()).to.equal(first);
  });

  it("provider() loads keys at once when they change", async () => {
    const secret = await holder.secret();
    live.show(oauthKeys.kind, OAUTH_KEYS_KEY, { change: "keys" });
    await until("they were looked for", async () => {
      await holder.provider();
      return asked > 1;
    });
    expect(await holder.secret()).to.equal(secret);
  });

  it("provider() continues with its keys while the actor is unreachable, and fails if it has none", async () => {
    isAway = true;
    const failed = await holder.provider().catch((error: unknown) => error);
    expect(String(failed)).to.contain("away");
    isAway = false;
    const first = await holder.provider();
    isAway = true;
    now += KEYS_CHECK_MS;
    expect(await holder.provider()).to.equal(first);
  });
});
