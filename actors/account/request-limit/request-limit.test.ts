import { expect } from "chai";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import { requestLimitActor } from "./request-limit.ts";

const windowMs = 10_000;

describe("request-limit", () => {
  it("take() allows requests up to the limit, refuses one more, and restarts when the window ends", () => {
    let state = requestLimitActor.initial;
    const take = (now: number) => {
      const taken = runHandler(requestLimitActor, "take", state, { limit: 2, windowMs }, { now });
      ({ state } = taken);
      return taken;
    };
    expect(take(1_000).reply).to.deep.equal({ allowed: true, limit: 2, remaining: 1, resetS: 10 });
    expect(take(10_999).reply).to.deep.equal({ allowed: true, limit: 2, remaining: 0, resetS: 1 });
    const refused = take(10_999);
    expect(refused.reply).to.deep.equal({ allowed: false, limit: 2, remaining: 0, resetS: 1 });
    expect(refused.changed).to.equal(false);
    expect(take(11_000).reply).to.deep.equal({ allowed: true, limit: 2, remaining: 1, resetS: 10 });
  });

  it("take() leaves a window that a clock step put far into the future", () => {
    const state = { windowEndsAt: 1_000_000, taken: 2 };
    const input = { limit: 2, windowMs };
    const { reply } = runHandler(requestLimitActor, "take", state, input, { now: 0 });
    expect(reply.allowed).to.equal(true);
  });

  it("take() returns no negative remainder after the limit was lowered", () => {
    const state = { windowEndsAt: 5_000, taken: 9 };
    const input = { limit: 2, windowMs };
    const { reply } = runHandler(requestLimitActor, "take", state, input, { now: 0 });
    expect(reply).to.deep.equal({ allowed: false, limit: 2, remaining: 0, resetS: 5 });
  });

  it("giveBack() returns a request to the current window, and never more than were taken", () => {
    const full = { windowEndsAt: 1_000, taken: 1 };
    const back = runHandler(requestLimitActor, "giveBack", full, {}, { now: 999 });
    expect(back.state.taken).to.equal(0);
    const again = runHandler(requestLimitActor, "giveBack", back.state, {}, { now: 999 });
    expect(again.changed).to.equal(false);
    const late = runHandler(requestLimitActor, "giveBack", full, {}, { now: 1_000 });
    expect(late.changed).to.equal(false);
  });

  it("is stored in memory only", () => {
    expect(requestLimitActor.durable).to.equal(false);
  });
});
