/**
 * The worker's connection to the caller of a running task: fetches the input from the caller, and sends it the
 * result.
 */
import { randomBytes } from "node:crypto";
import { TimeoutError } from "@nats-io/transport-node";
import type { ActorError } from "../../../schemas/errors.ts";
import { CHUNK_BYTES, READER_RETRY_MS } from "../../../schemas/limits.ts";
import { isNobody } from "../bus/ask.ts";
import { type Bus, BusLost } from "../bus/bus.ts";
import { encodeRefusal } from "../bus/refusal.ts";
import type { Clock } from "../lib/clock.ts";
import type { Task } from "../tasks/task.ts";

export const CHUNKS_IN_FLIGHT = 8;
/** A caller whose inbox has no listener for this long has left. */
const CALLER_GONE_MS = 1_000;

/** Nobody waits for the task any more. */
export class CallerGone extends Error {}

export class TaskCaller {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #caller: NonNullable<Task["caller"]>;
  readonly #signal: AbortSignal;
  /** Distinguishes this try from other tries, because a worker that was presumed dead may still send. */
  readonly #try = randomBytes(4).toString("hex");

  constructor(bus: Bus, clock: Clock, caller: NonNullable<Task["caller"]>, signal: AbortSignal) {
    this.#bus = bus;
    this.#clock = clock;
    this.#caller = caller;
    this.#signal = signal;
  }

  /** Reports that the task has started and returns its input. Rejects with CallerGone when nobody listens. */
  async start(inline: unknown): Promise<unknown> {
    const { inputChunks: count } = this.#caller;
    // A gateway of the first release stores small inputs in the task.
    if (count === undefined) {
      await this.#ask("started");
      return inline;
    }
    const chunks: Uint8Array[] = [];
    await Promise.all([
      this.#ask("started"),
      this.#inParallel(count, async (index) => {
        chunks[index] = await this.#ask(`input.${index}`);
      }),
    ]);
    return JSON.parse(Buffer.concat(chunks).toString());
  }

  /**
   * Sends the reply, and then the bytes, at most CHUNKS_IN_FLIGHT chunks ahead of the caller. Resolves when the caller
   * has taken all bytes.
   */
  async answer(reply: string, chunks: AsyncIterable<Uint8Array> = none()): Promise<void> {
    await this.#ask("reply", Buffer.from(reply));
    const underWay = new Set<Promise<unknown>>();
    let index = 0;
    for await (const bytes of split(chunks)) {
      const sent = this.#ask(`chunk.${index}`, bytes).finally(() => underWay.delete(sent));
      sent.catch(() => {}); // Met below, by the race or the wait for all.
      underWay.add(sent);
      index += 1;
      if (underWay.size >= CHUNKS_IN_FLIGHT) await Promise.race(underWay);
    }
    await Promise.all(underWay);
    await this.#ask("end");
  }

  /** Sends a refusal, even if the task was aborted, because the caller may still wait. */
  async refuse(error: ActorError): Promise<void> {
    await this.#ask(
      "refused",
      Buffer.from(encodeRefusal(error).payload),
      new AbortController().signal,
    );
  }

  async #inParallel(count: number, take: (index: number) => Promise<void>): Promise<void> {
    let next = 0;
    const lanes = Array.from({ length: Math.min(count, CHUNKS_IN_FLIGHT) }, async () => {
      while (next < count) await take(next++);
    });
    await Promise.all(lanes);
  }

  /** Sends a request, and repeats it while the bus is away; the caller recognizes repetitions. */
  async #ask(step: string, payload?: Uint8Array, signal = this.#signal): Promise<Uint8Array> {
    let absentSince: number | undefined;
    for (;;) {
      signal.throwIfAborted();
      try {
        return await this.#bus.ask(`${this.#caller.inbox}.${this.#try}.${step}`, payload);
      } catch (error) {
        if (isNobody(error)) {
          // After a reconnection, the caller's subscription may return slightly later than this worker's connection.
          absentSince ??= this.#clock.monotonic();
          if (this.#clock.monotonic() - absentSince > CALLER_GONE_MS) throw new CallerGone();
        } else if (!(error instanceof BusLost || error instanceof TimeoutError)) throw error;
        await this.#clock.wait(READER_RETRY_MS, signal);
      }
    }
  }
}

async function* none(): AsyncGenerator<Uint8Array> {}

async function* split(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES) {
      yield chunk.subarray(from, from + CHUNK_BYTES);
    }
  }
}
