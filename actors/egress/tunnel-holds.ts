/** The holders of tunnels to a target. A tunnel's content cannot be read, only cut off. */
import type { EgressTarget } from "./egress-guard.ts";

export interface TunnelHold {
  /** Whether the browser's bytes may pass. If not, its tunnel is closed. */
  mayPass(): boolean;
  /** The target closed a tunnel without a response to the last request, which a browser would send again. */
  onUnanswered(): void;
}

export class TunnelHolds {
  readonly #holds = new Map<string, Set<TunnelHold>>();

  /** From now on, until it is disposed of. */
  add(target: EgressTarget, hold: TunnelHold): Disposable {
    const key = keyOf(target);
    const holds = this.#holds.get(key) ?? new Set();
    this.#holds.set(key, holds.add(hold));
    return {
      [Symbol.dispose]: () => {
        holds.delete(hold);
        if (holds.size === 0 && this.#holds.get(key) === holds) this.#holds.delete(key);
      },
    };
  }

  of(target: EgressTarget): readonly TunnelHold[] {
    return [...(this.#holds.get(keyOf(target)) ?? [])];
  }
}

const keyOf = ({ host, port }: EgressTarget) => `${host}:${port}`;
