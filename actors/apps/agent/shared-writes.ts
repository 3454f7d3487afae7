/**
 * Joins the writes of several callers to one stream. The server syncs a single write to disk separately, but syncs a
 * batch of waiting writes together. Each write keeps its own fence and fails alone. Accounts, which the first two
 * tokens of a subject identify, take turns.
 */
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { type Write, WriteRefused, writeAtomically } from "../../runtime/bus/atomic-batch.ts";
import type { Bus } from "../../runtime/bus/bus.ts";
import { firstTwoTokens } from "../../runtime/bus/first-two-tokens.ts";
import type { Clock } from "../../runtime/lib/clock.ts";
import { TurnQueue } from "../../runtime/lib/turn-queue.ts";
import { Gathering } from "./gathering.ts";

/**
 * Up to this many waiting writes are sent without a batch. The stream syncs them one after the other, and a batch of
 * any size takes about as long as two single writes.
 */
const ALONE_MAX = 2;
/**
 * After a batch, the writer pauses at most as long as the batch took, and at most 20 ms. The server creates a
 * separate store for each batch, which is more than a third of its work if batches are small.
 */
const GATHERING = { timeShare: 1, msMax: 20 };

interface Waiting {
  write: Write;
  resolve(sequence: number): void;
  reject(error: unknown): void;
}

/** Returns the writer of each stream, by the stream's name. A batch has one stream. */
export function writersOf(bus: Bus, clock: Clock): (stream: string) => SharedWrites {
  const writers = new Map<string, SharedWrites>();
  return (stream) => {
    const writer = writers.get(stream) ?? new SharedWrites(bus, clock);
    writers.set(stream, writer);
    return writer;
  };
}

export class SharedWrites {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #gathering: Gathering;
  readonly #queue = new TurnQueue<string, Waiting>();
  /** The write whose turn is next. It had no room in the last batch. */
  #next: Waiting | undefined;
  #isRunning = false;

  constructor(bus: Bus, clock: Clock) {
    this.#bus = bus;
    this.#clock = clock;
    this.#gathering = new Gathering(clock, GATHERING);
  }

  /** Resolves with the sequence in the stream. Rejects as `writeAtomically`. */
  write(write: Write): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#queue.push(firstTwoTokens(write.subject), { write, resolve, reject });
      this.#gathering.came(this.#waiting);
      if (this.#isRunning) return;
      this.#isRunning = true;
      // Waits until this turn of the event loop has ended, so that its other writes join the first batch.
      setImmediate(() => void this.#run());
    });
  }

  async #run(): Promise<void> {
    while (this.#waiting > 0) {
      const taken = this.#take();
      const startedAt = this.#clock.monotonic();
      if (taken.length <= ALONE_MAX) await Promise.all(taken.map((one) => this.#alone(one)));
      else await this.#together(taken);
      const tookMs = this.#clock.monotonic() - startedAt;
      const last = { answered: taken.length, tookMs, waiting: this.#waiting };
      await this.#gathering.pause(last);
    }
    this.#isRunning = false;
  }

  get #waiting(): number {
    return this.#queue.size + (this.#next ? 1 : 0);
  }

  /** Takes the waiting writes that one batch can hold, in the order of their turns. */
  #take(): Waiting[] {
    const taken: Waiting[] = [];
    let bytes = 0;
    let next = this.#next ?? this.#queue.shift();
    for (; next; next = this.#queue.shift()) {
      bytes += next.write.payload.length;
      const isFull = taken.length >= BATCH_MESSAGES_MAX || bytes > BATCH_BYTES_MAX;
      if (isFull && taken.length > 0) break;
      taken.push(next);
    }
    this.#next = next;
    return taken;
  }

  async #together(taken: readonly Waiting[]): Promise<void> {
    try {
      const last = await writeAtomically(
        this.#bus,
        taken.map(({ write }) => write),
      );
      // The messages of a batch have consecutive sequences, and `last` is the sequence of the last one.
      for (const [index, { resolve }] of taken.entries())
        resolve(last - (taken.length - 1 - index));
    } catch (error) {
      // The batch stored nothing. Each write is repeated alone, to find out whether its own fence fails.
      if (error instanceof WriteRefused) await Promise.all(taken.map((one) => this.#alone(one)));
      else for (const { reject } of taken) reject(error);
    }
  }

  async #alone({ write, resolve, reject }: Waiting): Promise<void> {
    await writeAtomically(this.#bus, [write]).then(resolve, reject);
  }
}
