/**
 * Gives hashes of passwords their turn on a thread. Known people, who have a session or a browser in which they signed
 * in before, have places of their own in the queue and go first, so that strangers cannot keep them out.
 */
import { TurnQueue } from "../../actors/runtime/lib/turn-queue.ts";

/** The lanes of the queue, in the order in which they are served. */
export type Lane = "known" | "unknown";

/** After this many turns of known people in a row, an unknown source has one turn. */
const KNOWN_IN_A_ROW_MAX = 3;

type Enter = () => void;

export class HashTurns {
  #free: number;
  #knownInARow = 0;
  readonly #lanes = { known: new WaitingLane(), unknown: new WaitingLane() };

  constructor(places: number) {
    this.#free = places;
  }

  /** How many hashes wait in a lane. */
  waiting(lane: Lane): number {
    return this.#lanes[lane].size;
  }

  /**
   * Waits for a place. Resolves with a function that gives the place back; call it once. Rejects with the signal's
   * reason if the signal aborts first.
   */
  async take({ lane, from }: { lane: Lane; from: string }, signal: AbortSignal): Promise<Enter> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#lanes[lane].wait(from, signal);
    return () => this.#giveBack();
  }

  #giveBack(): void {
    const { known, unknown } = this.#lanes;
    const isUnknownDue = known.size === 0 || this.#knownInARow >= KNOWN_IN_A_ROW_MAX;
    const isUnknownNext = unknown.size > 0 && isUnknownDue;
    this.#knownInARow = isUnknownNext ? 0 : this.#knownInARow + 1;
    const enter = (isUnknownNext ? unknown : known).next();
    if (enter) enter();
    else this.#free += 1;
  }
}

/** Waiting hashes. Their sources take turns, so that none waits for all hashes of another. */
class WaitingLane {
  readonly #queue = new TurnQueue<string, Enter>();

  get size(): number {
    return this.#queue.size;
  }

  wait(from: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#queue.remove(from, enter);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#queue.push(from, enter);
    });
  }

  next(): Enter | undefined {
    return this.#queue.shift();
  }
}
