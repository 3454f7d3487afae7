/** Sends Server-Sent Events to one client, and limits the events that wait for a slow client. */
import type { Response } from "express";
import { ANSWER_STALL_MS } from "../../schemas/limits.ts";

/** The delay before a reconnection, which the stream sends to its client. */
const EVENTS_RETRY_MS = 2_000;
/**
 * Limits the bytes that wait for a slow client. Above it, the stream sends only the number of finished pages, not the
 * pages.
 */
export const EVENTS_WAITING_BYTES_MAX = 256 * 1024;

export class EventStream {
  readonly #response: Response;
  readonly #stallMs: number;
  #lastWriteAt = 0;

  /** Sends the status immediately. Closes the connection of a client that reads nothing for `stallMs`. */
  constructor(response: Response, { stallMs = ANSWER_STALL_MS }: { stallMs?: number } = {}) {
    this.#response = response;
    this.#stallMs = stallMs;
    response.set({
      "Content-Type": "text/event-stream",
      "Cache-Control": "no-store, no-transform",
      // Tells nginx and similar proxies not to buffer the events.
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
