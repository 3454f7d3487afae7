/** Holds the pages of an account to its browser time of the day, when they start and while they run. */
import { account } from "../../../../schemas/account/account.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { BROWSER_TIME_CHECK_MS } from "../../../../schemas/rendering/limits.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";

export class AccountTime {
  readonly #clock: Clock;
  readonly #limitMs: number;
  /** By account: since when each of its pages holds a browser here. */
  readonly #heldSince = new Map<string, Set<{ since: number }>>();

  /** `limitMs` is the time of each account for a day; 0 is no limit. */
  constructor({ clock, limitMs }: { clock: Clock; limitMs: number }) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /**
   * Runs the work with a signal that aborts when the task does, or the account's time is used up. Rejects with
   * `browser_time_exceeded` without running it where the time is used up already: the task may have waited long. The
   * work calls `hold` when it has a browser, as its time counts from then.
   */
  async within<T>(
    accountId: string,
    task: Pick<TaskContext, "call" | "signal">,
    work: (signal: AbortSignal, hold: () => void) => Promise<T>,
  ): Promise<T> {
    if (this.#limitMs === 0) return await work(task.signal, () => {});
    await this.#check(accountId, task);
    const exceeded = new AbortController();
    const ended = new AbortController();
    const hold = () => {
      const page = { since: this.#clock.monotonic() };
      const held = this.#heldSince.get(accountId) ?? new Set();
      this.#heldSince.set(accountId, held.add(page));
      ended.signal.addEventListener("abort", () => {
        held.delete(page);
        if (held.size === 0) this.#heldSince.delete(accountId);
      });
    };
    void this.#watch(accountId, task, { exceeded, ended: ended.signal });
    try {
      return await work(AbortSignal.any([task.signal, exceeded.signal]), hold);
    } finally {
      ended.abort(OVER);
    }
  }

  /** An account that does not answer is checked again later: its browser time was checked at the start. */
  async #watch(
    accountId: string,
    task: Pick<TaskContext, "call">,
    { exceeded, ended }: { exceeded: AbortController; ended: AbortSignal },
  ): Promise<void> {
    for (;;) {
      await this.#clock.wait(BROWSER_TIME_CHECK_MS, ended);
      if (ended.aborted) return;
      await this.#check(accountId, task).catch((error: unknown) => {
        if (error instanceof ActorError && error.code === "browser_time_exceeded")
          exceeded.abort(error);
      });
    }
  }

  async #check(accountId: string, { call }: Pick<TaskContext, "call">): Promise<void> {
    const now = this.#clock.monotonic();
    const held = this.#heldSince.get(accountId) ?? [];
    const untoldMs = [...held].reduce((sum, { since }) => sum + Math.round(now - since), 0);
    await call(account, accountId, "admitRendering", { limitMs: this.#limitMs, untoldMs });
  }
}
