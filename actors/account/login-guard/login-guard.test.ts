import { expect } from "chai";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import {
  GUESSES_KEPT_MS,
  GUESSES_PER_SOURCE_COUNTED,
  loginGuardActor,
  SOURCE_GUESSES_FREE,
  SOURCE_PAUSE_MS,
  SOURCE_PAUSE_MS_MAX,
  SOURCES_KEPT_MAX,
  STRANGER_GUESSES_FREE,
  STRANGER_PAUSE_MS,
  STRANGER_PAUSE_MS_MAX,
} from "./login-guard.ts";

describe("login-guard", () => {
  let state: typeof loginGuardActor.initial;
  let now: number;
  beforeEach(() => {
    state = loginGuardActor.initial;
    now = 1_000_000_000;
  });

  function take(from: string, isKnown = false): number {
    const handled = runHandler(loginGuardActor, "take", state, { from, isKnown }, { now });
    state = handled.state as typeof state;
    return handled.reply.waitMs;
  }
  function passed(from: string) {
    const handled = runHandler(loginGuardActor, "passed", state, { from }, { now });
    state = handled.state as typeof state;
    return handled;
  }
  function unchecked(from: string) {
    const handled = runHandler(loginGuardActor, "unchecked", state, { from }, { now });
    state = handled.state as typeof state;
  }
  const forget = () => runHandler(loginGuardActor, "forget", state, {}, { now });
  /** Tries wrong passwords from just as many networks as are needed until every unknown source must wait. */
  function tryFromEverywhere() {
    const networks = STRANGER_GUESSES_FREE / GUESSES_PER_SOURCE_COUNTED;
    for (let network = 0; network < networks; network++) {
      for (let i = 0; i < GUESSES_PER_SOURCE_COUNTED; i++) expect(take(`n${network}`)).to.equal(0);
    }
  }

  it("take() allows the free attempts of a source, and then one after each pause, which doubles up to its limit", () => {
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) expect(take("one")).to.equal(0);
    let pauseMs = SOURCE_PAUSE_MS;
    for (let i = 0; i < 10; i++) {
      expect(take("one")).to.equal(pauseMs);
      now += pauseMs - 1;
      expect(take("one")).to.equal(1);
      now += 1;
      expect(take("one")).to.equal(0);
      pauseMs = Math.min(2 * pauseMs, SOURCE_PAUSE_MS_MAX);
    }
    expect(pauseMs).to.equal(SOURCE_PAUSE_MS_MAX);
  });

  it("unchecked() takes back the last attempt of a source, also where it counts for all strangers", () => {
    unchecked("one");
    expect(state).to.deep.equal(loginGuardActor.initial);
    for (let i = 0; i < 100; i++) {
      expect(take("one")).to.equal(0);
      unchecked("one");
    }
    expect(state.sources).to.deep.equal([]);
    expect(state.strangers.tries).to.equal(0);
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) expect(take("one")).to.equal(0);
    expect(state.strangers.tries).to.equal(GUESSES_PER_SOURCE_COUNTED);
    unchecked("one");
    expect(state.strangers.tries).to.equal(GUESSES_PER_SOURCE_COUNTED);
    expect(take("one")).to.equal(0);
    expect(take("one")).to.equal(SOURCE_PAUSE_MS);
  });

  it("take() from one network delays nobody else, however many attempts it makes", () => {
    for (let i = 0; i < 1_000; i++) {
      take("one");
      now += 60_000;
    }
    expect(take("two")).to.equal(0);
  });

  it("take() delays all unknown sources after many failures, and no known browser", () => {
    tryFromEverywhere();
    let pauseMs = STRANGER_PAUSE_MS;
    for (let i = 0; i < 8; i++) {
      expect(take(`new${i}`)).to.equal(pauseMs);
      expect(take("n0")).to.equal(pauseMs);
      expect(take(`browser${i}`, true)).to.equal(0);
      now += pauseMs - 1;
      expect(take(`new${i}`)).to.equal(1);
      now += 1;
      expect(take(`new${i}`)).to.equal(0);
      pauseMs = Math.min(2 * pauseMs, STRANGER_PAUSE_MS_MAX);
    }
    expect(pauseMs).to.equal(STRANGER_PAUSE_MS_MAX);
  });

  it("take() with one attempt below the free number delays nobody", () => {
    tryFromEverywhere();
    passed("n0");
    for (let i = 1; i < GUESSES_PER_SOURCE_COUNTED; i++) take("n0");
    expect(take("new")).to.equal(0);
    expect(take("newer")).to.equal(STRANGER_PAUSE_MS);
  });

  it("take() delays a known browser for its own failures", () => {
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) expect(take("browser", true)).to.equal(0);
    expect(take("browser", true)).to.equal(SOURCE_PAUSE_MS);
    expect(take("another", true)).to.equal(0);
    expect(take("new")).to.equal(0);
  });

  it("take() keeps SOURCES_KEPT_MAX sources, and the total of the evicted ones", () => {
    for (let i = 0; i <= SOURCES_KEPT_MAX; i++) {
      take(`n${i}`);
      now += STRANGER_PAUSE_MS_MAX;
    }
    expect(state.sources.map(({ from }) => from))
      .to.have.length(SOURCES_KEPT_MAX)
      .and.not.include("n0");
    expect(state.strangers.tries).to.equal(SOURCES_KEPT_MAX + 1);
  });

  it("passed() clears the attempts of its source, and repeated changes nothing", () => {
    tryFromEverywhere();
    expect(take("new")).to.equal(STRANGER_PAUSE_MS);
    passed("n1");
    expect(passed("n1").changed).to.equal(false);
    for (let i = 0; i < GUESSES_PER_SOURCE_COUNTED; i++) expect(take("new")).to.equal(0);
    expect(take("new")).to.equal(STRANGER_PAUSE_MS);
  });

  it("take() forgets attempts after GUESSES_KEPT_MS, and a clock set back delays nobody", () => {
    tryFromEverywhere();
    now += GUESSES_KEPT_MS - 1;
    expect(take("new")).to.equal(0);
    expect(take("newer")).to.be.above(0);
    now += 1;
    expect(take("newer")).to.equal(0);
    expect(state.strangers.tries).to.equal(2);
    for (let i = 0; i < SOURCE_GUESSES_FREE; i++) take("one");
    expect(take("one")).to.be.above(0);
    now -= 10 * SOURCE_PAUSE_MS_MAX;
    expect(take("one")).to.equal(0);
  });

  it("forget() runs a day after the last attempt", () => {
    const { remind } = runHandler(
      loginGuardActor,
      "take",
      state,
      { from: "one", isKnown: false },
      { now },
    );
    expect(remind).to.deep.equal({ forget: now + GUESSES_KEPT_MS });
    expect(forget().changed).to.equal(false);
    take("one");
    now += 1_000;
    take("one");
    now += GUESSES_KEPT_MS - 1;
    expect(forget().remind).to.deep.equal({ forget: now + 1 });
    now += 1;
    expect(forget().forgotten).to.equal(true);
  });
});
