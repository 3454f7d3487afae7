/** How many requests each route has answered, how many of them failed on our side, and how long that took. */
import type { Route } from "./route.ts";

export interface RequestCount {
  /** The route's id, or "other" for what is no route. */
  id: string;
  /** As in `POST /v4/accounts/{account_id}/tokens`. */
  endpoint: string;
  requests: number;
  errors: number;
  lastError: string;
  /** Milliseconds from the first header to the last byte of the answer, added up. */
  ms: number;
}

/** Statuses from here on are faults of ours; those below are answers. */
const FAULT_STATUS = 500;
const OTHER = { id: "other", endpoint: "other paths" };

export class RequestCounts {
  readonly #counts = new Map<string, RequestCount>();

  /** Names a route that will be counted, so that it is listed before anybody asked for it. */
  add({ id, method, path }: Pick<Route, "id" | "method" | "path">): void {
    this.#begin({ id, endpoint: `${method.toUpperCase()} /v4${path}` });
  }

  /** `id` is undefined where no route matched. */
  count(id: string | undefined, status: number, ms: number): void {
    const counts = this.#counts.get(id ?? OTHER.id) ?? this.#begin(OTHER);
    counts.requests += 1;
    counts.ms += ms;
    if (status < FAULT_STATUS) return;
    counts.errors += 1;
    counts.lastError = `status ${status}`;
  }

  all(): RequestCount[] {
    return [...this.#counts.values()];
  }

  #begin(named: Pick<RequestCount, "id" | "endpoint">): RequestCount {
    const counts = { ...named, requests: 0, errors: 0, lastError: "", ms: 0 };
    this.#counts.set(named.id, counts);
    return counts;
  }
}
