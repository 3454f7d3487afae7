/** Sends a stream of a backup to the server that restores it. */
import { setTimeout as wait } from "node:timers/promises";
import { JetStreamApiError, type StreamState } from "@nats-io/jetstream";
import { type Msg, RequestError } from "@nats-io/transport-node";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { S2_CHUNK_BYTES_MAX, S2_START, s2Chunk } from "./s2-stream.ts";

/**
 * Maximum number of chunks without an acknowledgement. A ping of the client waits until the server has handled all of
 * them.
 */
const CHUNKS_IN_FLIGHT = 2;
const CHUNK_ANSWER_MS = 60_000;
/**
 * Maximum time until all servers of a cluster know a new listener. Usually this takes milliseconds, or seconds while
 * routes connect.
 */
const LISTENS_MS_MAX = 10_000;
const LISTENS_PAUSE_MS = 50;
/** Timeout for the last response. The server recovers the stream before it sends this response. */
const RESTORED_MS_MAX = 120_000;

interface Answer {
  error?: { code: number; err_code: number; description: string };
  deliver_subject?: string;
  state?: StreamState;
}

/**
 * Sends bytes to the server in chunks. Sends up to CHUNKS_IN_FLIGHT chunks before it waits for an acknowledgement.
 */
export class ChunkSender {
  readonly #bus: Bus;
  readonly #stream: string;
  readonly #subject: string;
  #waiting: Uint8Array[] = [];
  #bytes = 0;
  readonly #inFlight = new Set<Promise<void>>();
  #failure: unknown;

  private constructor(bus: Bus, stream: string, subject: string) {
    this.#bus = bus;
    this.#stream = stream;
    this.#subject = subject;
  }

  /**
   * Begins the stream of chunks on `subject`. The leader returns this subject before all servers of a cluster know
   * that the leader listens on it, so the first chunk is repeated until it arrives.
   */
  static async open(bus: Bus, stream: string, subject: string): Promise<ChunkSender> {
    const sender = new ChunkSender(bus, stream, subject);
    const giveUpAt = performance.now() + LISTENS_MS_MAX;
    while (!(await sender.#begin(giveUpAt))) await wait(LISTENS_PAUSE_MS);
    return sender;
  }

  /** Returns false if nobody listens yet. */
  async #begin(giveUpAt: number): Promise<boolean> {
    try {
      const options = { timeoutMs: CHUNK_ANSWER_MS };
      answerOf(await this.#bus.request(this.#subject, S2_START, options));
      return true;
    } catch (error) {
      const isNobody = error instanceof RequestError && error.isNoResponders();
      if (!isNobody || performance.now() > giveUpAt) throw error;
      return false;
    }
  }

  async add(bytes: Uint8Array): Promise<void> {
    this.#waiting.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes >= S2_CHUNK_BYTES_MAX) await this.#flush();
  }

  /** Sends the remaining bytes and ends the transfer. Resolves with the state of the restored stream. */
  async finish(): Promise<StreamState> {
    await this.#flush();
    await Promise.all(this.#inFlight);
    this.#throwFailure();
    const options = { timeoutMs: RESTORED_MS_MAX };
    const { state } = answerOf(await this.#bus.request(this.#subject, "", options));
    if (!state) throw new Error(`Cannot restore ${this.#stream}: the bus did not describe it`);
    return state;
  }

  async #flush(): Promise<void> {
    const bytes = Buffer.concat(this.#waiting);
    this.#waiting = [];
    this.#bytes = 0;
    for (let at = 0; at < bytes.length; at += S2_CHUNK_BYTES_MAX) {
      while (this.#inFlight.size >= CHUNKS_IN_FLIGHT) await Promise.race(this.#inFlight);
      this.#throwFailure();
      this.#send(s2Chunk(bytes.subarray(at, at + S2_CHUNK_BYTES_MAX)));
    }
  }

  #send(chunk: Uint8Array): void {
    const sent = this.#bus
      .request(this.#subject, chunk, { timeoutMs: CHUNK_ANSWER_MS })
      .then(answerOf)
      .then(
        () => {},
        (error: unknown) => {
          this.#failure ??= error;
        },
      )
      .finally(() => this.#inFlight.delete(sent));
    this.#inFlight.add(sent);
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** Throws if the server refused. */
export function answerOf(message: Msg): Answer {
  if (message.data.length === 0) return {};
  const answer = message.json<Answer>();
  if (answer.error) throw new JetStreamApiError(answer.error);
  return answer;
}
