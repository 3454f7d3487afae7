import { expect } from "chai";
import {
  AUTHENTICATION_CLIENTS_MAX,
  AUTHENTICATION_FAILURES_MAX,
  AUTHENTICATION_WINDOW_MS,
} from "../schemas/limits.ts";
import { FailedAuthentications } from "./failed-authentications.ts";

describe("FailedAuthentications", () => {
  let now: number;
  let failed: FailedAuthentications;
  beforeEach(() => {
    now = 1_000;
    failed = new FailedAuthentications(() => now);
  });
  const fail = (address: string, count: number) => {
    for (let i = 0; i < count; i++) {
      expect(failed.begin(address, `bad ${i}`)).to.equal(0);
      failed.settle(address, `bad ${i}`, "unknown");
    }
  };

  it("begin() lets as many fail as the limit, and no more until the window ends", () => {
    fail("a", AUTHENTICATION_FAILURES_MAX);
    now += AUTHENTICATION_WINDOW_MS - 1_500;
    expect(failed.begin("a", "x")).to.equal(2);
    expect(failed.begin("b", "x")).to.equal(0);
    now += 1_500;
    fail("a", AUTHENTICATION_FAILURES_MAX);
    expect(failed.begin("a", "x")).to.equal(AUTHENTICATION_WINDOW_MS / 1_000);
  });

  it("begin() counts those that are not settled, and one token once", () => {
    for (let i = 0; i < 2 * AUTHENTICATION_FAILURES_MAX; i++) {
      expect(failed.begin("a", "same")).to.equal(0);
    }
    for (let i = 1; i < AUTHENTICATION_FAILURES_MAX; i++) failed.begin("a", `bad ${i}`);
    expect(failed.begin("a", "x")).to.be.above(0);
    failed.settle("a", "same", "good");
    expect(failed.begin("a", "x")).to.equal(0);
  });

  it("begin() lets a token pass that was good in this window, from its address only", () => {
    // Its address's window began earlier, and ends before the token is forgotten.
    failed.begin("a", "earlier");
    failed.settle("a", "earlier", "unclear");
    now += 10;
    failed.settle("a", "good", "good");
    now += AUTHENTICATION_WINDOW_MS - 1;
    fail("a", AUTHENTICATION_FAILURES_MAX);
    fail("b", AUTHENTICATION_FAILURES_MAX);
    expect(failed.begin("a", "good")).to.equal(0);
    expect(failed.begin("b", "good")).to.be.above(0);
    now += 1;
    expect(failed.begin("a", "good")).to.be.above(0);
  });

  it("begin() forgets a token that is good no more", () => {
    failed.settle("a", "good", "good");
    failed.settle("a", "good", "unknown");
    fail("a", AUTHENTICATION_FAILURES_MAX - 1);
    expect(failed.begin("a", "good")).to.be.above(0);
  });

  it("begin() forgets the oldest of more clients than the limit", () => {
    fail("a", AUTHENTICATION_FAILURES_MAX);
    for (let i = 1; i < AUTHENTICATION_CLIENTS_MAX; i++) failed.begin(`client ${i}`, "x");
    expect(failed.begin("a", "x")).to.be.above(0);
    failed.begin("one more", "x");
    expect(failed.begin("a", "x")).to.equal(0);
  });
});
