/** Keeps a browser warm for tasks: replaces it before it wears out, and when it dies. */
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";
import { Browser } from "./browser.ts";
import { BrowserDiedError } from "./browser-died-error.ts";
import { POOL_LIMITS, type PoolLimits } from "./pool-limits.ts";
import type { RenderContext } from "./render-context.ts";

export interface BrowserPoolOptions {
  clock: Clock;
  /** A proxy of its own for each context; the context closes it. */
  openEgress: () => Promise<EgressProxy>;
  executablePath: string;
  limits?: Partial<PoolLimits>;
}

export class BrowserPool implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #limits: PoolLimits;
  readonly #options: BrowserPoolOptions;
  readonly #closed = new AbortController();
  /** Running browsers, the present one and those that drain. */
  readonly #browsers = new Set<Browser>();
  readonly #background = new Set<Promise<void>>();
  /** The start of the current browser; `#present` once it runs. */
  #current: Promise<Browser> | undefined;
  #present: Browser | undefined;
  #replacing = false;
  #failures = 0;
  /** Tasks that are being given a context, which keep the browser from being ended as idle. */
  #taking = 0;

  constructor(options: BrowserPoolOptions) {
    this.#clock = options.clock;
    this.#limits = { ...POOL_LIMITS, ...options.limits };
    this.#options = options;
  }

  /** Resolves when a browser runs with its contexts made ahead. Without it the first task starts one. */
  async start(): Promise<void> {
    const browser = await (this.#current ?? this.#begin());
    await browser.warm();
  }

  /** Process ids of the browsers that run, for operators and tests. */
  get pids(): number[] {
    return [...this.#browsers].map((browser) => browser.pid);
  }

  /** Contexts in the hands of tasks, of all browsers that run. */
  get contextsInUse(): number {
    return [...this.#browsers].reduce((sum, browser) => sum + browser.active, 0);
  }

  /**
   * A context nobody has used, to be released after use: `await using context = await pool.newContext(signal)`.
   * Rejects with a `BrowserDiedError` when the browser cannot start or dies meanwhile; another try may succeed.
   */
  async newContext(signal: AbortSignal): Promise<RenderContext> {
    this.#taking += 1;
    const made = this.#newContext().finally(() => {
      this.#taking -= 1;
    });
    try {
      return await abortable(made, signal);
    } catch (error) {
      // The caller has left, so the context that is still being made belongs to nobody.
      void made.then((context) => context.release()).catch(() => {});
      throw error;
    }
  }

  /**
   * Returns a pool with a browser of its own, for work that must neither disturb other work nor be disturbed. Close
   * it after use.
   */
  another(): BrowserPool {
    return new BrowserPool({ ...this.#options, limits: { ...this.#limits, contextsWarm: 0 } });
  }

  /** Ends every browser; contexts in use are lost. Leaves no process and no file. */
  async close(): Promise<void> {
    this.#closed.abort(new BrowserDiedError("Cannot render: the browser pool is closed"));
    // A start that is under way ends by itself, and then has to be closed too.
    await this.#current?.catch(() => {});
    await Promise.all([...this.#browsers].map((browser) => browser.close()));
    await Promise.all(this.#background);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #newContext(): Promise<RenderContext> {
    const started = await (this.#current ?? this.#begin());
    // The browser may have been replaced during the wait, and would be closed under the context.
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
        // Rejects the tasks that waited for this start. The next task tries again.
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

  /** The next browser starts at once, not with the next task. */
  #onDeath(dead: Browser): void {
    this.#browsers.delete(dead);
    this.#run(dead.close());
    if (dead === this.#present && !this.#closed.signal.aborted) void this.#begin().catch(() => {});
  }

  /** Ends the browser when no task has used it for a while. The next task starts another. */
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

  /** The next browser is ready before the old one gets no more tasks. */
  async #replace(worn: Browser): Promise<void> {
    try {
      const next = await this.#launch();
      await next.warm();
      // The old one may have died meanwhile, and have a successor already.
      if (this.#present !== worn) return await next.close();
      this.#present = next;
      this.#current = Promise.resolve(next);
    } finally {
      this.#replacing = false;
    }
    await worn.drain(this.#limits.drainMs);
  }

  /** Work nobody waits for but `close`; a failure shows to the next task that needs a browser. */
  #run(work: Promise<void>): void {
    const settled = work.catch(() => {}).finally(() => this.#background.delete(settled));
    this.#background.add(settled);
  }
}
