/**
 * Runs deliveries that arrived together. While they succeed quickly and have no effect outside the agent, each starts
 * directly after the previous one, and all share a record.
 */
import type { AgentCore } from "./agent-core.ts";

/**
 * Limit of the bytes that deliveries change in one record. Later deliveries get another record. The limit is far
 * below the size of a message, even without compression.
 */
export const DELIVERIES_UNRECORDED_BYTES_MAX = 256 * 1024;

/** Taken now, because app code may replace the clock later. */
const now = performance.now.bind(performance);

interface DeliveryTurn {
  turn: number;
  /**
   * The turn after which this delivery begins. Undefined for the first delivery of a group and for one that arrived
   * alone.
   */
  follows: number | undefined;
  /** Runs the delivery. Resolves with whether the answer was 2xx, and with `say`, which sends the result. */
  run(): Promise<{ isTaken: boolean; say(options: { isSoon: boolean }): void }>;
  /** Skips a delivery that has not begun. The host offers it again later. */
  leaveOut(): void;
}

export class DeliveryChain {
  readonly #agent: AgentCore;
  /** The last delivery. */
  #last: { turn: number; goesOn: Promise<boolean> } | undefined;
  #begunAt = 0;

  constructor(agent: AgentCore) {
    this.#agent = agent;
  }

  async take({ turn, follows, run, leaveOut }: DeliveryTurn): Promise<void> {
    const before = this.#last;
    const { promise: goesOn, resolve } = Promise.withResolvers<boolean>();
    this.#last = { turn, goesOn };
    if (follows === undefined) this.#begunAt = now();
    else if (before?.turn !== follows || !(await before.goesOn)) {
      resolve(false);
      leaveOut();
      return;
    }
    const { gate } = this.#agent;
    const { asked } = gate;
    let hasNext = false;
    try {
      const { isTaken, say } = await run();
      // Messages that arrive together are handled together, so a delivery that follows this one is already known now.
      const isFollowed = this.#last.turn !== turn;
      // The next delivery starts only now. If it started earlier, the record of this one could contain half of its
      // changes.
      hasNext = isFollowed && isTaken && gate.asked === asked && this.#hasRoom();
      say({ isSoon: !hasNext });
    } finally {
      // Without a result of this delivery, the following ones are offered again.
      resolve(hasNext);
    }
  }

  /**
   * Returns true if the next delivery may share the record: no record is being written or about to be, no transaction
   * is open, and the limits of bytes and time are not reached.
   */
  #hasRoom(): boolean {
    const { gate, database, limits } = this.#agent;
    return (
      gate.isAtRest &&
      !database.isInTransaction &&
      database.log.changedBytes < DELIVERIES_UNRECORDED_BYTES_MAX &&
      now() - this.#begunAt < limits.togetherMs
    );
  }
}
