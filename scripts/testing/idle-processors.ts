/** Grants turns while the machine's processors have idle time, so that waiting test files do not delay others. */
import { cpus } from "node:os";

/** Idle time of the processors since some moment, and all their time, in ms. */
export interface ProcessorTimes {
  idle: number;
  total: number;
}

export interface IdleProcessorsOptions {
  times?: () => ProcessorTimes;
  wait?: (ms: number) => Promise<void>;
}

/** A file that has just started shows its use of the processors within this time. */
const WINDOW_MS = 1_000;
/** A quarter of a processor of two. Most files use less than one, and the wait of one is the turn of another. */
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
   * Resolves when the processors were idle for an eighth of a second, or when `hasEnded` returns true. Waiting
   * callers are served one after another, each by a measurement of its own.
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

/** The timer does not keep a run alive that has ended. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}
