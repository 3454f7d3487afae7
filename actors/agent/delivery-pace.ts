/**
 * How often each agent of a host is given events. While several have some, the inbox of each hears a little later that they are
 * taken, and gathers meanwhile what comes: a mail and a record cost about the same, whatever is in them.
 */
import { DELIVERIES_GATHER_MS, DELIVERING_AGENTS_FEW } from "../../schemas/webhook-limits.ts";
import type { Clock } from "../runtime/clock.ts";

export class DeliveryPace {
  readonly #clock: Clock;
  #underWay = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** One agent has events; disposed of before its inbox hears what became of them. */
  begin(): Disposable {
    this.#underWay += 1;
    return {
      [Symbol.dispose]: () => {
        this.#underWay -= 1;
      },
    };
  }

  /** Resolves when the inbox is to hear: at once where few agents are at work. */
  async gather(signal: AbortSignal): Promise<void> {
    if (this.#underWay < DELIVERING_AGENTS_FEW) return;
    await this.#clock.wait(DELIVERIES_GATHER_MS, signal);
  }
}
