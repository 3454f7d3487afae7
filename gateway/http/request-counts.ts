/** Counts the requests, the failures and the time of the gateway for each route. */
import type { Route } from "./route.ts";

export interface RequestCount {
  /** The route's id, or "other" for a request that matched no route. */
  id: string;
  /** Method and path, for example `POST /v4/accounts/{account_id}/tokens`. */
  endpoint: string;
  requests: number;
  errors: number;
  lastError: string;
  /** Sum of milliseconds from the first header to the last byte of the answer. */
  ms: number;
}

/** This status and all higher ones count as failures. */
const FAULT_STATUS = 500;
const OTHER = { id: "other", endpoint: "other paths" };

export class RequestCounts {
  readonly #counts = new Map<string, RequestCount>();

  /** Adds a route with zero requests, so that it is listed from the start. */
  add({ id, method, path }: Pick<Route, "id" | "method" | "path">): void {
    this.#begin({ id, endpoint: `${method.toUpperCase()} /v4${path}` });
  }

  /** Counts one request. `id` is undefined when no route matched. */
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
