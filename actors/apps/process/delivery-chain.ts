/**
 * Deliveries that came together: while they are taken, quick, and touch nothing outside, each follows at once, and
 * all share a record.
 */
import type { AgentCore } from "./agent-core.ts";

/**
 * Bytes of the deliveries in one record. The next deliveries get another record. It is far below the size of a
 * message, compressed or not.
 */
export const DELIVERIES_UNRECORDED_BYTES_MAX = 256 * 1024;

/** Code of the app may put another clock in its place later. */
const now = performance.now.bind(performance);

interface DeliveryTurn {
  turn: number;
  /** The turn that it is begun after; absent of the first, and of one that came alone. */
  follows: number | undefined;
  /** Resolves to whether the answer was 2xx. `say` sends the result. */
  run(): Promise<{ isTaken: boolean; say(options: { isSoon: boolean }): void }>;
  /** Skips a delivery that has not begun. The host offers it again if it is still due. */
  leaveOut(): void;
}

export class DeliveryChain {
  readonly #agent: AgentCore;
  /** The one that came last. */
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
    // Otherwise the next delivery could be half done when the record of this one is taken.
    const hasNext = isFollowed && isTaken && gate.asked === asked && this.#hasRoom();
    say({ isSoon: !hasNext });
    resolve(hasNext);
  }

  /** True where nothing wants a record now, and none is due. */
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
