/**
 * Waits until a page has stopped fetching. Not the browser's own network idle events: they come late, count from
 * the navigation on, and never come for a second document set in one page.
 */
import type { HTTPRequest, Page } from "puppeteer-core";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { abortable } from "../../../runtime/lib/time-limit.ts";

/**
 * For `networkidle2`: a page whose requests follow one another for this long, never more than two at a time, is
 * polling.
 */
export const NETWORK_POLLING_MS = 5_000;

/** Silence that counts as idle, as browsers have it. */
export const NETWORK_QUIET_MS = 500;

/** Streams and beacons have no end that a page waits for. WebSockets are no requests here at all. */
const NEVER_AWAITED = new Set(["eventsource", "ping", "cspviolationreport"]);

export class RequestsInFlight {
  readonly #requests = new Set<HTTPRequest>();
  readonly #ended = new WeakSet<HTTPRequest>();
  /** Requests in flight when the page asked for its latest document. */
  #ofEarlierDocuments = new Set<HTTPRequest>();
  #changed = new AbortController();
  #changedAt: number | undefined;
  readonly #clock: Pick<Clock, "monotonic">;

  /** Counts from now on, so make one before the page loads. */
  constructor(page: Page, clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
    page.on("request", (request) => {
      // Puppeteer tells of a request a moment later than the browser did; by then it may have told of its end.
      if (NEVER_AWAITED.has(request.resourceType()) || this.#ended.has(request)) return;
      if (request.isNavigationRequest() && request.frame() === page.mainFrame()) {
        this.#ofEarlierDocuments = new Set(this.#requests);
      }
      this.#requests.add(request);
      this.#change();
    });
    // The browser may tell of no end where a page leads on at once.
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
   * Resolves after 500 ms in which no request began or ended, while at most `requestsMax` are in flight; requests that
   * follow one another are no quiet, though each is alone. A page that polls never has that, so NETWORK_POLLING_MS with
   * at most `requestsMax` in flight are enough, too. Rejects with the signal's reason.
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
      await clock.wait(ms, AbortSignal.any([changed, signal]));
      signal.throwIfAborted();
      if (!changed.aborted) return;
    }
  }

  /** Requests in flight. */
  get count(): number {
    return this.#requests.size;
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

  /** Whether a request began or ended since then, by the clock. */
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
    changed.abort();
  }
}
