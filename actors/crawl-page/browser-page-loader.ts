/**
 * Gets pages of one job in a browser: one context with a few pages, which are used again. Images and fonts are not kept
 * from a page: scripts measure them and act on their failing, and since a page is stopped when it has been taken, most
 * are never fetched (of 40 images 7, which took 10 of 60 ms). `rejectResourceTypes` saves the rest.
 */
import {
  ANSWER_SHOWN_CHARS,
  CONTENT_TYPE_CHARS_MAX,
  CRAWL_CONTEXT_AGE_MS_MAX,
  CRAWL_CONTEXT_IDLE_MS,
  CRAWL_CONTEXT_PAGES_MAX,
  RENDER_BYTES_MAX,
  TAKE_HTML_MS,
} from "../../schemas/crawl-limits.ts";
import { ActorError, type ErrorCode } from "../../schemas/errors.ts";
import type { CrawlRequest } from "../../schemas/http/crawl.ts";
import { BrowserDiedError, BrowserNotStartedError } from "../browser/browser-died-error.ts";
import type { BrowserPool } from "../browser/browser-pool.ts";
import { type PageRequest, preparePage } from "../browser/prepare-page.ts";
import type { RenderContext } from "../browser/render-context.ts";
import { abortable } from "../browser/time-limit.ts";
import type { Clock } from "../runtime/clock.ts";
import { BrowserPage, type Loaded } from "./browser-page.ts";
import { callersFields } from "./crawl-headers.ts";
import { type DocumentHead, isOfHost } from "./document-gate.ts";
import { isUnmodified, lastModifiedAt } from "./last-modified.ts";
import type { PageAnswer, PageLoad, PageLoader } from "./page-loader.ts";
import { isPassingStatus } from "./passing-faults.ts";
import { redirectTarget } from "./redirect-target.ts";
import { awayMsOf } from "./retry-after.ts";
import { readRobotsTag } from "./robots-tag.ts";
import { PRODUCT_TOKEN } from "./user-agent.ts";

export interface BrowserPageLoaderParts {
  pool: BrowserPool;
  clock: Clock;
  request: CrawlRequest;
  limits?: Partial<ContextLimits>;
}

interface ContextLimits {
  idleMs: number;
  pagesMax: number;
  ageMsMax: number;
  takeHtmlMs: number;
}

type Cookies = Awaited<ReturnType<ReturnType<RenderContext["page"]["browserContext"]>["cookies"]>>;

/** A context in use, and its pages. */
interface Open {
  context: RenderContext;
  openedAt: number;
  /** Pages loaded in it so far, and those being loaded. */
  loaded: number;
  loading: number;
  idle: BrowserPage[];
  /** Set when no page begins in it any more: its cookies are being read. It is given back after that and the last page. */
  retired: Promise<unknown> | undefined;
}

export class BrowserPageLoader implements PageLoader {
  readonly #parts: BrowserPageLoaderParts;
  readonly #limits: ContextLimits;
  readonly #parameters: PageRequest;
  readonly #headers: Readonly<Record<string, string>>;
  #open: Promise<Open> | undefined;
  /** Of the context before; those of the request until there was one. */
  #cookies: Promise<Cookies | undefined> = Promise.resolve(undefined);
  #idling = new AbortController();
  #isClosed = false;

  constructor(parts: BrowserPageLoaderParts) {
    const { request, limits } = parts;
    this.#parts = parts;
    this.#limits = {
      idleMs: CRAWL_CONTEXT_IDLE_MS,
      pagesMax: CRAWL_CONTEXT_PAGES_MAX,
      ageMsMax: CRAWL_CONTEXT_AGE_MS_MAX,
      takeHtmlMs: TAKE_HTML_MS,
      ...limits,
    };
    this.#parameters = pageParametersOf(request);
    const { modifiedSince } = request;
    this.#headers =
      modifiedSince === undefined
        ? {}
        : { "If-Modified-Since": new Date(modifiedSince * 1_000).toUTCString() };
  }

  /** Throws the signal's reason, a `BrowserNotStartedError`, and what is a fault of ours. */
  async load(load: PageLoad): Promise<PageAnswer> {
    load.signal.throwIfAborted();
    this.#idling.abort();
    try {
      return await this.#loadIn(await this.#opened(load.signal), load);
    } catch (error) {
      load.signal.throwIfAborted();
      return notOpened(error, 0);
    }
  }

  async #loadIn(open: Open, load: PageLoad): Promise<PageAnswer> {
    const { clock } = this.#parts;
    const { context } = open;
    // What failed before is of no interest, unless another page is about to ask for it.
    context.begin({ bytesMax: RENDER_BYTES_MAX, besideOthers: open.loading > 0 });
    open.loading += 1;
    open.loaded += 1;
    const startedAt = clock.monotonic();
    let waitedMs = 0;
    const browserMs = () => Math.max(1, Math.round(clock.monotonic() - startedAt - waitedMs));
    const onLarge = async () => {
      const askedAt = clock.monotonic();
      await load.onLarge();
      waitedMs += clock.monotonic() - askedAt;
    };
    let page: BrowserPage | undefined;
    try {
      page = open.idle.pop() ?? (await this.#openPage(context, load.signal));
      const wants = (head: DocumentHead) => this.#isPage(load.url, head);
      const loaded = await page.load({ ...load, onLarge }, { headers: this.#headers, wants });
      return this.#answer(load.url, loaded, browserMs());
    } catch (error) {
      load.signal.throwIfAborted();
      return notOpened(error, browserMs());
    } finally {
      // Nobody waits for that: the answer is known.
      void this.#done(open, page);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idling.abort();
    const open = await this.#open?.catch(() => undefined);
    open?.context.release();
  }

  /** The context in use; another one where there is none, or the last is worn or lost. */
  async #opened(signal: AbortSignal): Promise<Open> {
    const { clock } = this.#parts;
    const open = await this.#open;
    if (open !== undefined && open.retired === undefined) {
      const { pagesMax, ageMsMax } = this.#limits;
      const isWorn = open.loaded >= pagesMax || clock.monotonic() - open.openedAt >= ageMsMax;
      if (!isWorn && !open.context.lost.aborted) return open;
      this.#retire(open);
    }
    this.#open ??= this.#openContext(signal);
    const opening = this.#open;
    try {
      return await opening;
    } catch (error) {
      if (this.#open === opening) this.#open = undefined;
      throw error;
    }
  }

  async #openContext(signal: AbortSignal): Promise<Open> {
    const { pool, clock, request } = this.#parts;
    if (this.#isClosed) throw new Error("Cannot load the page: the loader is closed");
    const cookies = await this.#cookies;
    const context = await pool.newContext(signal);
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

  async #openPage(context: RenderContext, signal: AbortSignal): Promise<BrowserPage> {
    const { clock } = this.#parts;
    const { takeHtmlMs } = this.#limits;
    const opening = BrowserPage.open(context, { parameters: this.#parameters, clock, takeHtmlMs });
    try {
      return await abortable(opening, AbortSignal.any([signal, context.lost]));
    } catch (error) {
      void opening.then((page) => page.close()).catch(() => {});
      throw context.lost.aborted ? context.lost.reason : error;
    }
  }

  async #done(open: Open, page: BrowserPage | undefined): Promise<void> {
    const isUsable = (await page?.reset()) ?? false;
    open.loading -= 1;
    if (page !== undefined && isUsable) open.idle.push(page);
    if (open.loading > 0) return;
    if (open.retired !== undefined || this.#isClosed) {
      // A context that is closed answers nothing more, not even what it was asked before.
      await open.retired;
      return open.context.release();
    }
    this.#idling.abort();
    this.#idling = new AbortController();
    const { signal } = this.#idling;
    await this.#parts.clock.wait(this.#limits.idleMs, signal);
    if (!signal.aborted && open.loading === 0) this.#retire(open);
  }

  /** Its cookies go on to the next. */
  #retire(open: Open): void {
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

  #answer(url: string, loaded: Loaded, browserMs: number): PageAnswer {
    const { clock } = this.#parts;
    switch (loaded.kind) {
      case "failed": {
        const { error, head } = loaded;
        const asked = this.#askedBy(head);
        const retry = asked.retry || PASSING.has(error.code);
        const status = head?.status;
        return { kind: "failed", reason: error.message, ...asked, retry, status, browserMs };
      }
      case "ended": {
        const { head } = loaded;
        const { status } = head;
        const target = redirectTarget(url, status, head.headers);
        if (target?.url !== undefined) {
          return { kind: "redirect", to: target.url, status, browserMs };
        }
        if (target !== undefined) return failed(target.fault, { status, browserMs });
        if (this.#isUnmodified(head)) {
          return {
            kind: "unmodified",
            status,
            lastModifiedAt: lastModifiedAt(head.headers),
            browserMs,
          };
        }
        const shown = head.headers.get("content-type")?.slice(0, ANSWER_SHOWN_CHARS);
        const what = `its content type is "${shown}", not text`;
        return { ...failed(what, { status, browserMs }), ...this.#askedBy(head) };
      }
      case "taken": {
        const { head, taken } = loaded;
        const { status, headers } = head;
        return {
          kind: "page",
          status,
          html: taken.html,
          truncated: taken.truncated,
          contentType: headers.get("content-type")?.slice(0, CONTENT_TYPE_CHARS_MAX),
          lastModifiedAt: lastModifiedAt(headers),
          awayMs: awayMsOf(status, headers.get("retry-after"), clock.now()),
          ...readRobotsTag(headers.get("x-robots-tag"), PRODUCT_TOKEN),
          browserMs,
        };
      }
      default:
        return loaded satisfies never;
    }
  }

  /** What the host's status and fields say of another try, whatever the body is. */
  #askedBy(head: DocumentHead | undefined): { retry: boolean; awayMs?: number } {
    if (head === undefined || !isOfHost(head)) return { retry: false };
    const { status, headers } = head;
    const awayMs = awayMsOf(status, headers.get("retry-after"), this.#parts.clock.now());
    return { retry: isPassingStatus(status), ...(awayMs !== undefined && { awayMs }) };
  }

  #isPage(url: string, head: DocumentHead): boolean {
    const isRedirect = redirectTarget(url, head.status, head.headers) !== undefined;
    return !isRedirect && !this.#isUnmodified(head) && head.form !== "other";
  }

  #isUnmodified(head: DocumentHead): boolean {
    return isUnmodified(head, this.#parts.request.modifiedSince);
  }
}

/** What may be otherwise at the next try. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "address_unreachable",
  "browser_crashed",
  "connection_closed",
  "connection_refused",
  "empty_response",
  "http2_failed",
  "name_not_resolved",
  "navigation_timed_out",
  "network_failed",
]);

function pageParametersOf(request: CrawlRequest): PageRequest {
  const headers = callersFields(request);
  return {
    // Whose credentials they are.
    url: request.url,
    ...(headers.length > 0 && { setExtraHTTPHeaders: Object.fromEntries(headers) }),
    authenticate: request.authenticate,
    gotoOptions: request.gotoOptions,
    waitForSelector: request.waitForSelector,
    waitForTimeout: request.waitForTimeout,
    viewport: request.viewport,
    addScriptTag: request.addScriptTag,
    addStyleTag: request.addStyleTag,
    allowResourceTypes: request.allowResourceTypes,
    rejectResourceTypes: request.rejectResourceTypes,
    allowRequestPattern: request.allowRequestPattern,
    rejectRequestPattern: request.rejectRequestPattern,
    emulateMediaType: request.emulateMediaType,
    setJavaScriptEnabled: request.setJavaScriptEnabled,
    actionTimeout: request.actionTimeout,
    bestAttempt: request.bestAttempt,
  };
}

/** A page that could not be opened; throws what is a fault of ours. */
function notOpened(error: unknown, browserMs: number): PageAnswer {
  const isRefusal = error instanceof ActorError;
  const hasDied = error instanceof BrowserDiedError && !(error instanceof BrowserNotStartedError);
  if (!isRefusal && !hasDied) throw error;
  const retry = isRefusal ? PASSING.has(error.code) : true;
  return { kind: "failed", reason: error.message, retry, status: undefined, browserMs };
}

function failed(
  what: string,
  { status, browserMs }: { status: number; browserMs: number },
): PageAnswer {
  return {
    kind: "failed",
    reason: `Cannot fetch the page: ${what}`,
    retry: false,
    status,
    browserMs,
  };
}
