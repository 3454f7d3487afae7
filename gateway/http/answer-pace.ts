/**
 * Writes to a client no faster than it reads. Cuts off a client that reads too slowly, because others need the memory
 * of its answer.
 */
import type { ServerResponse } from "node:http";
import { ActorError } from "../../schemas/errors.ts";
import { ANSWER_STALL_MS } from "../../schemas/limits.ts";

const ANSWER_STALL_BYTES = 128 * 1024;
/**
 * Size of the pieces in which an answer is written. After each piece the gateway sees how much the client has read.
 */
const ANSWER_PIECE_BYTES = 64 * 1024;

/** A client must read at least `stallBytes` in `stallMs`; otherwise the gateway aborts its answer. */
export interface AnswerPaceLimits {
  stallMs: number;
  stallBytes: number;
}

export class AnswerPace {
  readonly #response: ServerResponse;
  readonly #stallMs: number;
  readonly #stallBytes: number;
  /** Bytes written since the client was last fast enough, and the time spent since then waiting for the client. */
  #bytes = 0;
  #waitedMs = 0;

  constructor(
    response: ServerResponse,
    { stallMs = ANSWER_STALL_MS, stallBytes = ANSWER_STALL_BYTES }: Partial<AnswerPaceLimits> = {},
  ) {
    this.#response = response;
    this.#stallMs = stallMs;
    this.#stallBytes = stallBytes;
  }

  /**
   * Writes a chunk. Resolves when the client can take more bytes. Rejects and aborts the answer if the client is too
   * slow, if it has left, if the signal aborts (with its reason), or if `meanwhile` rejects.
   */
  async write(chunk: Uint8Array, signal: AbortSignal, meanwhile?: Promise<unknown>): Promise<void> {
    for (const piece of piecesOf(chunk)) {
      this.#bytes += piece.length;
      if (!this.#response.write(piece)) await this.#waited({ signal, meanwhile });
    }
  }

  /** Writes as `write` does, but resolves only when the bytes have left this process and their memory can be reused. */
  async writeOut(chunk: Uint8Array, signal: AbortSignal): Promise<void> {
    for (const piece of piecesOf(chunk)) {
      this.#bytes += piece.length;
      const out = new Promise<void>((resolve) => {
        this.#response.write(piece, () => resolve());
      });
      await this.#waited({ signal, until: out });
    }
  }

  /**
   * Writes the last chunk as `write` does, then ends the answer. The last bytes have the same time limit as all
   * others.
   */
  async end(
    signal: AbortSignal,
    content: Uint8Array = NOTHING,
    meanwhile?: Promise<unknown>,
  ): Promise<void> {
    const response = this.#response;
    const pieces = [...piecesOf(content)];
    const last = pieces.pop();
    for (const piece of pieces) await this.write(piece, signal, meanwhile);
    const late = setTimeout(() => response.destroy(), this.#stallMs);
    for (const event of ["finish", "close"]) response.once(event, () => clearTimeout(late));
    if (response.destroyed) clearTimeout(late);
    response.end(last);
  }

  /** Waits for `until` when it is given, otherwise until the client can take more. */
  async #waited({
    signal,
    until,
    meanwhile,
  }: {
    signal: AbortSignal;
    until?: Promise<void>;
    meanwhile?: Promise<unknown> | undefined;
  }): Promise<void> {
    const response = this.#response;
    if (response.destroyed) throw left();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const closed = () => reject(left());
    const given = () => reject(signal.reason);
    const startedAt = performance.now();
    const late = setTimeout(() => reject(slow()), this.#stallMs - this.#waitedMs);
    // Plain listeners are used because a large answer waits a hundred times, and each wait with an AbortSignal would
    // create an unused error object.
    response.on("close", closed);
    if (until) until.then(resolve);
    else response.on("drain", resolve);
    signal.addEventListener("abort", given);
    if (signal.aborted) given();
    meanwhile?.catch(reject);
    try {
      await promise;
    } catch (error) {
      response.destroy();
      throw error;
    } finally {
      clearTimeout(late);
      response.off("drain", resolve).off("close", closed);
      signal.removeEventListener("abort", given);
    }
    this.#waitedMs += performance.now() - startedAt;
    if (this.#bytes >= this.#stallBytes) [this.#bytes, this.#waitedMs] = [0, 0];
  }
}

const NOTHING = new Uint8Array();

/** Splits a chunk into pieces, because the gateway cannot tell how much of a large chunk the client has read. */
function* piecesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < chunk.length; from += ANSWER_PIECE_BYTES) {
    yield chunk.subarray(from, from + ANSWER_PIECE_BYTES);
  }
}

const slow = () =>
  new ActorError("deadline_exceeded", "Cannot answer: the client reads too slowly");
const left = () => new ActorError("cancelled", "Cannot answer: the client has left");
