/** Chooses the next task of a worker: deficit round robin over the keys of a lane, within limits of each key. */

/**
 * Credit of a key in each round, in milliseconds of work. A page usually takes less, so turns change with each page.
 */
export const TURN_QUANTUM_MS = 1_000;

export interface TurnLimits {
  /** Tasks that run at a time. */
  places: number;
  /** Tasks that compute at a time; tasks that only wait for the network do not count. */
  computing: number;
  /** Tasks of one key that run at a time. */
  perKey: number;
  /** Places for keys without a running task: several keys at their limits leave these free. */
  reserved: number;
}

interface Turn {
  /** Whether tasks may be waiting. */
  isQueued: boolean;
  running: number;
  waiting: number;
  /** Milliseconds of work that the key may begin. A task is charged when it has ended, so this may be negative. */
  balanceMs: number;
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
   * Returns the key whose queue is read next and whose task then begins; `end` has to follow. The queue counts as empty
   * until `queued`. Undefined while no key has both a task and a place.
   */
  begin(): string | undefined {
    const ready = [...this.#turns].filter(([, turn]) => this.#mayBegin(turn));
    if (ready.length === 0) return undefined;
    // Gives as many rounds of credit as it takes until a key may begin.
    const shortMs = -Math.max(...ready.map(([, { balanceMs }]) => balanceMs));
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

  /** The task has ended after this time, or none was found. */
  end(key: string, ms: number): void {
    const turn = this.#turnOf(key);
    turn.running -= 1;
    turn.balanceMs -= ms;
    this.#forgetIdle(key, turn);
  }

  /** A running task waits for the network only, or computes again. */
  setWaiting(key: string, isWaiting: boolean): void {
    this.#turnOf(key).waiting += isWaiting ? 1 : -1;
  }

  /** The number of keys in memory: those with running tasks, or with tasks that may wait. */
  get size(): number {
    return this.#turns.size;
  }

  #mayBegin({ isQueued, running }: Turn): boolean {
    const { places, computing, perKey, reserved } = this.#limits;
    if (!isQueued || running >= perKey) return false;
    const all = [...this.#turns.values()];
    const runningNow = all.reduce((sum, turn) => sum + turn.running, 0);
    if (runningNow >= places) return false;
    // A key's first task waits for no other key, which may compute without end.
    if (running === 0) return true;
    const computingNow = runningNow - all.reduce((sum, turn) => sum + turn.waiting, 0);
    return computingNow < computing && runningNow < places - reserved;
  }

  #turnOf(key: string): Turn {
    const known = this.#turns.get(key);
    if (known) return known;
    const turn = { isQueued: false, running: 0, waiting: 0, balanceMs: 0 };
    this.#turns.set(key, turn);
    return turn;
  }

  /** Credit and debt end with a key's last task, as in deficit round robin: no key saves turns up. */
  #forgetIdle(key: string, { isQueued, running }: Turn): void {
    if (!isQueued && running === 0) this.#turns.delete(key);
  }
}
