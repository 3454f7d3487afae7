/** Counts how often an app process ended during the same turn, so that a turn that ends its process is not repeated. */

/** Number of process crashes during one turn after which the turn is refused. */
export const AGENT_TURN_CRASHES_MAX = 2;
/** Number of turns with crashes that a host remembers, at about 150 bytes each. */
export const AGENT_CRASHED_TURNS_KEPT_MAX = 10_000;

export class CrashedTurns {
  readonly #crashes = new Map<string, number>();

  has(id: string): boolean {
    return this.#crashes.has(id);
  }

  /** Counts a crash. Returns true if the turn must not be tried again. */
  add(id: string): boolean {
    const times = (this.#crashes.get(id) ?? 0) + 1;
    this.#crashes.delete(id);
    this.#crashes.set(id, times);
    const [oldest] = this.#crashes.keys();
    if (this.#crashes.size > AGENT_CRASHED_TURNS_KEPT_MAX && oldest !== undefined)
      this.#crashes.delete(oldest);
    return times >= AGENT_TURN_CRASHES_MAX;
  }
}
