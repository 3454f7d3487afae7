/** Enforces the daily browser time of an account, when its pages start and while they run. */
import { ActorError } from "../../../../schemas/errors.ts";
import { browserTime } from "../../../../schemas/rendering/browser-time.ts";
import { BROWSER_TIME_CHECK_MS } from "../../../../schemas/rendering/limits.ts";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import type { TaskContext } from "../../../runtime/workers/define-worker.ts";

/** Starts to count the browser time of a page. Call the returned function when the page leaves its browser. */
export type Hold = () => () => void;

/** When a page got its browser, and when it left it. */
interface HeldTime {
  since: number;
  until: number | undefined;
}

export class AccountTime {
  readonly #clock: Clock;
  readonly #limitMs: number;
  /**
   * For each account, the times for which pages of its running tasks have used a browser. A task reports its time when
   * it ends, so until then the time of a page that has left its browser counts too, but grows no more.
   */
  readonly #held = new Map<string, Set<HeldTime>>();

  /** `limitMs` is each account's browser time per day; 0 means no limit. */
  constructor({ clock, limitMs }: { clock: Clock; limitMs: number }) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /**
   * Runs the work with a signal. The signal aborts when the task is aborted or the account's browser time is used up.
   * If the time is already used up at the start, which is possible after a long wait, rejects with
   * `browser_time_exceeded` without running the work. The work calls `hold` for each page that gets a browser.
   */
  async within<T>(
    accountId: string,
    task: Pick<TaskContext, "call" | "signal">,
    work: (signal: AbortSignal, hold: Hold) => Promise<T>,
  ): Promise<T> {
    if (this.#limitMs === 0) return await work(task.signal, () => () => {});
    await this.#check(accountId, task);
    const exceeded = new AbortController();
    const ended = new AbortController();
    const hold = () => {
      const page: HeldTime = { since: this.#clock.monotonic(), until: undefined };
      const held = this.#held.get(accountId) ?? new Set();
      this.#held.set(accountId, held.add(page));
      ended.signal.addEventListener("abort", () => {
        held.delete(page);
        if (held.size === 0) this.#held.delete(accountId);
      });
      return () => {
        page.until ??= this.#clock.monotonic();
      };
    };
    void this.#watch(accountId, task, { exceeded, ended: ended.signal });
    try {
      return await work(AbortSignal.any([task.signal, exceeded.signal]), hold);
    } finally {
      ended.abort(OVER);
    }
  }

  /**
   * Checks the account's browser time periodically. If the account does not respond, the next check follows later,
   * because the time was checked at the start.
   */
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
    const held = this.#held.get(accountId) ?? [];
    const msOf = ({ since, until = now }: HeldTime) => Math.round(until - since);
    const untoldMs = [...held].reduce((sum, page) => sum + msOf(page), 0);
    await call(browserTime, accountId, "admit", { limitMs: this.#limitMs, untoldMs });
  }
}
