/**
 * Stores the holds on the tunnels to each target. A hold cannot read the content of a tunnel. It can only refuse more
 * bytes, which closes the tunnel.
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

  /** Adds a hold for the target. The hold applies until the returned object is disposed of. */
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
