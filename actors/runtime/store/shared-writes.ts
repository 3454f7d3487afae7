/**
 * Writes of many to one stream, put together: each is synced to disk by itself when it comes alone, and with all others that
 * wait when there are some. Every write keeps its own fence, and fails alone.
 */
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { Gathering } from "../lib/gathering.ts";

/** Writes up to which each goes alone: the stream syncs them one after the other, and a batch of any size takes about as long as two. */
const ALONE_MAX = 2;
/** As long as the last batch took: the server makes a store of its own for each, more than a third of its work with small ones. */
const GATHERING = { timeShare: 1, msMax: 20 };

interface Waiting {
  write: Write;
  resolve(sequence: number): void;
  reject(error: unknown): void;
}

export class SharedWrites {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #gathering: Gathering;
  #waiting: Waiting[] = [];
  #isRunning = false;

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
    this.#gathering = new Gathering(clock, GATHERING);
  }

  /** Resolves with the sequence in the stream. Rejects as `writeAtomically`. */
  write(write: Write): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ write, resolve, reject });
      this.#gathering.came(this.#waiting.length);
      if (this.#isRunning) return;
      this.#isRunning = true;
      // What else came in this turn of the loop shares the first batch.
      setImmediate(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      const taken = this.#take();
      const startedAt = this.#clock.monotonic();
      if (taken.length <= ALONE_MAX) await Promise.all(taken.map((one) => this.#alone(one)));
      else await this.#together(taken);
      const tookMs = this.#clock.monotonic() - startedAt;
      const last = { answered: taken.length, tookMs, waiting: this.#waiting.length };
      await this.#gathering.pause(last);
    }
    this.#isRunning = false;
  }

  /** What one batch can hold, the longest waiting first. */
  #take(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ write }, index) => {
      bytes += write.payload.length;
      return index > 0 && (index >= BATCH_MESSAGES_MAX || bytes > BATCH_BYTES_MAX);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  async #together(taken: readonly Waiting[]): Promise<void> {
    try {
      const last = await writeAtomically(
        this.#bus,
        taken.map(({ write }) => write),
      );
      // Their messages stand one after the other.
      for (const [index, { resolve }] of taken.entries())
        resolve(last - (taken.length - 1 - index));
    } catch (error) {
      // Nothing of it was stored: whose fence failed is found out by each alone.
      if (error instanceof WriteRefused) await Promise.all(taken.map((one) => this.#alone(one)));
      else for (const { reject } of taken) reject(error);
    }
  }

  async #alone({ write, resolve, reject }: Waiting): Promise<void> {
    await writeAtomically(this.#bus, [write]).then(resolve, reject);
  }
}
