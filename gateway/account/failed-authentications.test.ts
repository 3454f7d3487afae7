import { expect } from "chai";
import { ActorError } from "../../schemas/errors.ts";
import {
  type Attempt,
  AUTHENTICATION_CLIENTS_MAX,
  AUTHENTICATION_FAILURES_MAX,
  AUTHENTICATION_WAITING_MAX,
  AUTHENTICATION_WINDOW_MS,
  FailedAuthentications,
  LOOKUPS_AT_ONCE_MAX,
  SLOWED_LOOKUP_MS,
  SLOWED_LOOKUPS_MAX,
} from "./failed-authentications.ts";

describe("FailedAuthentications", () => {
  let now: number;
  let failed: FailedAuthentications;
  beforeEach(() => {
    now = 1_000;
    failed = new FailedAuthentications(() => now, 0);
  });
  const begin = (address: string, identity: string, proof: string) =>
    failed.begin(address, { identity, proof });
  const settle = async (
    address: string,
    identity: string,
    proof: string,
    outcome: "good" | "unknown" | "unclear",
  ) => (await begin(address, identity, proof)).settle(outcome);
  /** Makes `count` wrong guesses for one identity. */
  const guess = async (address: string, identity: string, count: number) => {
    for (let i = 0; i < count; i++) await settle(address, identity, `bad ${i}`, "unknown");
  };
  /** Makes `count` wrong guesses, each for another identity. */
  const invent = async (address: string, count: number) => {
    for (let i = 0; i < count; i++) await settle(address, `invented ${i}`, "bad", "unknown");
  };
  const refusal = async (beginning: Promise<Attempt>) => {
    const error: unknown = await beginning.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return error instanceof ActorError ? [error.code, error.details.retryAfterS] : error;
  };

  it("begin() allows failed guesses at an identity up to the limit, and none more until the window ends", async () => {
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    now += AUTHENTICATION_WINDOW_MS - 1_500;
    expect(await refusal(begin("a", "x", "right"))).to.deep.equal(["rate_limited", 2]);
    expect(await settle("b", "x", "bad", "unknown")).to.equal(0);
    now += 1_500;
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    const whole = AUTHENTICATION_WINDOW_MS / 1_000;
    expect(await refusal(begin("a", "x", "right"))).to.deep.equal(["rate_limited", whole]);
  });

  it("begin() refuses an identity at one address, and not at its neighbours in the network", async () => {
    await guess("2001:db8::1", "x", AUTHENTICATION_FAILURES_MAX);
    expect(await refusal(begin("2001:db8::1", "x", "right"))).to.have.length(2);
    expect(await settle("2001:db8::2", "x", "right", "good")).to.equal(0);
    // Apart from this refusal, failures are counted for the whole network.
    expect(await settle("2001:db8::3", "y", "bad", "unknown")).to.equal(60);
  });

  it("begin() admits another identity from an address that failed too often", async () => {
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    for (let i = 0; i < 2 * AUTHENTICATION_FAILURES_MAX; i++) {
      expect(await settle("a", `neighbour ${i}`, "right", "good")).to.equal(0);
    }
  });

  it("settle() returns the wait once an address has sent more unknown credentials than the limit", async () => {
    await invent("a", AUTHENTICATION_FAILURES_MAX - 1);
    expect(await settle("a", "y", "bad", "unknown")).to.equal(0);
    expect(await settle("a", "z", "bad", "unknown")).to.equal(60);
    expect(await settle("a", "z", "cut off", "unclear")).to.equal(0);
    expect(await settle("a", "z", "right", "good")).to.equal(0);
    expect(await settle("b", "z", "bad", "unknown")).to.equal(0);
  });

  it("begin() admits a few lookups at a time from an address that failed too often, in order of arrival", async () => {
    await invent("a", AUTHENTICATION_FAILURES_MAX);
    const running = [];
    for (let i = 0; i < SLOWED_LOOKUPS_MAX; i++) running.push(await begin("a", `${i}`, "bad"));
    const begun: number[] = [];
    const waiting = Array.from({ length: AUTHENTICATION_WAITING_MAX }, async (_, i) => {
      const attempt = await begin("a", `waiting ${i}`, "bad");
      begun.push(i);
      attempt.settle("unclear");
    });
    expect(await refusal(begin("a", "one more", "bad"))).to.deep.equal(["rate_limited", 5]);
    await settle("b", "x", "right", "good");
    expect(begun).to.deep.equal([]);
    for (const attempt of running) attempt.settle("unknown");
    await Promise.all(waiting);
    expect(begun).to.deep.equal(Array.from(begun.keys()));
    // No place is lost.
    for (let i = 0; i < SLOWED_LOOKUPS_MAX; i++) await begin("a", `after ${i}`, "bad");
  });

  it("begin() refuses no right credential of many that come at once from an address", async () => {
    const outcomes = Array.from({ length: LOOKUPS_AT_ONCE_MAX + 200 }, async (_, i) =>
      (await begin("a", `${i}`, "right")).settle("good"),
    );
    expect(new Set(await Promise.all(outcomes))).to.deep.equal(new Set([0]));
  });

  it("begin() drops a waiting request whose client leaves", async () => {
    await invent("a", AUTHENTICATION_FAILURES_MAX);
    const running: Attempt[] = [];
    for (let i = 0; i < SLOWED_LOOKUPS_MAX; i++) running.push(await begin("a", `${i}`, "bad"));
    const gone = new AbortController();
    const left = Array.from({ length: AUTHENTICATION_WAITING_MAX }, (_, i) =>
      failed.begin("a", { identity: `left ${i}`, proof: "bad" }, gone.signal).catch(String),
    );
    expect(await refusal(begin("a", "past", "bad"))).to.have.length(2);
    gone.abort("gone");
    expect(new Set(await Promise.all(left))).to.deep.equal(new Set(["gone"]));
    const neighbour = begin("a", "neighbour", "right");
    running[0]?.settle("unknown");
    (await neighbour).settle("good");
    // If the client has already left when `begin` is called, the call does not wait in the queue.
    const late = failed.begin("a", { identity: "late", proof: "bad" }, gone.signal).catch(String);
    const next = begin("a", "next", "bad");
    for (const attempt of running.slice(1)) attempt.settle("unknown");
    (await next).settle("unknown");
    expect(await Promise.race([late, "waits"])).to.not.equal("waits");
  });

  it("begin() admits LOOKUPS_AT_ONCE_MAX lookups at once from an address, and then a few", async () => {
    const begun: Attempt[] = [];
    const together = LOOKUPS_AT_ONCE_MAX + SLOWED_LOOKUPS_MAX;
    for (let i = 0; i < together; i++) begun.push(await begin("a", `invented ${i}`, "bad"));
    let isBegun = false;
    const next = begin("a", "one more", "bad").then(() => {
      isBegun = true;
    });
    await begin("b", "x", "right");
    expect(isBegun).to.equal(false);
    for (const attempt of begun) attempt.settle("unknown");
    await next;
  });

  it("begin() gives each place of an address that failed too often away after SLOWED_LOOKUP_MS", async () => {
    failed = new FailedAuthentications(() => now);
    await invent("a", AUTHENTICATION_FAILURES_MAX);
    const startedAt = performance.now();
    const turns = 5;
    for (let i = 0; i < turns * SLOWED_LOOKUPS_MAX; i++)
      await settle("a", `${i}`, "bad", "unknown");
    expect(performance.now() - startedAt).to.be.at.least((turns - 1) * (SLOWED_LOOKUP_MS - 1));
  });

  it("begin() counts unsettled guesses, and each credential once", async () => {
    const same = await begin("a", "x", "same");
    for (let i = 0; i < 2 * AUTHENTICATION_FAILURES_MAX; i++) await begin("a", "x", "same");
    for (let i = 1; i < AUTHENTICATION_FAILURES_MAX; i++) await begin("a", "x", `bad ${i}`);
    expect(await refusal(begin("a", "x", "next"))).to.have.length(2);
    same.settle("good");
    await begin("a", "x", "next");
  });

  it("begin() always admits a credential that was valid before, from any address", async () => {
    await settle("a", "x", "right", "good");
    now += 10 * AUTHENTICATION_WINDOW_MS;
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    await guess("b", "x", AUTHENTICATION_FAILURES_MAX);
    await settle("a", "x", "right", "good");
    await settle("b", "x", "right", "unclear");
    await settle("b", "x", "right", "good");
  });

  it("begin() forgets a credential that is no longer valid", async () => {
    await settle("a", "x", "right", "good");
    await settle("a", "x", "right", "unknown");
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    expect(await refusal(begin("a", "x", "right"))).to.have.length(2);
  });

  it("begin() evicts the oldest addresses and valid credentials past the limit", async () => {
    await settle("a", "x", "right", "good");
    await guess("a", "x", AUTHENTICATION_FAILURES_MAX);
    for (let i = 1; i < AUTHENTICATION_CLIENTS_MAX; i++) {
      await settle(`address ${i}`, `${i}`, "right", "good");
    }
    await settle("a", "x", "right", "unclear");
    expect(await refusal(begin("a", "x", "bad"))).to.have.length(2);
    await settle("one more", "y", "right", "good");
    await begin("a", "x", "right");
    await begin("a", "x", "bad");
  });
});
