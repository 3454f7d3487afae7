/** The browser context of one job on a worker, and its reusable pages. A worn, idle or lost context is replaced. */

import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { READ_HTML_MS } from "../../../../schemas/crawl/limits.ts";
import type { BrowserPool } from "../../../rendering/lib/browser/browser-pool.ts";
import { type PageRequest, preparePage } from "../../../rendering/lib/browser/prepare-page.ts";
import type { RenderContext } from "../../../rendering/lib/browser/render-context.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";
import { BrowserPage } from "./browser-page.ts";

/** Bytes that overlapping pages of one context may transfer together: five heavy pages. */
export const RENDER_BYTES_MAX = 200_000_000;
/** After this many bytes the next page begins in another context, so that endlessly overlapping pages are not cut. */
export const CRAWL_CONTEXT_BYTES_MAX = RENDER_BYTES_MAX / 2;
/** A context that loads nothing for this long is released. Its pages hold about 15 MB each. */
export const CRAWL_CONTEXT_IDLE_MS = 10_000;
/**
 * Number of pages, and age, after which a context is replaced. The limits exist because a browser can be replaced
 * only when its contexts are released.
 */
export const CRAWL_CONTEXT_PAGES_MAX = 500;
export const CRAWL_CONTEXT_AGE_MS_MAX = 5 * 60_000;

interface BrowserContextsParts {
  pool: BrowserPool;
  clock: Clock;
  /** The account of the crawl. Its pages share the limit for lookups of names. */
  account?: string | undefined;
  request: CrawlRequest;
  /** Parameters of all pages. */
  parameters: PageRequest;
  limits?: Partial<ContextLimits>;
}

export interface ContextLimits {
  idleMs: number;
  pagesMax: number;
  ageMsMax: number;
  takeHtmlMs: number;
}

type Cookies = Awaited<ReturnType<ReturnType<RenderContext["page"]["browserContext"]>["cookies"]>>;

/** A context in use and its pages. */
export interface OpenContext {
  context: RenderContext;
  openedAt: number;
  /**
   * `loaded` counts the pages that have begun in this context so far. `loading` counts the pages that are being
   * loaded now.
   */
  loaded: number;
  loading: number;
  idle: BrowserPage[];
  /**
   * Set when no more pages may begin in this context. The promise resolves when the context's cookies are read. The
   * context is released when that is done and its last page has ended.
   */
  retired: Promise<unknown> | undefined;
}

export class BrowserContexts {
  readonly #parts: BrowserContextsParts;
  readonly #limits: ContextLimits;
  #open: Promise<OpenContext> | undefined;
  /** Cookies of the previous context. Undefined before the first context, which gets the cookies of the request. */
  #cookies: Promise<Cookies | undefined> = Promise.resolve(undefined);
  #idling = new AbortController();
  readonly #closing = new AbortController();

  constructor(parts: BrowserContextsParts) {
    this.#parts = parts;
    this.#limits = {
      idleMs: CRAWL_CONTEXT_IDLE_MS,
      pagesMax: CRAWL_CONTEXT_PAGES_MAX,
      ageMsMax: CRAWL_CONTEXT_AGE_MS_MAX,
      takeHtmlMs: READ_HTML_MS,
      ...parts.limits,
    };
  }

  /** Returns the current context, or a new one if there is none or it is worn or lost. */
  async use(): Promise<OpenContext> {
    this.#idling.abort();
    const { clock } = this.#parts;
    const open = await this.#open;
    if (open !== undefined && open.retired === undefined) {
      const { pagesMax, ageMsMax } = this.#limits;
      const isWorn = open.loaded >= pagesMax || clock.monotonic() - open.openedAt >= ageMsMax;
      if (!isWorn && !hasMovedMuch(open) && !open.context.lost.aborted) return open;
      this.#retire(open);
    }
    // Several callers wait for the same context. The first caller may be cancelled before the context is open, so the
    // opening does not depend on that caller.
    this.#open ??= this.#openContext();
    const opening = this.#open;
    try {
      return await opening;
    } catch (error) {
      if (this.#open === opening) this.#open = undefined;
      throw error;
    }
  }

  async #openContext(): Promise<OpenContext> {
    const { pool, clock, account, request } = this.#parts;
    this.#closing.signal.throwIfAborted();
    const cookies = await this.#cookies;
    const context = await pool.newContext(this.#closing.signal);
    if (account !== undefined) context.egress.countLookupsFor(account);
    try {
      if (cookies !== undefined) await context.page.browserContext().setCookie(...cookies);
      else if (request.cookies !== undefined) {
        await preparePage(context, { cookies: request.cookies, url: request.url });
      }
    } catch (error) {
      context.release();
      throw error;
    }
    return {
      context,
      openedAt: clock.monotonic(),
      loaded: 0,
      loading: 0,
      idle: [],
      retired: undefined,
    };
  }

  /** Counts a page that begins. */
  begin(open: OpenContext): void {
    open.context.begin({ bytesMax: RENDER_BYTES_MAX, besideOthers: open.loading > 0 });
    open.loading += 1;
    open.loaded += 1;
  }

  /** Returns an idle page or a new one. */
  async page({ idle, context }: OpenContext, signal: AbortSignal): Promise<BrowserPage> {
    return idle.pop() ?? (await this.#openPage(context, signal));
  }

  async #openPage(context: RenderContext, signal: AbortSignal): Promise<BrowserPage> {
    const { clock, parameters } = this.#parts;
    const { takeHtmlMs } = this.#limits;
    const opening = BrowserPage.open(context, { parameters, clock, takeHtmlMs });
    try {
      return await abortable(opening, AbortSignal.any([signal, context.lost]));
    } catch (error) {
      void opening.then((page) => page.close()).catch(() => {});
      throw context.lost.aborted ? context.lost.reason : error;
    }
  }

  /**
   * Resets a page for reuse when its load has ended. After the last load, releases a retired context or retires an
   * idle one.
   */
  async done(open: OpenContext, page: BrowserPage | undefined): Promise<void> {
    const isUsable = (await page?.reset()) ?? false;
    open.loading -= 1;
    if (page !== undefined && isUsable) open.idle.push(page);
    if (open.loading > 0) return;
    if (open.retired !== undefined || this.#closing.signal.aborted) {
      // The cookies must be read before the release, because a closed context does not answer pending commands.
      await open.retired;
      return open.context.release();
    }
    this.#idling.abort();
    this.#idling = new AbortController();
    const { signal } = this.#idling;
    await this.#parts.clock.wait(this.#limits.idleMs, signal);
    if (!signal.aborted && open.loading === 0) this.#retire(open);
  }

  /** Retires the context and passes its cookies to the next one. */
  #retire(open: OpenContext): void {
    if (open.retired !== undefined) return;
    this.#open = undefined;
    const { context } = open;
    const former = this.#cookies;
    this.#cookies = abortable(context.page.browserContext().cookies(), context.lost)
      .catch(() => former)
      .finally(() => {
        if (open.loading === 0) context.release();
      });
    open.retired = this.#cookies;
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("Cannot load the page: the loader is closed"));
    this.#idling.abort();
    const open = await this.#open?.catch(() => undefined);
    open?.context.release();
  }
}

/** Whether overlapping pages have transferred many bytes. While no page is loading, the bytes do not count. */
function hasMovedMuch({ context, loading }: OpenContext): boolean {
  const { received, sent } = context.egress.bytes;
  return loading > 0 && received + sent >= CRAWL_CONTEXT_BYTES_MAX;
}
