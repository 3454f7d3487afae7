/** One running browser. It prepares contexts in advance, is monitored, and ends together with its process. */
import type { CDPSession, Browser as PuppeteerBrowser } from "puppeteer-core";
import type { EgressProxy } from "../../../egress/egress-proxy.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable, within } from "../../../runtime/lib/time-limit.ts";
import { BrowserDiedError, BrowserNotStartedError } from "./browser-died-error.ts";
import { Chromium } from "./chromium.ts";
import { EventBudgets } from "./event-budgets.ts";
import type { PoolLimits } from "./pool-limits.ts";
import { RenderContext } from "./render-context.ts";

interface BrowserOptions {
  executablePath: string;
  openEgress: () => Promise<EgressProxy>;
  clock: Clock;
  limits: PoolLimits;
}

export class Browser {
  /** Aborts with a `BrowserDiedError` when the browser has ended for any reason. */
  readonly died: AbortSignal;
  readonly #died = new AbortController();
  readonly #chromium: Chromium;
  readonly #browser: PuppeteerBrowser;
  readonly #session: CDPSession;
  readonly #userAgent: string;
  readonly #budgets: EventBudgets;
  readonly #options: BrowserOptions;
  readonly #startedAt: number;
  /** When a task last began or ended. */
  #usedAt: number;
  /** Contexts that were created and are not closed yet. */
  readonly #contexts = new Set<RenderContext>();
  readonly #closing = new Set<Promise<void>>();
  #warm: RenderContext[] = [];
  #warming: Promise<void> | undefined;
  /**
   * Tasks that wait for a context, in the order of their arrival. While a task waits, no context is prepared in
   * advance.
   */
  readonly #waiting: PromiseWithResolvers<RenderContext>[] = [];
  /**
   * `#made` counts all contexts that this browser began to create; `#making` counts those that are being created now.
   */
  #made = 0;
  #making = 0;
  #memoryBytes = 0;
  #draining = false;
  #idle = Promise.withResolvers<void>();

  static async start(options: BrowserOptions): Promise<Browser> {
    const { clock, limits } = options;
    let chromium: Chromium | undefined;
    try {
      // The module loads while the first browser starts: see driver-parts.ts.
      const driver = import("puppeteer-core");
      const budgets = new EventBudgets(clock);
      const admits = (message: Buffer) => budgets.admits(message);
      chromium = await Chromium.start({ executablePath: options.executablePath, admits });
      const { transport, ended } = chromium;
      const { default: puppeteer } = await driver;
      const connected = await within(
        {
          ms: limits.startMs,
          error: () => new Error(`it did not answer in ${limits.startMs} ms`),
          signal: ended,
          clock,
        },
        async () => {
          const browser = await puppeteer.connect({
            transport,
            defaultViewport: null,
            issuesEnabled: false,
            // Puppeteer needs no timeout, because every call has the timeout of its task.
            protocolTimeout: 0,
          });
          const session = await browser.target().createCDPSession();
          return { browser, session, userAgent: await browser.userAgent() };
        },
      );
      return new Browser({ ...connected, chromium, budgets, options });
    } catch (error) {
      await chromium?.kill();
      const found = chromium?.stderr || (error instanceof Error ? error.message : String(error));
      throw new BrowserNotStartedError(`Cannot start browser: ${found}`, { cause: error });
    }
  }

  /** Use `start`. */
  constructor(parts: {
    chromium: Chromium;
    browser: PuppeteerBrowser;
    session: CDPSession;
    userAgent: string;
    budgets: EventBudgets;
    options: BrowserOptions;
  }) {
    const { chromium, browser, session, userAgent, budgets, options } = parts;
    this.died = this.#died.signal;
    this.#chromium = chromium;
    this.#browser = browser;
    this.#session = session;
    // Many sites refuse browsers that call themselves headless; the PDF would show that refusal.
    this.#userAgent = userAgent.replace("HeadlessChrome/", "Chrome/");
    this.#budgets = budgets;
    this.#options = options;
    this.#startedAt = options.clock.monotonic();
    if (chromium.ended.aborted) this.#onEnd();
    else chromium.ended.addEventListener("abort", () => this.#onEnd(), { once: true });
    this.#usedAt = this.#startedAt;
    void this.#watch();
    void this.#watchRenderers();
  }

  get pid(): number {
    return this.#chromium.pid;
  }

  /** Contexts that tasks use, plus tasks that wait for a context. */
  get active(): number {
    return this.#contexts.size - this.#warm.length + this.#waiting.length;
  }

  /** Milliseconds since a task last used the browser; 0 while a task uses it or waits for a context. */
  get idleMs(): number {
    return this.active > 0 ? 0 : this.#options.clock.monotonic() - this.#usedAt;
  }

  /** Returns why the browser should be replaced; undefined if it should not. */
  get wornBy(): "count" | "age" | "memory" | undefined {
    const { limits, clock } = this.#options;
    if (this.#made >= limits.contextsMax) return "count";
    if (clock.monotonic() - this.#startedAt >= limits.ageMsMax) return "age";
    return this.#memoryBytes >= limits.memoryBytesMax ? "memory" : undefined;
  }

  /**
   * Returns a context that was prepared in advance, or else the next one that becomes ready. Waiting tasks get
   * contexts in the order of their arrival. Rejects with a `BrowserDiedError` when the browser dies.
   */
  async newContext(): Promise<RenderContext> {
    this.#usedAt = this.#options.clock.monotonic();
    let warm = this.#warm.shift();
    // A renderer may have ended while its context was unused.
    for (; warm?.lost.aborted; warm = this.#warm.shift()) warm.release();
    if (warm !== undefined) return warm;
    const wanted = Promise.withResolvers<RenderContext>();
    this.#waiting.push(wanted);
    if (this.#making < this.#waiting.length) void this.#make();
    return await wanted.promise;
  }

  /** Prepares contexts in advance until there are enough. Never rejects. */
  async warm(): Promise<void> {
    this.#warming ??= this.#fill().finally(() => {
      this.#warming = undefined;
    });
    await this.#warming;
  }

  /** Waits for the browser's tasks, for at most `ms` milliseconds, and then closes the browser. */
  async drain(ms: number): Promise<void> {
    this.#draining = true;
    for (const context of this.#warm) context.release();
    this.#warm = [];
    if (this.active > 0) {
      const { clock } = this.#options;
      const over = new AbortController();
      await Promise.race([this.#idle.promise, clock.wait(ms, over.signal)]);
      over.abort();
    }
    await this.close();
  }

  /** Kills the browser immediately; contexts in use are lost. */
  async close(): Promise<void> {
    await this.#chromium.kill();
    await Promise.allSettled(this.#closing);
    await Promise.allSettled([...this.#contexts].map((context) => context.egress.close()));
    await this.#warming;
  }

  /**
   * Creates one more context, for the task that has waited longest, or as a prepared one if no task waits. Returns
   * whether that succeeded. Never rejects.
   */
  async #make(): Promise<boolean> {
    this.#made += 1;
    this.#making += 1;
    try {
      const context = await this.#open().finally(() => {
        this.#making -= 1;
      });
      this.#contexts.add(context);
      const wanted = this.#waiting.shift();
      if (wanted !== undefined) wanted.resolve(context);
      else if (this.#draining) context.release();
      else this.#warm.push(context);
      return true;
    } catch (error) {
      // Other contexts are being created, and waiting tasks may get those. A task fails only if there are too few of
      // them.
      if (this.#waiting.length > this.#making) this.#waiting.shift()?.reject(error);
      this.#endIfIdle();
      return false;
    }
  }

  async #open(): Promise<RenderContext> {
    return await abortable(
      RenderContext.open({
        browser: this.#browser,
        userAgent: this.#userAgent,
        budgets: this.#budgets,
        openEgress: this.#options.openEgress,
        died: this.died,
        release: (released) => this.#release(released),
      }),
      this.died,
    );
  }

  /**
   * Creates contexts until enough are ready. Stops early if one cannot be created: because the browser died, which
   * `died` reports, or because of an error that the next task will also get and report.
   */
  async #fill(): Promise<void> {
    while (this.#canWarm() && (await this.#make()));
  }

  #canWarm(): boolean {
    const { contextsWarm, contextsMax } = this.#options.limits;
    const enough = this.#warm.length >= contextsWarm || this.#made >= contextsMax;
    const wanted = this.#waiting.length === 0 && !enough;
    return wanted && !this.#draining && !this.died.aborted;
  }

  #release(context: RenderContext): Promise<void> {
    const closing = this.#closeContext(context).finally(() => {
      this.#contexts.delete(context);
      this.#usedAt = this.#options.clock.monotonic();
      this.#closing.delete(closing);
      if (!this.#endIfIdle()) void this.warm();
    });
    this.#closing.add(closing);
    return closing;
  }

  #endIfIdle(): boolean {
    const isIdle = this.#draining && this.active === 0;
    if (isIdle) this.#idle.resolve();
    return isIdle;
  }

  /** Closes the context. Never rejects: if the context does not close in time, the whole browser is killed. */
  async #closeContext(context: RenderContext): Promise<void> {
    const { clock, limits } = this.#options;
    const error = () => new Error("a context did not close");
    try {
      const limit = { ms: limits.contextCloseMs, error, signal: this.died, clock };
      await within(limit, () => context.close());
    } catch {
      await this.#chromium.kill();
      await context.egress.close();
    }
  }

  /**
   * Checks periodically whether the browser responds and how much memory it uses. Kills a browser that does not
   * respond. If it uses too much memory, kills its largest renderers, so that the other pages go on. Several pages can
   * use too much memory together although each stays below its own limit. Kills the browser only if the renderers do
   * not hold that memory.
   */
  async #watch(): Promise<void> {
    const { clock, limits } = this.#options;
    for (;;) {
      await clock.wait(limits.pingMs, this.died);
      if (this.died.aborted) return;
      try {
        await this.#ping();
        this.#memoryBytes = (await this.#chromium.memoryBytes()) ?? 0;
        const aboveBytes = this.#memoryBytes - limits.memoryBytesKill;
        if (aboveBytes < 0) continue;
        if (await this.#chromium.killLargestRenderers(aboveBytes + 1)) continue;
      } catch {
        // The browser hangs or has died meanwhile. In both cases it is killed.
      }
      await this.#chromium.kill();
      return;
    }
  }

  /**
   * Kills renderers that use too much memory. Otherwise the whole browser, with all other pages, would have to be
   * killed.
   */
  async #watchRenderers(): Promise<void> {
    const { clock, limits } = this.#options;
    for (;;) {
      await clock.wait(limits.rendererCheckMs, this.died);
      if (this.died.aborted) return;
      if (this.active > 0) await this.#chromium.killRenderersAbove(limits.rendererBytesMax);
    }
  }

  /**
   * Pings the browser. If it does not respond, ends the page that may be the cause and pings again. Rejects if the
   * browser still does not respond.
   */
  async #ping(): Promise<void> {
    const { clock, limits } = this.#options;
    const error = () => new Error("it does not answer");
    const limit = { ms: limits.pingTimeoutMs / 2, error, signal: this.died, clock };
    const ping = () => this.#session.send("Browser.getVersion");
    try {
      await within(limit, ping);
    } catch (late) {
      if (this.died.aborted) throw late;
      this.#budgets.blame();
      await within(limit, ping);
    }
  }

  #onEnd(): void {
    this.#died.abort(new BrowserDiedError("Cannot render: the browser ended"));
    this.#idle.resolve();
    void this.#chromium.kill();
  }
}
