import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { TURN_LATE_MS } from "../../../../schemas/crawl/limits.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { atAnyTime, type Departure, inTime, type Left, NotMade, TooLate } from "./departure.ts";

const TURN = {
  ...{ host: "a.example", turn: "t", urls: ["http://a.example/"], by: "w" },
  intent: { purposes: ["search" as const] },
};
const go = (waitMs: number) => ({
  ...{ state: "go", waitMs, atOnce: 1, verdicts: [{ allowed: true }] },
});
const momentAt = (startAt: number) => ({ startAt, lateAt: startAt + TURN_LATE_MS });
const failure = (work: Promise<unknown>) => work.catch((error: unknown) => error);

describe("inTime", () => {
  /** Makes a request at a site with these replies in order. Time stands still unless the test advances it. */
  function made<T>(
    make: (departure: Departure, pass: (ms: number) => void) => Promise<T>,
    {
      answers = [],
      ...more
    }: { answers?: object[]; ended?: AbortSignal; onLeft?: (left: Left) => Promise<unknown> } = {},
  ) {
    let now = 1_024;
    const clock: Clock = { ...systemClock, monotonic: () => now };
    const call = async () => answers.shift() ?? { state: "gone" };
    const signal = new AbortController().signal;
    const parts = { clock, signal, call: call as never, ...more };
    const pass = (ms: number) => {
      now += ms;
    };
    return inTime(TURN, parts, momentAt(now), (departure) => make(departure, pass));
  }

  it("lets a request leave until its deadline and not after it", async () => {
    await made(async ({ mayLeave, signal }, pass) => {
      pass(TURN_LATE_MS);
      expect(mayLeave()).to.equal(true);
      pass(1);
      expect(mayLeave()).to.equal(false);
      expect(signal.reason).to.be.instanceOf(TooLate);
    });
  });

  it("cancels no request that is leaving, however late its departure is reported", async () => {
    await made(async ({ onStarting, onStarted, mayLeave }, pass) => {
      onStarting();
      pass(2 * TURN_LATE_MS);
      expect(mayLeave()).to.equal(true);
      onStarted();
      expect(mayLeave()).to.equal(true);
    });
  });

  it("due() resolves at the start time, or the given time before it, and never for a forbidden request", async () => {
    const clock = new SkippingClock();
    const { signal } = new AbortController();
    const call = (async () => go(0)) as never;
    const startAt = clock.monotonic() + 60_000;
    await inTime(TURN, { clock, signal, call }, momentAt(startAt), async ({ due }) => {
      await due(59_950);
      expect(clock.monotonic()).to.be.within(startAt - 59_950, startAt - 1);
      const last = due();
      clock.skip(startAt + 1 - clock.monotonic());
      await last;
      expect(clock.monotonic()).to.be.at.least(startAt);
    });
    const away = new AbortController();
    const parts = { clock, signal: away.signal, call };
    const late = inTime(TURN, parts, momentAt(clock.monotonic() + 60_000), ({ due }) => {
      setImmediate(() => away.abort(new Error("the turn is over")));
      return due();
    });
    expect(await failure(late)).to.have.property("message", "the turn is over");
  });

  it("reports the longest possible lateness of each request, from the call for its moment", async () => {
    const told: Left[] = [];
    const answers = [go(0)];
    await made(
      async ({ onStarted, oneMore }, pass) => {
        pass(7.25);
        onStarted();
        pass(1_000);
        await oneMore();
        pass(3);
        onStarted();
      },
      { answers, onLeft: async (left) => told.push(left) },
    );
    expect(told).to.deep.equal([
      { again: false, lateMs: 8 },
      { again: true, lateMs: 3 },
    ]);
  });

  it("requests another start time only once the departure of the first was reported or cannot be", async () => {
    for (const end of ["resolve", "reject"] as const) {
      const answers: object[] = [];
      const known = Promise.withResolvers<void>();
      const more = made(
        ({ onStarted, oneMore }) => {
          onStarted();
          return oneMore();
        },
        { answers, onLeft: () => known.promise },
      );
      await turn();
      // The reply is added only now. So a call before this line would have got the reply `gone`.
      answers.push(go(0));
      known[end]();
      expect(await more).to.equal(true);
    }
  });

  it("keeps connecting as long as the site replies go without a wait", async () => {
    let asked = 0;
    const call = async () => {
      asked += 1;
      return go(0);
    };
    let now = 1_024;
    const wait = async (ms: number, signal?: AbortSignal) => {
      for (const until = now + ms; now < until && !signal?.aborted; ) await turn();
    };
    const clock: Clock = { ...systemClock, monotonic: () => now, wait };
    const { signal } = new AbortController();
    const parts = { clock, signal, call: call as never };
    await inTime(TURN, parts, momentAt(now), async (departure) => {
      for (const until = now + 2.2 * TURN_LATE_MS; now < until; now += 10) {
        for (let turns = 0; turns < 3; turns++) await turn();
        expect(departure.mayLeave()).to.equal(true);
      }
    });
    expect(asked).to.be.at.least(3);
  });

  it("requests no other start time if the request may have left unnoticed", async () => {
    const late = made(async ({ onUnseen, mayLeave, signal }, pass) => {
      onUnseen();
      pass(TURN_LATE_MS + 1);
      mayLeave();
      signal.throwIfAborted();
    });
    expect(await failure(late)).to.be.instanceOf(NotMade);
  });

  it("lets no request of an ended crawl leave, and cancels none that has left", async () => {
    const ended = new AbortController();
    await made(
      async (departure) => {
        departure.onStarted();
        ended.abort();
        expect(departure.mayLeave()).to.equal(true);
      },
      { ended: ended.signal },
    );
    await made(
      async ({ mayLeave, signal }) => {
        expect(mayLeave()).to.equal(false);
        expect(signal.reason).to.be.instanceOf(NotMade);
      },
      { ended: ended.signal },
    );
  });

  it("oneMore() waits for another start time, at which the next request leaves", async () => {
    const answers = [{ state: "wait", askAgainInMs: 0 }, go(0)];
    await made(
      async ({ onStarted, oneMore, mayLeave, signal }, pass) => {
        onStarted();
        pass(10 * TURN_LATE_MS);
        expect(await oneMore()).to.equal(true);
        pass(TURN_LATE_MS + 1);
        expect(mayLeave()).to.equal(false);
        expect(signal.aborted).to.equal(true);
      },
      { answers },
    );
    expect(answers).to.deep.equal([]);
  });

  it("oneMore() is refused if the turn is over or the address is now disallowed", async () => {
    const forbidden = { ...go(0), verdicts: [{ allowed: false, reason: "line 1" }] };
    for (const answer of [{ state: "gone" }, forbidden]) {
      await made(
        async ({ onStarted, oneMore, signal }) => {
          onStarted();
          expect(await oneMore()).to.equal(false);
          expect(signal.aborted).to.equal(false);
        },
        { answers: [answer] },
      );
    }
  });
});

describe("atAnyTime", () => {
  it("lets requests leave until their turn or their crawl ends", async () => {
    for (const over of ["signal", "ended"] as const) {
      const controllers = { signal: new AbortController(), ended: new AbortController() };
      const { signal, ended } = controllers;
      const departure = atAnyTime({ signal: signal.signal, ended: ended.signal });
      expect(departure.mayLeave()).to.equal(true);
      expect(await departure.oneMore()).to.equal(true);
      controllers[over].abort();
      expect(departure.mayLeave()).to.equal(false);
      expect(await departure.oneMore()).to.equal(false);
    }
  });
});
