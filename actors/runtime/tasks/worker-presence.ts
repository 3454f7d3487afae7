/** Detects that no worker serves a lane, so that a caller need not wait until its deadline. */
import { WORKER_ABSENT_MS } from "../../../schemas/limits.ts";
import { queuedSubject } from "../../../schemas/subjects.ts";
import { ask } from "../bus/ask.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { TaskQueue } from "./queue-task.ts";

/** Interval between two checks of a lane in which tasks wait. */
export const WORKER_CHECK_MS = 5_000;
/** Workers listen, but do not answer. If no worker listens, the bus answers at once. */
const NOBODY_ANSWER_MS = 1_000;

/** A task that waits in a queue. */
type Waiting = Pick<TaskQueue, "kind" | "lane"> & { key: string };

interface Lane {
  checkedAt: number;
  /** When a check first found no worker; undefined if the last check found one. */
  absentSince: number | undefined;
  checking: Promise<void>;
}

export class WorkerPresence {
  readonly #bus: Bus;
  readonly #clock: Clock;
  /** The lanes that were checked, by their subject. */
  readonly #lanes = new Map<string, Lane>();

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
  }

  /**
   * Resolves with true when the lane had no worker for WORKER_ABSENT_MS, and with false when the signal aborts. Works
   * for lanes that serve their keys alternately, because their workers listen for queued tasks.
   */
  async isAbsent({ kind, lane, key }: Waiting, signal: AbortSignal): Promise<boolean> {
    const subject = queuedSubject(kind, lane);
    for (;;) {
      await this.#clock.wait(WORKER_CHECK_MS, signal);
      if (signal.aborted) return false;
      const absentMs = await this.#absentMs(subject, key);
      if (absentMs >= WORKER_ABSENT_MS) return !signal.aborted;
    }
  }

  /** Returns how long the lane has had no worker. All callers that wait share one check. */
  async #absentMs(subject: string, key: string): Promise<number> {
    const now = this.#clock.monotonic();
    const known = this.#lanes.get(subject);
    if (known && now - known.checkedAt < WORKER_CHECK_MS / 2) await known.checking;
    else {
      // An earlier check says nothing about the time in which no caller waited.
      const isRecent = known !== undefined && now - known.checkedAt < 2 * WORKER_CHECK_MS;
      const absentSince = isRecent ? known.absentSince : undefined;
      const lane: Lane = { checkedAt: now, absentSince, checking: Promise.resolve() };
      lane.checking = this.#check(subject, key, lane);
      this.#lanes.set(subject, lane);
      await lane.checking;
    }
    const { absentSince } = this.#lanes.get(subject) ?? {};
    return absentSince === undefined ? 0 : this.#clock.monotonic() - absentSince;
  }

  /** Notifies the workers of the lane once more that tasks of the key wait. */
  async #check(subject: string, key: string, lane: Lane): Promise<void> {
    const options = { timeoutMs: NOBODY_ANSWER_MS };
    const asked = await ask(this.#bus, subject, key, options).catch(() => undefined);
    if (asked === "nobody") lane.absentSince ??= lane.checkedAt;
    else lane.absentSince = undefined;
  }
}
