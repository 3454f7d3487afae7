/**
 * Waits until a page has stopped fetching. Not the browser's own network idle events: they come late, count from
 * the navigation on, and never come for a second document set in one page.
 */
import type { HTTPRequest, Page } from "puppeteer-core";
import { NETWORK_QUIET_MS } from "../../schemas/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import { abortable } from "../runtime/time-limit.ts";

/** Streams and beacons have no end that a page waits for. WebSockets are no requests here at all. */
const NEVER_AWAITED = new Set(["eventsource", "ping", "cspviolationreport"]);

export class RequestsInFlight {
  readonly #requests = new Set<HTTPRequest>();
  readonly #ended = new WeakSet<HTTPRequest>();
  #changed = new AbortController();

  /** Counts from now on, so make one before the page loads. */
  constructor(page: Page) {
    page.on("request", (request) => {
      // Puppeteer tells of a request a moment later than the browser did; by then it may have told of its end.
      if (NEVER_AWAITED.has(request.resourceType()) || this.#ended.has(request)) return;
      this.#requests.add(request);
      this.#change();
    });
    for (const end of ["requestfinished", "requestfailed"] as const) {
      page.on(end, (request: HTTPRequest) => {
        this.#ended.add(request);
        if (this.#requests.delete(request)) this.#change();
      });
    }
  }

  /** Resolves after 500 ms with never more than so many in flight. Rejects with the signal's reason. */
  async quiet(requestsMax: number, { signal, clock }: { signal: AbortSignal; clock: Clock }) {
    for (;;) {
      signal.throwIfAborted();
      if (this.#requests.size > requestsMax) {
        await abortable(this.#nextChange(), signal);
        continue;
      }
      using busy = this.#untilBusy(requestsMax);
      await clock.wait(NETWORK_QUIET_MS, AbortSignal.any([busy.signal, signal]));
      signal.throwIfAborted();
      if (!busy.signal.aborted) return;
    }
  }

  /** A signal that aborts when there are more. */
  #untilBusy(requestsMax: number) {
    const busy = new AbortController();
    let left = false;
    const watch = async () => {
      while (!left && !busy.signal.aborted) {
        await this.#nextChange();
        if (this.#requests.size > requestsMax) busy.abort();
      }
    };
    void watch();
    return {
      signal: busy.signal,
      [Symbol.dispose]: () => {
        left = true;
      },
    };
  }

  #nextChange(): Promise<void> {
    const { signal } = this.#changed;
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
  }

  #change(): void {
    const changed = this.#changed;
    this.#changed = new AbortController();
    changed.abort();
  }
}
