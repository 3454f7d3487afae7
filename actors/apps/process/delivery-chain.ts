/**
 * Deliveries that arrived together. While they succeed quickly and have no outside effect, each follows at once, and
 * all share a record.
 */
import type { AgentCore } from "./agent-core.ts";

/**
 * Bytes of the deliveries in one record. The next deliveries get another record. It is far below the size of a
 * message, compressed or not.
 */
export const DELIVERIES_UNRECORDED_BYTES_MAX = 256 * 1024;

/** Taken now, because app code may replace the clock later. */
const now = performance.now.bind(performance);

interface DeliveryTurn {
  turn: number;
  /** The turn after which this one begins; undefined for the first delivery and for one that came alone. */
  follows: number | undefined;
  /** Resolves to whether the answer was 2xx. `say` sends the result. */
  run(): Promise<{ isTaken: boolean; say(options: { isSoon: boolean }): void }>;
  /** Skips a delivery that has not begun. The host offers it again if it is still due. */
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
    const { isTaken, say } = await run();
    // Deliveries that arrive together are handled together, so a delivery that follows this one is known by now.
    const isFollowed = this.#last.turn !== turn;
    // The next delivery may start only now. Started earlier, it could be half done when this one's record is written.
    const hasNext = isFollowed && isTaken && gate.asked === asked && this.#hasRoom();
    say({ isSoon: !hasNext });
    resolve(hasNext);
  }

  /** Returns true if no record is wanted or due now. */
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
