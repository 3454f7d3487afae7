/** Lets a host give back a few shards at a time: calls to a shard wait until all shards that move with it have moved. */
import type { Clock } from "../lib/clock.ts";
import { Semaphore } from "../lib/semaphore.ts";

/**
 * Shards that move at the same time. Each costs the bus some ten requests, several of them synced to disk. With 32 at
 * once their calls waited for up to 0.9 s on three servers.
 */
export const HANDOVERS_MAX = 4;
/** A shard that waits longer for its actors lets the next one begin: a host with slow actors must leave in time too. */
export const HANDOVER_TURN_MS = 500;

export class HandoverTurns {
  readonly #clock: Clock;
  readonly #places = new Semaphore(HANDOVERS_MAX);

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts the handover in its turn, and resolves with its result. */
  run(handover: () => Promise<boolean>): Promise<boolean> {
    return new Promise((resolve, reject) => {
      void this.#places
        .run(async () => {
          const ended = new AbortController();
          const moving = handover();
          resolve(moving);
          const end = () => ended.abort();
          moving.then(end, end);
          await this.#clock.wait(HANDOVER_TURN_MS, ended.signal);
        })
        .catch(reject);
    });
  }
}
