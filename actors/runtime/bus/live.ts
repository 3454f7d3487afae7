/** Live updates of actors for their subscribers, such as sockets and event streams. */
import type { z } from "zod";
import type { Contract, Messages } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { addressOf, liveSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "./bus.ts";

/**
 * Limits the updates that are buffered for a slow subscriber. Past this limit the oldest update is dropped, and the
 * subscriber learns that updates are missing.
 */
export const LIVE_UPDATES_KEPT = 64;

/** `missed`: updates may be missing at this place; a subscriber that needs all of them reads the actor's state. */
export type LiveUpdate<T> = { value: T } | { missed: true };

export interface LiveUpdates {
  /**
   * Subscribes to the updates of a key until the signal aborts or the iteration ends. A reader that reads the actor's
   * state after this has resolved misses no update, but may receive updates that this state already contains. Keeps
   * the latest LIVE_UPDATES_KEPT updates for a slow reader. Rejects with ActorError `unavailable` if the bus is away.
   */
  subscribe<M extends Messages, L extends z.ZodType>(
    contract: Contract<M, L>,
    key: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LiveUpdate<z.output<L>>>>;
}

export class BusLiveUpdates implements LiveUpdates {
  readonly #bus: Bus;

  constructor(bus: Bus) {
    this.#bus = bus;
  }

  async subscribe<M extends Messages, L extends z.ZodType>(
    { kind, live: schema }: Contract<M, L>,
    key: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LiveUpdate<z.output<L>>>> {
    if (!schema) throw new Error(`Cannot watch ${kind}: it shows nothing`);
    const { connection } = this.#bus;
    const updates = new LatestUpdates<z.output<L>>();
    const subscription = connection.subscribe(liveSubject(addressOf(kind, key)), {
      callback: (error, msg) => {
        const read = error ? undefined : schema.safeParse(parseJson(msg.string()));
        // Report a missed update for an unknown update of a newer host, and for an empty text, which means that the
        // update was too large.
        updates.push(read?.success ? { value: read.data } : { missed: true });
      },
    });
    const forget = this.#bus.onReconnect(() => updates.push({ missed: true }));
    const leave = () => {
      forget();
      subscription.unsubscribe();
      signal.removeEventListener("abort", leave);
      updates.end();
    };
    signal.addEventListener("abort", leave);
    if (signal.aborted) leave();
    void subscription.closed.then(leave);
    try {
      await this.#bus.whileConnected(() => connection.flush());
    } catch (cause) {
      leave();
      const text = `Cannot watch ${kind}: the bus is away`;
      throw Object.assign(new ActorError("unavailable", text, { retryAfterS: 1 }), { cause });
    }
    return updates.read(leave);
  }
}

/** A queue of updates between the bus, which does not wait, and a reader, which may be slow. */
class LatestUpdates<T> {
  readonly #waiting: LiveUpdate<T>[] = [];
  /** True if updates are missing before the waiting ones. */
  #missed = false;
  #ended = false;
  #changed = Promise.withResolvers<void>();

  push(update: LiveUpdate<T>): void {
    this.#waiting.push(update);
    if (this.#waiting.length > LIVE_UPDATES_KEPT) {
      this.#waiting.shift();
      this.#missed = true;
    }
    this.#changed.resolve();
  }

  end(): void {
    this.#ended = true;
    this.#changed.resolve();
  }

  /** Yields the updates until the queue has ended. Calls `leave` when the reader stops reading. */
  async *read(leave: () => void): AsyncGenerator<LiveUpdate<T>, void, undefined> {
    try {
      while (!this.#ended) {
        if (this.#missed) {
          this.#missed = false;
          yield { missed: true };
          continue;
        }
        const next = this.#waiting.shift();
        if (next) yield next;
        else {
          this.#changed = Promise.withResolvers();
          await this.#changed.promise;
        }
      }
    } finally {
      leave();
    }
  }
}
