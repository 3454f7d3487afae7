import { expect } from "chai";
import { appUsageActor } from "../../actors/apps/app-usage/app-usage.ts";
import { ActorError } from "../../schemas/errors.ts";
import { memoryActors } from "../../scripts/testing/memory-actors.ts";
import { ACCOUNTS_KEPT_MAX, AccountRoom, APP_USAGE_KEPT_MS } from "./account-room.ts";

describe("AccountRoom", () => {
  const world = (bytes = 1) => {
    const actors = memoryActors({ actors: [appUsageActor] });
    const state = { now: 0, asked: 0, fails: false };
    const room = new AccountRoom({
      actors: {
        call: (...parameters) => {
          state.asked += 1;
          if (state.fails) return Promise.reject(new ActorError("unavailable", "Cannot reach it"));
          return actors.call(...parameters);
        },
      },
      limits: { agents: 1, bytes },
      now: () => state.now,
    });
    return { room, state };
  };

  it("check() asks once in a while, of as many accounts as it keeps, the latest of them", async () => {
    const { room, state } = world();
    const all = Array.from({ length: ACCOUNTS_KEPT_MAX + 1 }, (_, index) => String(index));
    for (const account of all.slice(0, -1)) await room.check(account);
    for (const account of all.slice(0, -1)) await room.check(account);
    expect(state.asked).to.equal(ACCOUNTS_KEPT_MAX);
    await room.check(all.at(-1) ?? "");
    await room.check("1");
    expect(state.asked).to.equal(ACCOUNTS_KEPT_MAX + 1);
    await room.check("0");
    expect(state.asked).to.equal(ACCOUNTS_KEPT_MAX + 2);
    state.now += APP_USAGE_KEPT_MS;
    await room.check("0");
    expect(state.asked).to.equal(ACCOUNTS_KEPT_MAX + 3);
  });

  it("check() lets a request pass if the usage is unknown, and does not ask without a limit", async () => {
    const failing = world();
    failing.state.fails = true;
    await failing.room.check("a");
    expect(failing.state.asked).to.equal(1);
    const unlimited = world(0);
    await unlimited.room.check("a");
    expect(unlimited.state.asked).to.equal(0);
  });
});
