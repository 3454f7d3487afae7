/**
 * Stores which holders control tunnels to a target. They cannot read the content of a tunnel; they can only close it.
 */
import type { EgressTarget } from "./egress-guard.ts";

export interface TunnelHold {
  /** Whether bytes of the browser may be forwarded. If not, the tunnel is closed. */
  mayPass(): boolean;
  /**
   * Called when the target closed a tunnel without responding to the last request. A browser would send that request
   * again.
   */
  onUnanswered(): void;
}

export class TunnelHolds {
  readonly #holds = new Map<string, Set<TunnelHold>>();

  /** Adds a hold for the target. It applies until the result is disposed of. */
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
