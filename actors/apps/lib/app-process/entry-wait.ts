/**
 * Background work of an app's entry (`waitUntil`). It keeps the process alive for at most the time limit of a turn.
 */

import { ENTRY, type FromProcess } from "../../../../schemas/apps/app-process.ts";
import { AGENT_TURN_MS_MAX } from "../../../../schemas/apps/limits.ts";

export class EntryWait {
  readonly #now: () => number;
  #until = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** 1 while the entry waits for background work. */
  get users(): number {
    return this.#now() < this.#until ? 1 : 0;
  }

  /** Handles an idle notice of the entry. Returns false for a notice of an agent. */
  takes({ agent, isIdle }: Extract<FromProcess, { type: "idle" }>): boolean {
    if (agent !== ENTRY) return false;
    this.#until = isIdle ? 0 : this.#now() + AGENT_TURN_MS_MAX;
    return true;
  }
}
