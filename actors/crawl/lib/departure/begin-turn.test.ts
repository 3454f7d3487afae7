import { randomBytes } from "node:crypto";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import { expect } from "chai";
import { CRAWL_DELAY_MS, TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { site } from "../../../../schemas/crawl/site.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { type Clock, systemClock } from "../../../runtime/lib/clock.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { siteActor } from "../../site/site.ts";
import { beginTurn, TURN_AHEAD_MS } from "./begin-turn.ts";

const newId = () => randomBytes(16).toString("hex");
const TURN = {
  ...{ host: "a.example", turn: newId(), urls: ["http://a.example/robots.txt"], by: newId() },
  intent: { purposes: ["search" as const] },
};

describe("beginTurn", () => {
  let bus: BusActors;
  before(async () => {
    bus = await busActors({ actors: [siteActor] });
  });
  after(() => bus.stop());

  const newHost = () => `${newId()}.example`;

  /** A turn for a redirect of robots.txt to this host, which needs no job. */
  async function turnAt(host: string) {
    const turn = newId();
    await bus.actors.call(site, host, "visit", { turn });
    const urls = [`http://${host}/robots.txt`];
    return { host, turn, urls, intent: { purposes: ["search" as const] }, by: newId() };
  }

  function parts({
    places = new Semaphore(1),
    clock = systemClock,
    signal = new AbortController().signal,
  } = {}) {
    const asked: number[] = [];
    const call: typeof bus.actors.call = (...question) => {
      asked.push(clock.monotonic());
      return bus.actors.call(...question);
    };
    return { call, clock, signal, places, asked };
  }

  /** Begins a turn whose request leaves at once. */
  async function begun(host: string) {
    const turn = await turnAt(host);
    const given = parts();
    const begun = await beginTurn(turn, given);
    if (begun.state !== "now") throw new Error("The turn is gone");
    begun.release();
    const leftAt = systemClock.monotonic();
    await bus.actors.call(site, host, "requestStarted", { turn: turn.turn });
    return { leftAt, heardBy: systemClock.monotonic() };
  }

  it("beginTurn() returns a place and a start time for the first request at a host", async () => {
    const places = new Semaphore(1);
    const before = systemClock.monotonic();
    const begun = await beginTurn(await turnAt(newHost()), parts({ places }));
    if (begun.state !== "now") throw new Error("The turn is gone");
    expect(begun.atOnce).to.equal(1);
    expect(begun.verdicts).to.deep.equal([{ allowed: true }]);
    const { startAt, lateAt } = begun.moment;
    expect(startAt).to.be.within(before, systemClock.monotonic());
    expect(lateAt).to.be.within(before + TURN_LATE_MS, startAt + TURN_LATE_MS);
    expect(places.free).to.equal(0);
    begun.release();
    expect(places.free).to.equal(1);
  });

  it("beginTurn() waits until TURN_AHEAD_MS before the host's delay since the last request is over", async () => {
    const host = newHost();
    const { leftAt } = await begun(host);
    const next = await beginTurn(await turnAt(host), parts());
    const waitedMs = systemClock.monotonic() - leftAt;
    if (next.state !== "now") throw new Error("The turn is gone");
    // `beginTurn` may return 2 ms too early, because timers may fire slightly early. The start time itself is exact.
    expect(waitedMs).to.be.above(CRAWL_DELAY_MS - TURN_AHEAD_MS - 2);
    expect(next.moment.startAt).to.be.above(leftAt + CRAWL_DELAY_MS);
    expect(next.moment.startAt - systemClock.monotonic()).to.be.at.most(TURN_AHEAD_MS);
  });

  it("beginTurn() calls again before its start time, which a reply's network delay neither shifts nor makes early", async () => {
    const [none, long] = [0, TURN_AHEAD_MS];
    for (const wayMs of [[long, none], [none, long], [none]]) {
      await using world = new StandIn(wayMs);
      const next = await beginTurn(TURN, world);
      if (next.state !== "now") throw new Error("The turn is gone");
      const { startAt, lateAt } = next.moment;
      const spread = startAt - lateAt + TURN_LATE_MS;
      expect(spread, `ways of ${wayMs}`).to.be.within(-1, long / 2);
      expect(startAt).to.be.within(world.momentAt, world.momentAt + long / 2);
      expect(world.asked).to.have.length(2);
    }
  });

  it("beginTurn() computes the start time whatever a reply's network delay, for a site with the same clock", async () => {
    const long = TURN_AHEAD_MS;
    for (const clockId of [systemClock.id, "another machine's"]) {
      await using world = new StandIn([long / 2], clockId);
      const next = await beginTurn(TURN, world);
      if (next.state !== "now") throw new Error("The turn is gone");
      const { startAt, lateAt } = next.moment;
      const lateMs = clockId === systemClock.id ? 0 : long / 2;
      expect(startAt, clockId).to.be.within(world.momentAt + lateMs, world.momentAt + lateMs + 1);
      expect(lateAt).to.be.within(world.momentAt + TURN_LATE_MS - 1, startAt + TURN_LATE_MS);
      next.release();
    }
  });

  it("beginTurn() is never early, nor reports too little lateness, if the process stalls between readings of its clocks", async () => {
    for (const heldUpMs of [{ before: 12 }, { after: 12 }]) {
      await using world = new StandIn([0], systemClock.id);
      world.heldUpMs = { before: 0, after: 0, ...heldUpMs };
      const next = await beginTurn(TURN, world);
      if (next.state !== "now") throw new Error("The turn is gone");
      const { startAt, lateAt } = next.moment;
      expect(startAt).to.be.at.least(world.momentAt);
      expect(lateAt).to.be.at.most(world.momentAt + TURN_LATE_MS);
      next.release();
    }
  });

  it("beginTurn() keeps its start time if the site's host dies before the second call", async () => {
    await using world = new StandIn([0, Number.POSITIVE_INFINITY]);
    const next = await beginTurn(TURN, world);
    if (next.state !== "now") throw new Error("The turn is gone");
    expect(world.asked).to.have.length(2);
    const { startAt, lateAt } = next.moment;
    expect(startAt).to.be.at.least(world.momentAt);
    expect(world.clock.monotonic()).to.be.within(startAt, lateAt);
    next.release();
  });

  it("beginTurn() follows a start time that the site postponed", async () => {
    await using world = new StandIn([0]);
    const waiting = beginTurn(TURN, world);
    expect(world.asked).to.have.length(1);
    world.momentAt += CRAWL_DELAY_MS;
    const next = await waiting;
    if (next.state !== "now") throw new Error("The turn is gone");
    expect(next.moment.startAt).to.be.at.least(world.momentAt);
  });

  it("beginTurn() starts in time if the time of day is set by days between a reply and its arrival", async () => {
    for (const setMs of [-86_400_000, 86_400_000]) {
      const { id } = systemClock;
      await using world = new StandIn([3], id);
      world.setMs = setMs;
      const next = await beginTurn(TURN, world);
      if (next.state !== "now") throw new Error("The turn is gone");
      const { startAt, lateAt } = next.moment;
      expect(startAt).to.be.at.least(world.momentAt);
      expect(lateAt).to.be.at.most(world.momentAt + TURN_LATE_MS);
      next.release();
    }
  });

  it("beginTurn() holds no place during a long wait", async () => {
    await using world = new StandIn([0]);
    const waiting = beginTurn(TURN, world);
    await world.clock.wait(CRAWL_DELAY_MS - TURN_AHEAD_MS - 1);
    expect(world.places.free).to.equal(1);
    const next = await waiting;
    expect(world.places.free).to.equal(0);
    if (next.state === "now") next.release();
  });

  it("beginTurn() reports a turn as gone if the site does not know it or another worker has it", async () => {
    const host = newHost();
    const unknown = { ...(await turnAt(host)), turn: newId() };
    expect(await beginTurn(unknown, parts())).to.deep.equal({ state: "gone" });
    const turn = await turnAt(host);
    expect((await beginTurn(turn, parts())).state).to.equal("now");
    const places = new Semaphore(1);
    const other = { ...turn, by: newId() };
    expect(await beginTurn(other, parts({ places }))).to.deep.equal({ state: "gone" });
    expect(places.free).to.equal(1);
  });

  it("beginTurn() calls again if it got its place too late, and returns a start time in the future", async () => {
    const clock = new SkippingClock();
    const places = new Semaphore(1);
    const release = await places.take(new AbortController().signal);
    const given = parts({ places, clock });
    const waiting = beginTurn(await turnAt(newHost()), given);
    await until("it waits for its place", () => given.asked.length === 1);
    clock.skip(TURN_LATE_MS + 1_000);
    release();
    const next = await waiting;
    if (next.state !== "now") throw new Error("The turn is gone");
    expect(given.asked.length).to.be.above(1);
    expect(next.moment.lateAt).to.be.above(clock.monotonic());
    next.release();
    expect(places.free).to.equal(1);
  });

  it("beginTurn() ends with its signal's reason wherever it waits, and releases its place", async () => {
    await using world = new StandIn([0]);
    const away = new AbortController();
    const given = { ...world, signal: away.signal };
    const waiting = beginTurn(TURN, given).catch((error: unknown) => error);
    await world.clock.wait(CRAWL_DELAY_MS / 2);
    const reason = new Error("the worker stops");
    away.abort(reason);
    expect(await waiting).to.equal(reason);
    expect(world.places.free).to.equal(1);
    const places = new Semaphore(1);
    const held = await places.take(new AbortController().signal);
    const gone = new AbortController();
    const other = parts({ places, signal: gone.signal });
    const forPlace = beginTurn(await turnAt(newHost()), other).catch((error: unknown) => error);
    await until("the site was asked", () => other.asked.length > 0);
    gone.abort(reason);
    expect(await forPlace).to.equal(reason);
    held();
    expect(places.free).to.equal(1);
  });
});

const EPOCH = 1_800_000_000_000;

/**
 * A simulated site that has one turn with a fixed start time. Its clock advances 1 ms with each turn of the event
 * loop.
 */
class StandIn implements AsyncDisposable {
  readonly asked: number[] = [];
  readonly places = new Semaphore(1);
  readonly signal = new AbortController().signal;
  momentAt: number;
  /** Time for which the process is suspended before and after each read of the clock. */
  heldUpMs = { before: 0, after: 0 };
  /** How far the time of day is set forward between each reply and its arrival. */
  setMs = 0;
  readonly #wayMs: readonly number[];
  readonly #clockId: string | undefined;
  #now = 10_000;
  #isOver = false;
  readonly #passing: Promise<void>;

  /** Transit time of each reply; the last one repeats. An infinite one never arrives. */
  constructor(wayMs: readonly number[], clockId?: string) {
    this.#wayMs = wayMs;
    this.#clockId = clockId;
    this.momentAt = this.#now + CRAWL_DELAY_MS;
    this.#passing = this.#pass();
  }

  readonly clock: Clock = {
    ...systemClock,
    now: () => {
      const at = this.#now + this.heldUpMs.before;
      this.#now = at + this.heldUpMs.after;
      return EPOCH + at;
    },
    monotonic: () => this.#now,
    wait: async (ms, signal) => {
      for (const at = this.#now + ms; this.#now < at && !signal?.aborted; ) await turnOfLoop();
    },
  };

  readonly call = (async () => {
    this.asked.push(this.#now);
    const waitMs = Math.max(0, this.momentAt - this.#now);
    const at = EPOCH - this.setMs + this.#now;
    const told = this.#clockId && { told: { at, clock: this.#clockId } };
    const ms = this.#wayMs[Math.min(this.asked.length, this.#wayMs.length) - 1] ?? 0;
    if (ms === Number.POSITIVE_INFINITY) return new Promise<never>(() => {});
    await this.clock.wait(ms);
    return { state: "go", waitMs, atOnce: 1, ...told, verdicts: [{ allowed: true }] };
  }) as never;

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#passing;
  }

  async #pass(): Promise<void> {
    while (!this.#isOver) {
      await turnOfLoop();
      this.#now += 1;
    }
  }
}
