/**
 * Loads the pages of one job in a browser, in one context with a few reusable pages. Images and fonts are not
 * blocked, because scripts measure them and react to their failures. A page is stopped when its HTML is read, so the
 * browser fetches few images and fonts. Of 40 images it fetched 7, in 10 of the page's 60 ms. With
 * `rejectResourceTypes` a crawl can avoid these requests too.
 */

import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { ANSWER_SHOWN_CHARS, CONTENT_TYPE_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { ActorError, type ErrorCode } from "../../../../schemas/errors.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import {
  BrowserDiedError,
  BrowserNotStartedError,
} from "../../../rendering/lib/browser/browser-died-error.ts";
import type { BrowserPool } from "../../../rendering/lib/browser/browser-pool.ts";
import type { PageRequest } from "../../../rendering/lib/browser/prepare-page.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { abortable, Timeout } from "../../../runtime/lib/time-limit.ts";
import { NotMade } from "../departure/departure.ts";
import { callersFields } from "../load/crawl-headers.ts";
import { isUnmodified, lastModifiedAt } from "../load/last-modified.ts";
import type { PageAnswer, PageLoad, PageLoader } from "../load/page-loader.ts";
import { isPassingStatus } from "../load/passing-faults.ts";
import { pageRedirect } from "../load/refresh-target.ts";
import { awayMsOf } from "../load/retry-after.ts";
import { robotsTag } from "../load/robots-tag.ts";
import { PRODUCT_TOKEN } from "../load/user-agent.ts";
import { BrowserContexts, type ContextLimits, type OpenContext } from "./browser-contexts.ts";
import type { BrowserPage, Loaded } from "./browser-page.ts";
import type { DocumentHead } from "./document-gate.ts";

/**
 * How long before the start time the browser gets the command to load the page. The browser needs about 10 ms to send
 * the request.
 */
const GOTO_AHEAD_MS = 20;

export interface BrowserPageLoaderParts {
  pool: BrowserPool;
  clock: Clock;
  account?: string | undefined;
  request: CrawlRequest;
  limits?: Partial<ContextLimits>;
  /** Semaphore for pages that need a browser of their own; by default the loader loads one such page at a time. */
  apart?: Pick<Semaphore, "take">;
}

export class BrowserPageLoader implements PageLoader {
  readonly #parts: BrowserPageLoaderParts;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #contexts: BrowserContexts;
  readonly #apart: Pick<Semaphore, "take">;

  constructor(parts: BrowserPageLoaderParts) {
    const { request, pool, apart = new Semaphore(1) } = parts;
    this.#parts = parts;
    this.#contexts = this.#contextsOf(pool);
    this.#apart = apart;
    const { modifiedSince } = request;
    this.#headers =
      modifiedSince === undefined
        ? {}
        : { "If-Modified-Since": new Date(modifiedSince * 1_000).toUTCString() };
  }

  /** Loads a page. Throws the signal's reason, a `BrowserNotStartedError`, or a fault of this platform. */
  async load(load: PageLoad): Promise<PageAnswer> {
    const { signal, startBy } = load;
    const { clock } = this.#parts;
    signal.throwIfAborted();
    const error = () => new NotMade("There is no browser for the page");
    using late = new Timeout({ ms: startBy - clock.monotonic(), error, clock });
    const opening = AbortSignal.any([signal, late.signal]);
    try {
      if (load.isAlone) return await this.#loadApart(load, opening);
      return await this.#loadBy(this.#contexts, load, opening);
    } catch (error) {
      signal.throwIfAborted();
      return notOpened(error, 0);
    }
  }

  /** Loads a page in a browser of its own, so that only this page can end it. */
  async #loadApart(load: PageLoad, opening: AbortSignal): Promise<PageAnswer> {
    const release = await this.#apart.take(opening);
    try {
      await using pool = this.#parts.pool.another();
      const contexts = this.#contextsOf(pool);
      try {
        return await this.#loadBy(contexts, load, opening);
      } finally {
        await contexts.close();
      }
    } finally {
      release();
    }
  }

  #contextsOf(pool: BrowserPool): BrowserContexts {
    const parameters = pageParametersOf(this.#parts.request);
    return new BrowserContexts({ ...this.#parts, pool, parameters });
  }

  async #loadBy(
    contexts: BrowserContexts,
    load: PageLoad,
    opening: AbortSignal,
  ): Promise<PageAnswer> {
    const open = await abortable(contexts.use(), opening);
    const answer = await this.#loadIn({ contexts, open }, load, opening);
    const isLost = answer.kind === "failed" && answer.retry && open.context.lost.aborted;
    return isLost ? { ...answer, browserLost: true } : answer;
  }

  async #loadIn(
    { contexts, open }: { contexts: BrowserContexts; open: OpenContext },
    load: PageLoad,
    opening: AbortSignal,
  ): Promise<PageAnswer> {
    const { clock } = this.#parts;
    contexts.begin(open);
    const startedAt = clock.monotonic();
    let waitedMs = 0;
    const browserMs = () => Math.max(1, Math.round(clock.monotonic() - startedAt - waitedMs));
    // Waiting does not count as browser time.
    const waited = async (wait: Promise<void>) => {
      const before = clock.monotonic();
      await wait;
      waitedMs += clock.monotonic() - before;
    };
    const due = (aheadMs?: number) => waited(load.due(aheadMs));
    const onLarge = () => waited(load.onLarge());
    let page: BrowserPage | undefined;
    try {
      const opened = await contexts.page(open, opening);
      page = opened;
      opening.throwIfAborted();
      await due(GOTO_AHEAD_MS);
      const wants = (head: DocumentHead) => this.#isPage(load.url, head);
      const headers = load.isStart ? {} : this.#headers;
      const loaded = await opened.load({ ...load, due, onLarge }, { headers, wants });
      return this.#answer(load.url, loaded, browserMs());
    } catch (error) {
      load.signal.throwIfAborted();
      return notOpened(error, browserMs());
    } finally {
      // The result is known, so nobody waits for the reset.
      void contexts.done(open, page);
    }
  }

  async close(): Promise<void> {
    await this.#contexts.close();
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
        const target = pageRedirect(url, status, head.headers);
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
        const contentType = head.headers.get("content-type")?.slice(0, CONTENT_TYPE_CHARS_MAX);
        const reason = `its content type is "${contentType?.slice(0, ANSWER_SHOWN_CHARS)}", not text`;
        if (isSuccessful(status)) {
          return { kind: "download", status, contentType, reason, browserMs };
        }
        return { ...failed(reason, { status, browserMs }), ...this.#askedBy(head) };
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
          ...robotsTag(headers.get("x-robots-tag"), PRODUCT_TOKEN),
          browserMs,
        };
      }
      default:
        return loaded satisfies never;
    }
  }

  /** Returns whether a retry makes sense and which pause the host asked for, by status and header fields. */
  #askedBy(head: DocumentHead | undefined): { retry: boolean; awayMs?: number } {
    if (head === undefined) return { retry: false };
    const { status, headers } = head;
    const awayMs = awayMsOf(status, headers.get("retry-after"), this.#parts.clock.now());
    return { retry: isPassingStatus(status), ...(awayMs !== undefined && { awayMs }) };
  }

  #isPage(url: string, head: DocumentHead): boolean {
    const isRedirect = pageRedirect(url, head.status, head.headers) !== undefined;
    return !isRedirect && !this.#isUnmodified(head) && head.form !== "other";
  }

  #isUnmodified(head: DocumentHead): boolean {
    return isUnmodified(head, this.#parts.request);
  }
}

/** Codes of errors after which a retry can succeed. */
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
    // Credentials are sent only to the origin of this address.
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

/** Returns the failure of a page that could not be opened. Rethrows faults of this platform. */
function notOpened(error: unknown, browserMs: number): PageAnswer {
  const isRefusal = error instanceof ActorError;
  const hasDied = error instanceof BrowserDiedError && !(error instanceof BrowserNotStartedError);
  if (!isRefusal && !hasDied) throw error;
  const retry = isRefusal ? PASSING.has(error.code) : true;
  const lost = hasDied && { browserLost: true as const };
  return { kind: "failed", reason: error.message, retry, status: undefined, browserMs, ...lost };
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
