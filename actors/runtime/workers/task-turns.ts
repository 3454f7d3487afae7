/** Chooses the next task of a worker: deficit round robin over the keys of a lane, within limits of each key. */

/**
 * Credit of a key in each round, in milliseconds of work. A page usually takes less, so turns change with each page.
 */
export const TURN_QUANTUM_MS = 1_000;

export interface TurnLimits {
  /** Tasks that run at a time. */
  places: number;
  /** Maximum number of tasks that compute at the same time; tasks that only wait for the network do not count. */
  computing: number;
  /**
   * Maximum number of tasks of one key that run at the same time. Half as many more may run that only send their
   * results. Without them, a place would do nothing between the end of one task's work and the begin of the next.
   */
  perKey: number;
  /** Number of places for keys without a running task: several keys at their limits leave these places free. */
  reserved: number;
}

interface Turn {
  /** Whether tasks may be waiting. */
  isQueued: boolean;
  running: number;
  waiting: number;
  /** Running tasks that only send their results. */
  answering: number;
  /**
   * Milliseconds of work that the key may begin. A task is charged only when it has ended, so the balance may be
   * negative.
   */
  balanceMs: number;
}

/** The running tasks of all keys, and those of them that do not compute. */
interface TurnSums {
  running: number;
  idle: number;
}

export class TaskTurns {
  readonly #limits: TurnLimits;
  /** In the order of their turns. */
  readonly #turns = new Map<string, Turn>();

  constructor(limits: TurnLimits) {
    this.#limits = limits;
  }

  /** Tasks of the key may be waiting. */
  queued(key: string): void {
    this.#turnOf(key).isQueued = true;
  }

  /**
   * Returns the key whose next task begins. The caller reads the task from the key's queue, and must call `end`
   * later. The queue counts as empty until `queued`. Returns undefined while no key has both a task and a place.
   */
  begin(): string | undefined {
    const sums = this.#sums();
    if (sums.running >= this.#limits.places) return undefined;
    const ready = [...this.#turns].filter(([, turn]) => this.#mayBegin(turn, sums));
    if (ready.length === 0) return undefined;
    // Gives the keys as many rounds of credit as needed until one of them may begin.
    const mostMs = ready.reduce((most, [, turn]) => Math.max(most, turn.balanceMs), -Infinity);
    const shortMs = -mostMs;
    if (shortMs >= 0) {
      const rounds = Math.floor(shortMs / TURN_QUANTUM_MS) + 1;
      for (const [, turn] of ready) turn.balanceMs += rounds * TURN_QUANTUM_MS;
    }
    const next = ready.find(([, { balanceMs }]) => balanceMs > 0);
    if (!next) return undefined;
    const [key, turn] = next;
    turn.isQueued = false;
    turn.running += 1;
    this.#turns.delete(key);
    this.#turns.set(key, turn);
    return key;
  }

  /** Called when a task of the key has ended after `ms`, or when the key's queue had no task. */
  end(key: string, ms: number): void {
    const turn = this.#turnOf(key);
    turn.running -= 1;
    turn.balanceMs -= ms;
    this.#forgetIdle(key, turn);
  }

  /** Called when a running task starts to wait for the network, or computes again. */
  setWaiting(key: string, isWaiting: boolean): void {
    this.#turnOf(key).waiting += isWaiting ? 1 : -1;
  }

  /** Called when a running task only has to send its result, and with false before its `end`. */
  setAnswering(key: string, isAnswering: boolean): void {
    this.#turnOf(key).answering += isAnswering ? 1 : -1;
  }

  /** The number of keys in memory: those with running tasks, or with tasks that may wait. */
  get size(): number {
    return this.#turns.size;
  }

  /** Returns true if the key may begin a task, while fewer tasks run than there are places. */
  #mayBegin({ isQueued, running, answering }: Turn, sums: TurnSums): boolean {
    const { places, computing, perKey, reserved } = this.#limits;
    // A caller that reads its result slowly must not occupy more places without end.
    const besides = Math.min(answering, Math.floor(perKey / 2));
    if (!isQueued || running - besides >= perKey) return false;
    // The first task of a key does not wait for other keys, because their tasks may compute without end.
    if (running === 0) return true;
    return sums.running - sums.idle < computing && sums.running < places - reserved;
  }

  #sums(): TurnSums {
    const sums = { running: 0, idle: 0 };
    for (const { running, waiting, answering } of this.#turns.values()) {
      sums.running += running;
      sums.idle += waiting + answering;
    }
    return sums;
  }

  #turnOf(key: string): Turn {
    const known = this.#turns.get(key);
    if (known) return known;
    const turn = { isQueued: false, running: 0, waiting: 0, answering: 0, balanceMs: 0 };
    this.#turns.set(key, turn);
    return turn;
  }

  /**
   * Removes a key after its last task. Its credit and debt end too, as in deficit round robin, so that no key saves
   * credit for later.
   */
  #forgetIdle(key: string, { isQueued, running }: Turn): void {
    if (!isQueued && running === 0) this.#turns.delete(key);
  }
}
