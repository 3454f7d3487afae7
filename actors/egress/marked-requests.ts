/**
 * Requests that a browser marks. The owner of a mark decides when each request may be sent, and is notified when it
 * was sent.
 */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The header that carries the mark. The proxy does not forward it (http-headers.ts). */
export const MARK_HEADER = "x-trunkline-mark";
const MARK_BYTES = 16;

export interface MarkedRequest {
  /**
   * Decides whether the request is admitted. Called again if the browser repeats the request or if its connection
   * turns out to be closed.
   */
  admit(): Promise<boolean>;
  /** Called when a connection is ready. Decides whether the request is sent as soon as the promise resolves. */
  mayLeave(): Promise<boolean>;
  /** Called each time the request was sent. */
  onSent(): void;
}

export interface Mark extends Disposable {
  /** The value of MARK_HEADER in the marked requests. */
  value: string;
}

/**
 * The owner of a request's mark; undefined for a request without a mark. `unknown`: the mark is no longer registered,
 * so no client needs a response.
 */
export type Marked = MarkedRequest | "unknown" | undefined;

export class MarkedRequests {
  readonly #requests = new Map<string, MarkedRequest>();

  add(request: MarkedRequest): Mark {
    const value = randomBytes(MARK_BYTES).toString("hex");
    this.#requests.set(value, request);
    return { value, [Symbol.dispose]: () => void this.#requests.delete(value) };
  }

  of({ headers }: IncomingMessage): Marked {
    const value = headers[MARK_HEADER];
    return value === undefined ? undefined : (this.#requests.get(String(value)) ?? "unknown");
  }
}
