/** Limits how many of its shards a host gives away at the same time. */
import { shardGivesMax } from "../../../schemas/limits.ts";
import type { Clock } from "../lib/clock.ts";
import { Semaphore } from "../lib/semaphore.ts";

/** The longest turn of one shard. If the shard is not given away by then, the next shard starts meanwhile. */
export const GIVE_TURN_MS = 400;

export class GiveTurns {
  readonly #turns: Semaphore;
  readonly #clock: Clock;

  constructor(shards: number, clock: Clock) {
    this.#turns = new Semaphore(shardGivesMax(shards));
    this.#clock = clock;
  }

  /**
   * Calls `give` at its turn, and resolves with its result; with true if there is nothing to give any more. The turn
   * ends with the result, or after GIVE_TURN_MS.
   */
  async run(give: () => Promise<boolean> | undefined): Promise<boolean> {
    let given: Promise<boolean> | undefined;
    await this.#turns.run(async () => {
      given = give();
      await Promise.race([given, this.#clock.wait(GIVE_TURN_MS)]);
    });
    return (await given) ?? true;
  }
}
