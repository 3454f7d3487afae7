/** Requests that a browser marks. Their owner decides when each may leave, and is notified when it has left. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** Passed on to nobody (http-headers.ts). */
export const MARK_HEADER = "x-trunkline-mark";
const MARK_BYTES = 16;

export interface MarkedRequest {
  /** Whether it may be made; asked again where it comes again, or its connection turns out closed. */
  admit(): Promise<boolean>;
  /** Asked with a connection at hand: whether it leaves then, when this resolves. */
  mayLeave(): Promise<boolean>;
  /** Called each time it has left. */
  onSent(): void;
}

export interface Mark extends Disposable {
  /** For MARK_HEADER. */
  value: string;
}

/** `unknown` is marked for somebody who has left: nobody wants an answer. */
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
