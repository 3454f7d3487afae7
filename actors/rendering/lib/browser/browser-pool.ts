/**
 * Keeps a browser ready for tasks. It replaces the browser before it uses too much memory or gets too old, and when
 * it dies.
 */
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";
import { Browser } from "./browser.ts";
import { BrowserDiedError } from "./browser-died-error.ts";
import { POOL_LIMITS, type PoolLimits } from "./pool-limits.ts";
import type { RenderContext } from "./render-context.ts";

export interface BrowserPoolOptions {
  clock: Clock;
  /** Opens a separate proxy for each context. The context closes it. */
  openEgress: () => Promise<EgressProxy>;
  executablePath: string;
  limits?: Partial<PoolLimits>;
}

export class BrowserPool implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #limits: PoolLimits;
  readonly #options: BrowserPoolOptions;
  readonly #closed = new AbortController();
  /** Running browsers: the present one, and old ones whose last tasks are still running. */
  readonly #browsers = new Set<Browser>();
  readonly #background = new Set<Promise<void>>();
  /** The promise of the current browser. `#present` is set when that browser runs. */
  #current: Promise<Browser> | undefined;
  #present: Browser | undefined;
  #replacing = false;
  #failures = 0;
  /** Number of tasks that wait for a context. While there are any, the browser is not closed as idle. */
  #taking = 0;

  constructor(options: BrowserPoolOptions) {
    this.#clock = options.clock;
    this.#limits = { ...POOL_LIMITS, ...options.limits };
    this.#options = options;
  }

  /**
   * Resolves when a browser runs and its contexts are prepared. If this method is not called, the first task starts a
   * browser.
   */
  async start(): Promise<void> {
    const browser = await (this.#current ?? this.#begin());
    await browser.warm();
  }

  /** Process ids of the browsers that run, for operators and tests. */
  get pids(): number[] {
    return [...this.#browsers].map((browser) => browser.pid);
  }

  /** Contexts of all running browsers that tasks use or wait for. */
  get contextsInUse(): number {
    return [...this.#browsers].reduce((sum, browser) => sum + browser.active, 0);
  }

  /**
   * Returns a new, unused context. Release it after use: `await using context = await pool.newContext(signal)`.
   * Rejects with a `BrowserDiedError` if the browser cannot start or dies meanwhile; a retry may succeed.
   */
  async newContext(signal: AbortSignal): Promise<RenderContext> {
    this.#taking += 1;
    const made = this.#newContext().finally(() => {
      this.#taking -= 1;
    });
    try {
      return await abortable(made, signal);
    } catch (error) {
      // The caller has cancelled, so the context is released as soon as it exists.
      void made.then((context) => context.release()).catch(() => {});
      throw error;
    }
  }

  /**
   * Returns another pool with its own browser, for work that must be isolated from other work. Close it after use.
   */
  another(): BrowserPool {
    return new BrowserPool({ ...this.#options, limits: { ...this.#limits, contextsWarm: 0 } });
  }

  /** Closes every browser; contexts in use are lost. Leaves no process and no file. */
  async close(): Promise<void> {
    this.#closed.abort(new BrowserDiedError("Cannot render: the browser pool is closed"));
    // If a browser is just starting, wait for it, because it must be closed too.
    await this.#current?.catch(() => {});
    await Promise.all([...this.#browsers].map((browser) => browser.close()));
    await Promise.all(this.#background);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #newContext(): Promise<RenderContext> {
    const started = await (this.#current ?? this.#begin());
    // The browser may have been replaced during the wait. A context of the replaced browser could then be closed
    // during the task.
    const browser = this.#present ?? started;
    if (browser.wornBy !== undefined && !this.#replacing) {
      this.#replacing = true;
      this.#run(this.#replace(browser));
    }
    return await browser.newContext();
  }

  #begin(): Promise<Browser> {
    const starting = this.#launch();
    this.#current = starting;
    const warmed = async () => {
      try {
        this.#present = await starting;
        await this.#present.warm();
      } catch {
        // All tasks that waited for this start get the error. The next task starts a browser again.
        if (this.#current === starting) this.#current = undefined;
      }
    };
    this.#run(warmed());
    return starting;
  }

  async #launch(): Promise<Browser> {
    this.#closed.signal.throwIfAborted();
    if (this.#failures > 0) await this.#backOff();
    const browser = await Browser.start({ ...this.#options, limits: this.#limits }).catch(
      (error) => {
        this.#failures += 1;
        throw error;
      },
    );
    this.#failures = 0;
    this.#browsers.add(browser);
    browser.died.addEventListener("abort", () => this.#onDeath(browser), { once: true });
    if (this.#limits.idleMs > 0) this.#run(this.#endIdle(browser));
    if (browser.died.aborted) this.#onDeath(browser);
    if (this.#closed.signal.aborted) {
      await browser.close();
      throw this.#closed.signal.reason;
    }
    return browser;
  }

  async #backOff(): Promise<void> {
    const { retryMs, retryMsMax } = this.#limits;
    const ms = Math.min(retryMs * 2 ** (this.#failures - 1), retryMsMax);
    await this.#clock.wait(ms, this.#closed.signal);
    this.#closed.signal.throwIfAborted();
  }

  /** If the current browser died, starts the next one immediately, and does not wait for the next task. */
  #onDeath(dead: Browser): void {
    this.#browsers.delete(dead);
    this.#run(dead.close());
    if (dead === this.#present && !this.#closed.signal.aborted) void this.#begin().catch(() => {});
  }

  /** Closes the browser after it was idle for the limit. The next task starts another browser. */
  async #endIdle(browser: Browser): Promise<void> {
    const ended = AbortSignal.any([browser.died, this.#closed.signal]);
    for (;;) {
      const leftMs = this.#limits.idleMs - browser.idleMs;
      if (leftMs <= 0 && this.#taking === 0) break;
      await this.#clock.wait(Math.max(1, leftMs), ended);
      if (ended.aborted) return;
    }
    if (browser === this.#present) {
      this.#present = undefined;
      this.#current = undefined;
    }
    await browser.close();
  }

  /** Replaces a worn browser. The old browser gets tasks until the next one is ready. */
  async #replace(worn: Browser): Promise<void> {
    try {
      const next = await this.#launch();
      await next.warm();
      // The old browser may have died meanwhile. Then it has a successor already, and this one is not needed.
      if (this.#present !== worn) return await next.close();
      this.#present = next;
      this.#current = Promise.resolve(next);
    } finally {
      this.#replacing = false;
    }
    await worn.drain(this.#limits.drainMs);
  }

  /**
   * Runs background work that only `close` waits for. Its errors are ignored: the next task that needs a browser will
   * fail too.
   */
  #run(work: Promise<void>): void {
    const settled = work.catch(() => {}).finally(() => this.#background.delete(settled));
    this.#background.add(settled);
  }
}
