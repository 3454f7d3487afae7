/**
 * The running turns of one agent or of one request to the entry, by number. Each ends with a result from the process
 * or at its time limit.
 */

import type { TurnResult } from "../../../../schemas/apps/app-process.ts";
import { AGENT_TURN_MS_MAX, AGENT_TURNS_MAX } from "../../../../schemas/apps/limits.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { countWork, timeWork } from "../../../../schemas/meter.ts";

interface Turn {
  id: string;
  resolve(result: TurnResult): void;
  reject(error: Error): void;
  late: NodeJS.Timeout;
  startedAt: number;
}

/**
 * Time limit of a turn. The process itself should end the turn after AGENT_TURN_MS_MAX; this limit applies if it does
 * not.
 */
const LATE_MS = AGENT_TURN_MS_MAX + 5_000;

export class Turns {
  readonly #turns = new Map<number, Turn>();

  get size(): number {
    return this.#turns.size;
  }

  /** Throws ActorError `busy` if there is no room for another turn. */
  mustHaveRoom(): void {
    if (this.size < AGENT_TURNS_MAX) return;
    const text = `Cannot take more: the agent has ${AGENT_TURNS_MAX} turns under way`;
    throw new ActorError("busy", text, { retryAfterS: 1 });
  }

  underWay(): { turn: number; id: string }[] {
    return Array.from(this.#turns, ([turn, { id }]) => ({ turn, id }));
  }

  wait(turn: number, id: string): Promise<TurnResult> {
    const { promise, resolve, reject } = Promise.withResolvers<TurnResult>();
    const late = setTimeout(() => {
      const text = `Cannot wait for the app: a turn may take ${AGENT_TURN_MS_MAX} ms`;
      this.reject(turn, new ActorError("deadline_exceeded", text));
    }, LATE_MS);
    late.unref();
    this.#turns.set(turn, { id, resolve, reject, late, startedAt: performance.now() });
    return promise;
  }

  /** Resolves a turn with the result of `give`; rejects it if `give` throws. */
  resolve(turn: number, give: () => TurnResult): void {
    try {
      const result = give();
      this.#take(turn, "done")?.resolve(result);
    } catch (error) {
      this.reject(turn, error as Error);
    }
  }

  reject(turn: number, error: Error): void {
    this.#take(turn, "failed")?.reject(error);
  }

  #take(turn: number, outcome: "done" | "failed"): Turn | undefined {
    const found = this.#turns.get(turn);
    if (!found) return undefined;
    this.#turns.delete(turn);
    clearTimeout(found.late);
    countWork("app_turns_total", { outcome });
    timeWork("app_turn_seconds", {}, performance.now() - found.startedAt);
    return found;
  }
}

export const unexpected = ({ type }: TurnResult) =>
  new ActorError("app_failed", `Cannot read what the app answered: ${type}`);
