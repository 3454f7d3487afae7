/** One reusable page of a job's browser context. */
import type { CDPSession, Protocol } from "puppeteer-core";
import { CRAWL_BODY_BYTES_MAX, READ_HTML_MS } from "../../../../schemas/crawl/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { BrowserDiedError } from "../../../rendering/lib/browser/browser-died-error.ts";
import type { ContextPage } from "../../../rendering/lib/browser/context-page.ts";
import { loadPage } from "../../../rendering/lib/browser/load-page.ts";
import {
  hasNavigatedAway,
  navigationError,
} from "../../../rendering/lib/browser/navigation-errors.ts";
import { type PageRequest, preparePage } from "../../../rendering/lib/browser/prepare-page.ts";
import { type PageHtml, readHtml } from "../../../rendering/lib/browser/read-html.ts";
import type { RenderContext } from "../../../rendering/lib/browser/render-context.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable, Timeout, within } from "../../../runtime/lib/time-limit.ts";
import { decodeBody } from "../load/decode-body.ts";
import type { PageLoad } from "../load/page-loader.ts";
import { CRAWLER_USER_AGENT } from "../load/user-agent.ts";
import { DocumentDeparture } from "./document-departure.ts";
import {
  type DocumentBody,
  DocumentGate,
  type DocumentHead,
  type SeenDocument,
} from "./document-gate.ts";

/** Timeout of a page in a browser. Together with TURN_STARTS_MS_MAX it stays below TURN_MS_MAX. */
export const CRAWL_RENDER_MS_MAX = 170_000;
/**
 * Timeout for stopping a loaded page; most pages stop in 10 ms. A page that does not stop is closed. If such a page
 * hangs, closing takes another 0.5 s. So all connections of a page are closed within 2 s after its load has ended.
 */
export const PAGE_RESET_MS = 1_000;

/** The result of loading a document. */
export type Loaded =
  /** The document after its scripts, or its part before the cut. */
  | { kind: "taken"; head: DocumentHead; taken: PageHtml }
  /** The head suffices: a redirect, or a document that is not wanted. */
  | { kind: "ended"; head: DocumentHead }
  | { kind: "failed"; error: ActorError; head: DocumentHead | undefined };

interface BrowserPageOptions {
  parameters: PageRequest;
  clock: Clock;
  takeHtmlMs?: number;
}

export class BrowserPage {
  readonly #page: ContextPage;
  readonly #gate: DocumentGate;
  /** DevTools session that reports a document's bytes while it loads, for documents that may be too large. */
  readonly #meter: CDPSession;
  readonly #options: BrowserPageOptions;
  /** Departure of the current or latest document. */
  #departure: DocumentDeparture | undefined;
  /** Whether the HTML was read. If it was, the document's scripts did not hang. */
  #isTaken = false;

  static async open(context: RenderContext, options: BrowserPageOptions): Promise<BrowserPage> {
    const page = await context.openPage({ userAgent: CRAWLER_USER_AGENT });
    const gateSession = await page.page.createCDPSession();
    let gate: DocumentGate | undefined;
    await preparePage(page, options.parameters, {
      mayAnswerSite: async () => (await gate?.oneMore()) ?? false,
    });
    // Prerendering is forbidden: the browser would show a prerendered document without a request that the gate sees.
    await gateSession.send("Page.setPrerenderingAllowed", { isAllowed: false });
    gate = await DocumentGate.install(gateSession, page.frameId);
    return new BrowserPage({ page, gate, meter: gateSession, options });
  }

  /** Private: use `open`. */
  constructor(parts: {
    page: ContextPage;
    gate: DocumentGate;
    meter: CDPSession;
    options: BrowserPageOptions;
  }) {
    this.#page = parts.page;
    this.#gate = parts.gate;
    this.#meter = parts.meter;
    this.#options = parts.options;
  }

  /** Whether the page is unusable. */
  get isLost(): boolean {
    return this.#page.lost.aborted;
  }

  /**
   * Loads a document. Throws the signal's reason or a fault of this platform. The caller must call `reset` before the
   * next document.
   */
  async load(
    load: PageLoad,
    expected: {
      headers: Readonly<Record<string, string>>;
      wants: (head: DocumentHead) => boolean;
    },
  ): Promise<Loaded> {
    const { clock } = this.#options;
    const url = URL.parse(load.url);
    if (url === null) throw new Error(`Cannot load ${load.url}: it is not an address`);
    url.hash = "";
    const { onLarge } = load;
    const { egress } = this.#page;
    const departure = new DocumentDeparture({ url, leave: load, egress, session: this.#meter });
    this.#departure = departure;
    this.#isTaken = false;
    const wants = (head: DocumentHead) => expected.wants(head) && this.#unfreeze();
    const document = { ...expected, url: url.href, departure, onLarge, wants };
    const seen = this.#gate.expect(document);
    using overall = new Timeout({ ms: CRAWL_RENDER_MS_MAX, error: tookTooLong, clock });
    const ended = AbortSignal.any([load.signal, this.#page.lost, overall.signal]);
    try {
      const isCut = await this.#complete(url.href, seen, ended);
      const head = seen.head ?? EMPTY_HEAD;
      const taken = await this.#take(onLarge, ended);
      if (!/^https?:/.test(taken.url)) throw leftItself();
      this.#isTaken = true;
      return {
        kind: "taken",
        head,
        taken: isCut ? { ...taken, truncated: true } : taken,
      };
    } catch (thrown) {
      load.signal.throwIfAborted();
      const { head } = seen;
      if (seen.body !== undefined && head !== undefined && !ended.aborted) {
        return await this.#decoded(url.href, head, seen.body);
      }
      if (seen.isUnreached) {
        const failure = egress.failureOf(url.href);
        const unreached = navigationError("ERR_FAILED", url.href, failure);
        return { kind: "failed", error: unreached, head: undefined };
      }
      if (seen.ended && head !== undefined) {
        return { kind: "ended", head };
      }
      const error = ended.aborted ? ended.reason : thrown;
      if (head !== undefined && hasNothingToShow(error, head)) {
        return { kind: "taken", head, taken: { url: url.href, html: "", truncated: false } };
      }
      const refusal = refusalOf(error, this.#page);
      if (refusal === undefined) throw error;
      return { kind: "failed", error: refusal, head };
    } finally {
      departure.end();
      this.#gate.close();
      for (const event of WATCHED) this.#page.page.removeAllListeners(event);
    }
  }

  /**
   * Stops the document's scripts, timers and requests. The document stays until the next one; a blank page in between
   * would take as long as a page, since it runs in another process. Resolves with whether the page is reusable; if
   * not, it is closed.
   */
  async reset(): Promise<boolean> {
    const { clock } = this.#options;
    const { lost, session } = this.#page;
    const error = () => new Error("it hangs");
    try {
      lost.throwIfAborted();
      await within({ ms: PAGE_RESET_MS, error, signal: lost, clock }, () =>
        Promise.all([
          session.send("Page.stopLoading"),
          session.send("Page.setWebLifecycleState", { state: "frozen" }),
          // The browser could show the last document again without a request.
          session.send("Page.resetNavigationHistory"),
          // The browser process answers the commands above even if the page hangs and keeps its connections. Only the
          // page's own process answers this one.
          !this.#isTaken && session.send("Runtime.getIsolateId"),
        ]),
      );
      this.#departure?.[Symbol.dispose]();
      return true;
    } catch {
      this.close();
      return false;
    }
  }

  /** Unfreezes the page only for the next document, so that the last one does not resume. */
  #unfreeze(): true {
    this.#page.session.send("Page.setWebLifecycleState", { state: "active" }).catch(() => {
      // The page is gone.
    });
    return true;
  }

  /** Closes the page in the background. The browser ends a page that hangs. */
  close(): void {
    const closed = this.#page.page.close().catch(() => {
      // The page is gone.
    });
    void closed.then(() => this.#departure?.[Symbol.dispose]());
  }

  async #decoded(url: string, head: DocumentHead, reading: Promise<DocumentBody>): Promise<Loaded> {
    const body = await reading.catch(() => undefined);
    if (body === undefined) {
      const reason = `Cannot load ${new URL(url).host}: it closed the connection`;
      return { kind: "failed", error: new ActorError("connection_closed", reason), head };
    }
    const { bytes, truncated } = body;
    const { text: html } = decodeBody(bytes, head.headers.get("content-type") ?? undefined);
    return { kind: "taken", head, taken: { url, html, truncated } };
  }

  /** Waits for the document. Resolves with whether it was cut. */
  async #complete(url: string, seen: SeenDocument, signal: AbortSignal): Promise<boolean> {
    const { parameters, clock } = this.#options;
    using size = this.#measure(seen);
    try {
      // An error page may never meet the wait conditions of the crawl request, but its text is needed for the record.
      // So its load ends without them.
      const isEnough = () => (seen.head?.status ?? 0) >= 400;
      const limits = { signal: AbortSignal.any([signal, size.exceeded]), clock, isEnough };
      using document = await loadPage(this.#page, { ...parameters, url }, limits);
      document.check();
      return false;
    } catch (error) {
      if (!size.exceeded.aborted || signal.aborted) throw error;
      return true;
    }
  }

  /** Stops an overlong document before it fills the browser's memory. */
  #measure(seen: SeenDocument) {
    const exceeded = new AbortController();
    const session = this.#meter;
    const requestIdOf = () => seen.requestId;
    let bytes = 0;
    const onData = ({ requestId, dataLength }: Protocol.Network.DataReceivedEvent) => {
      if (requestId !== requestIdOf()) return;
      bytes += dataLength;
      if (bytes <= CRAWL_BODY_BYTES_MAX || exceeded.signal.aborted) return;
      const stopped = session.send("Page.stopLoading").catch(() => {});
      void stopped.then(() => exceeded.abort(new Error("the document is too large")));
    };
    session.on("Network.dataReceived", onData);
    return {
      exceeded: exceeded.signal,
      [Symbol.dispose]: () => {
        session.off("Network.dataReceived", onData);
        if (seen.isMeasured) session.send("Network.disable").catch(() => {});
      },
    };
  }

  async #take(onLarge: () => Promise<void>, signal: AbortSignal): Promise<PageHtml> {
    const { clock, parameters, takeHtmlMs = READ_HTML_MS } = this.#options;
    const ms = parameters.actionTimeout ?? takeHtmlMs;
    const error = () =>
      new ActorError("wait_timed_out", `Cannot read the page: it took longer than ${ms} ms`);
    const limit = { ms, error, signal, clock };
    const taken = await within(limit, () => readHtml(this.#page));
    if (taken.html !== undefined) return taken;
    const { rest, ...known } = taken;
    // The wait for a place in memory is outside `within`, so it does not count toward the page's timeout.
    await abortable(onLarge(), signal);
    return { ...known, html: await within(limit, rest) };
  }
}

/** The events that `loadPage` listens to. */
const WATCHED = ["request", "response", "requestfinished", "requestfailed"] as const;
const EMPTY_HEAD: DocumentHead = { status: 200, headers: new Headers(), form: "html" };

/**
 * Whether the response has no content to show, so that the browser reports an error. Such a page counts as an empty
 * document.
 */
function hasNothingToShow(error: unknown, { status }: DocumentHead): boolean {
  if (!(error instanceof ActorError)) return false;
  const isEmpty = status === 204 || status === 205;
  return (isEmpty && error.code === "navigation_timed_out") || error.code === "response_failed";
}

function tookTooLong(): ActorError {
  const what = `it took longer than ${CRAWL_RENDER_MS_MAX} ms`;
  return new ActorError("navigation_timed_out", `Cannot load the page: ${what}`);
}

function leftItself(): ActorError {
  return new ActorError("page_navigated_away", "Cannot read the page: it navigated away meanwhile");
}

/** Returns the error as a failure of the page; undefined if it is a fault of this platform. */
function refusalOf(error: unknown, { page }: ContextPage): ActorError | undefined {
  if (error instanceof ActorError) return error;
  if (error instanceof BrowserDiedError) return new ActorError("browser_crashed", error.message);
  if (!(error instanceof Error)) return undefined;
  if (hasNavigatedAway(error)) return leftItself();
  if (page.isClosed() || error.name === "TargetCloseError") {
    return new ActorError("browser_crashed", "Cannot load the page: it closed itself");
  }
  return undefined;
}
