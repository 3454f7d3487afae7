/**
 * Waits until a page has stopped fetching. It does not use the browser's own network idle events: they come late,
 * count from the start of the navigation, and never come for a second document set in one page.
 */
import type { HTTPRequest, Page } from "puppeteer-core";
import { type Clock, OVER } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";

/**
 * For `networkidle2`: a page counts as polling if it sends one request after another for this time, never more than
 * two at a time.
 */
export const NETWORK_POLLING_MS = 5_000;

/** Time without requests that counts as idle, as in browsers. */
export const NETWORK_QUIET_MS = 500;

/**
 * If a wait ends later than this, the machine stood still. The page could do nothing during that time, so it does not
 * count as quiet.
 */
export const STOOD_STILL_MS = 1_000;

/**
 * The end of streams and beacons is not waited for, because they may never end. WebSockets are not in this list,
 * because puppeteer does not report them as requests.
 */
const NEVER_AWAITED = new Set(["eventsource", "ping", "cspviolationreport"]);

export class RequestsInFlight {
  readonly #requests = new Set<HTTPRequest>();
  readonly #ended = new WeakSet<HTTPRequest>();
  /** Requests that were open when the page requested its latest document. */
  #ofEarlierDocuments = new Set<HTTPRequest>();
  #changed = new AbortController();
  #changedAt: number | undefined;
  readonly #clock: Pick<Clock, "monotonic">;

  /** Counts requests from now on, so construct it before the page loads. */
  constructor(page: Page, clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    page.on("request", (request) => {
      // Puppeteer reports a request later than the browser does, and may have reported its end before. Such a request
      // is not counted.
      if (NEVER_AWAITED.has(request.resourceType()) || this.#ended.has(request)) return;
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) {
        this.#ofEarlierDocuments = new Set(this.#requests);
      }
      this.#requests.add(request);
      this.#change();
    });
    // If a page navigates immediately, the browser may not report the end of the old document's requests. So they are
    // removed when the new document has loaded.
    page.on("domcontentloaded", () => {
      for (const request of this.#ofEarlierDocuments) {
        if (this.#requests.delete(request)) this.#change();
      }
    });
    for (const end of ["requestfinished", "requestfailed"] as const) {
      page.on(end, (request: HTTPRequest) => {
        this.#ended.add(request);
        if (this.#requests.delete(request)) this.#change();
      });
    }
  }

  /**
   * Resolves after 500 ms in which no request began or ended and at most `requestsMax` were open. Requests that
   * follow one another without a pause do not count as quiet. A page that polls never becomes quiet, so
   * NETWORK_POLLING_MS with at most `requestsMax` open requests are also enough. Rejects with the reason of the
   * aborted signal.
   */
  async quiet(requestsMax: number, { signal, clock }: { signal: AbortSignal; clock: Clock }) {
    let fewSince: number | undefined;
    for (;;) {
      signal.throwIfAborted();
      if (this.#requests.size > requestsMax) {
        fewSince = undefined;
        await abortable(this.#nextChange(), signal);
        continue;
      }
      fewSince ??= clock.monotonic();
      const pollingMs = fewSince + NETWORK_POLLING_MS - clock.monotonic();
      const changed = this.#changed.signal;
      const ms = Math.max(0, Math.min(NETWORK_QUIET_MS, pollingMs));
      const beganAt = clock.monotonic();
      await clock.wait(ms, AbortSignal.any([changed, signal]));
      signal.throwIfAborted();
      const lateMs = clock.monotonic() - beganAt - ms;
      if (!changed.aborted && lateMs < STOOD_STILL_MS) return;
    }
  }

  /** Requests in flight. */
  get count(): number {
    return this.#requests.size;
  }

  /**
   * Waits at most `ms` until no request is in flight, and returns whether that is so. Puppeteer reports the end of a
   * request some milliseconds after the load event that waited for it.
   */
  async waitForNone({ ms, signal, clock }: { ms: number; signal: AbortSignal; clock: Clock }) {
    const endsAt = clock.monotonic() + ms;
    while (this.#requests.size > 0) {
      const leftMs = endsAt - clock.monotonic();
      if (leftMs <= 0) return false;
      await clock.wait(leftMs, AbortSignal.any([this.#changed.signal, signal]));
      signal.throwIfAborted();
    }
    return true;
  }

  /** Milliseconds since the last request began or ended; 0 while one is in flight. */
  quietMs(): number {
    return this.#requests.size > 0 ? 0 : this.unchangedMs();
  }

  /** Milliseconds since the last request began or ended. */
  unchangedMs(): number {
    if (this.#changedAt === undefined) return Number.POSITIVE_INFINITY;
    return this.#clock.monotonic() - this.#changedAt;
  }

  /** Returns whether a request began or ended after the time `at` of the clock. */
  changedSince(at: number): boolean {
    return this.#changedAt !== undefined && this.#changedAt > at;
  }

  #nextChange(): Promise<void> {
    const { signal } = this.#changed;
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #change(): void {
    const changed = this.#changed;
    this.#changedAt = this.#clock.monotonic();
    this.#changed = new AbortController();
    changed.abort(OVER);
  }
}
