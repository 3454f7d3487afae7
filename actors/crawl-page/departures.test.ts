import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { CRAWL_DELAY_MS, TURN_FOLLOW_LATE_MS } from "../../schemas/crawl-limits.ts";
import { type BusActors, busActors } from "../../scripts/testing/bus-actors.ts";
import { until } from "../../scripts/testing/until.ts";
import { systemClock } from "../runtime/clock.ts";
import { Places } from "../runtime/places.ts";
import { beginTurn } from "./begin-turn.ts";
import { Departures } from "./departures.ts";

const newId = () => randomBytes(16).toString("hex");

describe("departures", () => {
  let bus: BusActors;
  before(async () => {
    bus = await busActors({});
  });
  after(() => bus.stop());

  const ahead = { turn: newId(), place: 7 };
  const follow = { place: 8, after: ahead, delayMs: CRAWL_DELAY_MS };

  /** Its first answer tells whom it follows, and there is no other. */
  function following(departures: Departures) {
    const asked: number[] = [];
    const answer = { state: "wait", askAgainInMs: 1, follow, verdicts: [{ allowed: true }] };
    const call = ((...question: Parameters<typeof bus.actors.call>) => {
      asked.push(systemClock.monotonic());
      if (asked.length === 1) return Promise.resolve(answer);
      const { signal } = question[4] ?? {};
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
    }) as typeof bus.actors.call;
    const turn = {
      host: `${newId()}.example`,
      turn: newId(),
      urls: ["http://a.example/"],
      by: newId(),
    };
    const asking = { ...turn, intent: { purposes: ["search" as const] } };
    const { signal } = new AbortController();
    const given = { call, departures, clock: systemClock, signal, places: new Places(1) };
    return { asking, given, asked };
  }

  it("beginTurn() goes a delay after the turn has left that it follows, and within TURN_FOLLOW_LATE_MS", async () => {
    using departures = new Departures({ bus: bus.bus, clock: systemClock });
    const { asking, given, asked } = following(departures);
    const waiting = beginTurn(asking, given);
    await until("the site was asked again", () => asked.length > 1);
    const leftAt = systemClock.monotonic();
    const heard = new AbortController();
    const telling = departures.tellLeft(ahead, leftAt, heard.signal);
    const begun = await waiting;
    heard.abort();
    await telling;
    if (begun.state !== "now") throw new Error("The turn is gone");
    const { startAt, lateAt, place } = begun.moment;
    expect(place).to.equal(follow.place);
    expect(startAt).to.be.above(leftAt + CRAWL_DELAY_MS);
    expect(lateAt).to.be.within(startAt, startAt + TURN_FOLLOW_LATE_MS);
    expect(systemClock.monotonic()).to.be.at.least(startAt);
    begun.release();
  });

  it("beginTurn() does not go where that host wants to be left alone", async () => {
    using departures = new Departures({ bus: bus.bus, clock: systemClock });
    const { asking, given, asked } = following(departures);
    const leaving = new AbortController();
    const waiting = beginTurn(asking, { ...given, signal: leaving.signal }).catch(
      (error: unknown) => error,
    );
    await until("the site was asked again", () => asked.length > 1);
    departures.tellAway(asking.host, 0);
    await until("that is heard", () => departures.isAway(asking.host));
    const heard = new AbortController();
    const telling = departures.tellLeft(ahead, systemClock.monotonic(), heard.signal);
    await departures.hasLeft(ahead, leaving.signal);
    heard.abort();
    await telling;
    const reason = new Error("the worker stops");
    leaving.abort(reason);
    expect(await waiting).to.equal(reason);
  });
});
