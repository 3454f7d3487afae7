/** Server-Sent Events to one client, with a bound on the events that wait for a slow one. */
import type { Response } from "express";
import { ANSWER_STALL_MS } from "../../schemas/limits.ts";

/** Reconnection delay that an event stream tells its client. */
const EVENTS_RETRY_MS = 2_000;
/** Bytes queued for a slow client. Past it, pages are only counted. */
export const EVENTS_WAITING_BYTES_MAX = 256 * 1024;

export class EventStream {
  readonly #response: Response;
  readonly #stallMs: number;
  #lastWriteAt = 0;

  /** Sends the status at once. Cuts off a client that reads nothing for too long. */
  constructor(response: Response, { stallMs = ANSWER_STALL_MS }: { stallMs?: number } = {}) {
    this.#response = response;
    this.#stallMs = stallMs;
    response.set({
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-store, no-transform",
      // nginx and similar proxies would buffer the events.
      "X-Accel-Buffering": "no",
    });
    response.on("timeout", () => response.destroy());
    response.on("drain", () => response.setTimeout(0));
    response.socket?.setNoDelay(true);
    this.#write(`retry: ${EVENTS_RETRY_MS}\n\n`);
    response.flushHeaders();
  }

  /** Whether the client's buffer is so full that the sender should skip optional events. */
  get isBehind(): boolean {
    return this.#response.writableLength > EVENTS_WAITING_BYTES_MAX;
  }

  get silentMs(): number {
    return performance.now() - this.#lastWriteAt;
  }

  /** Sends one event. The client returns `id` as Last-Event-ID when it connects again. */
  send(event: string, data: unknown, id?: string): void {
    const idLine = id === undefined ? "" : `id: ${id}\n`;
    this.#write(`event: ${event}\n${idLine}data: ${JSON.stringify(data)}\n\n`);
  }

  keepAlive(): void {
    this.#write(": still here\n\n");
  }

  end(): void {
    if (this.#response.writableEnded) return;
    this.#response.setTimeout(this.#stallMs);
    this.#response.end();
  }

  #write(text: string): void {
    if (this.#response.writableEnded || this.#response.destroyed) return;
    this.#lastWriteAt = performance.now();
    if (!this.#response.write(text)) this.#response.setTimeout(this.#stallMs);
  }
}
