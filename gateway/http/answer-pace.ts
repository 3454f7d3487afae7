/** Writes to a client no faster than it reads, and gives up one that reads too slowly: others wait for what its answer holds. */
import type { ServerResponse } from "node:http";
import { ActorError } from "../../schemas/errors.ts";
import { ANSWER_PIECE_BYTES, ANSWER_STALL_BYTES, ANSWER_STALL_MS } from "../../schemas/limits.ts";

/** So many bytes are taken in so long, or the answer is cut off. */
export interface AnswerPaceLimits {
  stallMs: number;
  stallBytes: number;
}

export class AnswerPace {
  readonly #response: ServerResponse;
  readonly #stallMs: number;
  readonly #stallBytes: number;
  /** Since the client last kept up: what it was given, and how long that was waited for. */
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
   * Resolves when there is room for more. Rejects with the signal's reason, or where the client is too slow, or has left;
   * then its answer is cut off. `meanwhile`: rejects as this does.
   */
  async write(chunk: Uint8Array, signal: AbortSignal, meanwhile?: Promise<unknown>): Promise<void> {
    for (const piece of piecesOf(chunk)) {
      this.#bytes += piece.length;
      if (!this.#response.write(piece)) await this.#waited({ signal, meanwhile });
    }
  }

  /** As `write`, but resolves when all of it is out of this process: the memory may be written over then. */
  async writeOut(chunk: Uint8Array, signal: AbortSignal): Promise<void> {
    for (const piece of piecesOf(chunk)) {
      this.#bytes += piece.length;
      const out = new Promise<void>((resolve) => {
        this.#response.write(piece, () => resolve());
      });
      await this.#waited({ signal, until: out });
    }
  }

  /** As `write`, and what is left goes by itself: it is little, and has to go in as long. */
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

  /** Until then, or else until there is room for more. */
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
    // By hand: a large answer waits a hundred times, and each wait by signals makes errors that nobody reads.
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

/** Of a large chunk nobody knows how much of it has been taken. */
function* piecesOf(chunk: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < chunk.length; from += ANSWER_PIECE_BYTES) {
    yield chunk.subarray(from, from + ANSWER_PIECE_BYTES);
  }
}

const slow = () =>
  new ActorError("deadline_exceeded", "Cannot answer: the client reads too slowly");
const left = () => new ActorError("cancelled", "Cannot answer: the client has left");
