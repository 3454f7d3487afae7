import { expect } from "chai";
import { runHandler } from "../../../scripts/testing/run-handler.ts";
import {
  BREAKER_FAILURES_MAX,
  BREAKER_OPEN_MS,
  BREAKER_OPEN_MS_MAX,
  BREAKER_PROBE_MS_MAX,
  endpointBreakerActor,
} from "./endpoint-breaker.ts";

const HOUR_MS = 3_600_000;

describe("endpoint-breaker", () => {
  let state: typeof endpointBreakerActor.initial;
  let now: number;
  let ids: number;
  beforeEach(() => {
    state = endpointBreakerActor.initial;
    now = 100 * HOUR_MS;
    ids = 0;
  });
  const idOf = (number: number) => number.toString(16).padStart(32, "0");
  function admit(probe = idOf(++ids)) {
    const handled = runHandler(endpointBreakerActor, "admit", state, { probe }, { now });
    state = handled.state as typeof state;
    return { probe, ...handled.reply };
  }
  function report(probe: string, isSuccess: boolean) {
    const input = { probe, isSuccess };
    state = runHandler(endpointBreakerActor, "report", state, input, { now }).state as typeof state;
  }
  function open() {
    for (let i = 0; i < BREAKER_FAILURES_MAX; i++) {
      const { probe, isOpen } = admit();
      expect(isOpen).to.equal(false);
      report(probe, false);
      // The same message twice.
      report(probe, false);
    }
  }

  it("admit() is open after BREAKER_FAILURES_MAX failures in a row, and not before", () => {
    for (let i = 1; i < BREAKER_FAILURES_MAX; i++) report(admit().probe, false);
    expect(admit().isOpen).to.equal(false);
    report(admit().probe, true);
    open();
    expect(admit()).to.deep.include({ isOpen: true, until: now + BREAKER_OPEN_MS });
  });

  it("admit() lets one probe through when the time is over, and all when it succeeds", () => {
    open();
    now += BREAKER_OPEN_MS;
    const { probe, isOpen } = admit();
    expect(isOpen).to.equal(false);
    expect(admit()).to.deep.include({ isOpen: true, until: now + BREAKER_PROBE_MS_MAX });
    // The probe's task is tried once more.
    expect(admit(probe).isOpen).to.equal(false);
    report(probe, true);
    expect(admit().isOpen).to.equal(false);
    expect(admit().isOpen).to.equal(false);
  });

  it("report() of a probe that fails doubles the time, up to its bound", () => {
    open();
    let forMs = BREAKER_OPEN_MS;
    for (let i = 0; i < 6; i++) {
      now += forMs;
      const { probe } = admit();
      report(probe, false);
      forMs = Math.min(2 * forMs, BREAKER_OPEN_MS_MAX);
      expect(admit()).to.deep.include({ isOpen: true, until: now + forMs });
    }
    expect(forMs).to.equal(BREAKER_OPEN_MS_MAX);
  });

  it("admit() gives the probe's place to another try if its result is not reported", () => {
    open();
    now += BREAKER_OPEN_MS;
    admit();
    now += BREAKER_PROBE_MS_MAX;
    expect(admit().isOpen).to.equal(false);
    expect(admit().isOpen).to.equal(true);
  });

  it("admit() waits no longer than its times if the clock was set back by hours", () => {
    open();
    now -= 3 * HOUR_MS;
    expect(admit()).to.deep.include({ isOpen: true, until: now + BREAKER_OPEN_MS });
    now += BREAKER_OPEN_MS;
    expect(admit().isOpen).to.equal(false);
    now -= 3 * HOUR_MS;
    expect(admit()).to.deep.include({ isOpen: true, until: now + BREAKER_PROBE_MS_MAX });
    now += BREAKER_PROBE_MS_MAX;
    expect(admit().isOpen).to.equal(false);
  });

  it("report() of a try before the opening does not change the time of the next try", () => {
    const early = admit().probe;
    open();
    report(early, false);
    expect(admit()).to.deep.include({ isOpen: true, until: now + BREAKER_OPEN_MS });
  });
});
