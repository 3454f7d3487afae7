import { expect } from "chai";
import { type DueClock, DueWork } from "./due-work.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A time of day that a test sets, and timers that measure only the time that the machine runs. */
class SteppingClock implements DueClock {
  #now = Date.UTC(2026, 10, 26);
  #ranMs = 0;
  readonly #timers = new Map<object, { at: number; call: () => void }>();
  readonly waits: number[] = [];

  now(): number {
    return this.#now;
  }

  setTimeout(call: () => void, ms: number): NodeJS.Timeout {
    const timer = {} as NodeJS.Timeout;
    this.waits.push(ms);
    this.#timers.set(timer, { at: this.#ranMs + ms, call });
    return timer;
  }

  clearTimeout(timer: NodeJS.Timeout | undefined): void {
    if (timer) this.#timers.delete(timer);
  }

  /** Sets the time of day: the machine was suspended, or its clock was wrong. */
  step(ms: number): void {
    this.#now += ms;
  }

  /** Lets the machine run for this time. */
  run(ms: number): void {
    const end = this.#ranMs + ms;
    for (;;) {
      const [next] = [...this.#timers].sort(([, one], [, other]) => one.at - other.at);
      if (next === undefined || next[1].at > end) break;
      const [timer, { at, call }] = next;
      this.#now += at - this.#ranMs;
      this.#ranMs = at;
      this.#timers.delete(timer);
      call();
    }
    this.#now += end - this.#ranMs;
    this.#ranMs = end;
  }
}

describe("DueWork and the time of day", () => {
  let clock: SteppingClock;
  let begun: number[];
  let due: number | undefined;
  let work: DueWork;
  beforeEach(() => {
    clock = new SteppingClock();
    begun = [];
    const part = {
      nextAt: () => due,
      begin() {
        begun.push(clock.now());
        due = undefined;
      },
      settled: async () => undefined,
    };
    const agent = { noteIdle: () => undefined, database: {} as never };
    work = new DueWork(agent, [part], clock);
  });
  const plan = (inMs: number) => {
    due = clock.now() + inMs;
    work.changed();
    work.arm();
    return due;
  };

  it("work is begun when it is due, also after many waits", () => {
    for (const inMs of [1, MINUTE_MS, MINUTE_MS + 1, 24 * HOUR_MS]) {
      const at = plan(inMs);
      clock.run(inMs - 1);
      expect(begun).to.deep.equal([]);
      clock.run(1);
      expect(begun).to.deep.equal([at]);
      begun = [];
    }
    expect(Math.max(...clock.waits)).to.equal(MINUTE_MS);
  });

  it("work is late by a minute at most when the time of day was set forward", () => {
    const at = plan(2 * HOUR_MS);
    clock.run(HOUR_MS);
    clock.step(3 * HOUR_MS);
    const seenAt = clock.now();
    expect(seenAt).to.be.above(at);
    clock.run(MINUTE_MS - 1);
    clock.run(1);
    expect(begun).to.have.length(1);
    expect((begun[0] ?? 0) - seenAt).to.be.at.most(MINUTE_MS);
  });

  it("work is not begun too early when the time of day was set back", () => {
    const at = plan(2 * HOUR_MS);
    clock.step(-5 * HOUR_MS);
    clock.run(6 * HOUR_MS);
    expect(begun).to.deep.equal([]);
    clock.run(HOUR_MS);
    expect(begun).to.deep.equal([at]);
  });

  it("a closed agent begins nothing", () => {
    plan(HOUR_MS);
    work.close();
    clock.run(2 * HOUR_MS);
    expect(begun).to.deep.equal([]);
  });
});
