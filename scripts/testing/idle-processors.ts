/**
 * Grants turns only while the machine's processors have idle time, so that starting further test files does not slow
 * down the running ones.
 */
import { cpus } from "node:os";

/** Idle time and total time of the processors in ms, both counted from the same point in time. */
export interface ProcessorTimes {
  idle: number;
  total: number;
}

export interface IdleProcessorsOptions {
  times?: () => ProcessorTimes;
  wait?: (ms: number) => Promise<void>;
}

/** Time of one measurement. A test file that has just started shows its processor load within this time. */
const WINDOW_MS = 1_000;
/**
 * Minimum idle share of all processors: a quarter of one processor on a machine with two. Most files use less than
 * one processor, and while one file waits, another one can run.
 */
const IDLE_SHARE_MIN = 0.125;

export class IdleProcessors {
  readonly #times: () => ProcessorTimes;
  readonly #wait: (ms: number) => Promise<void>;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ times = processorTimes, wait = pause }: IdleProcessorsOptions = {}) {
    this.#times = times;
    this.#wait = wait;
  }

  /**
   * Resolves after a second in which at least IDLE_SHARE_MIN of the processors' time was idle, or when `hasEnded`
   * returns true. Callers are served one after another, each with its own measurement.
   */
  turn(hasEnded: () => boolean): Promise<void> {
    const turn = this.#last.then(() => this.#idle(hasEnded));
    this.#last = turn;
    return turn;
  }

  async #idle(hasEnded: () => boolean): Promise<void> {
    while (!hasEnded()) {
      const before = this.#times();
      await this.#wait(WINDOW_MS);
      const after = this.#times();
      if (after.idle - before.idle >= IDLE_SHARE_MIN * (after.total - before.total)) return;
    }
  }
}

function processorTimes(): ProcessorTimes {
  const all = cpus().map(({ times }) => times);
  const sum = (of: (times: (typeof all)[number]) => number) =>
    all.reduce((total, times) => total + of(times), 0);
  const total = sum(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq);
  return { idle: sum(({ idle }) => idle), total };
}

/** Waits without keeping the process alive after the end of the run. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
