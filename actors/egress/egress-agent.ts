/** Node's HTTP agent over the guard: every connection it makes is one the guard has opened. */
import { Agent } from "node:http";
import type { Duplex } from "node:stream";
import { EGRESS_IDLE_MS } from "../../schemas/limits.ts";
import type { EgressGuard } from "./egress-guard.ts";

export interface EgressAgentOptions {
  guard: EgressGuard;
  /** Ends connecting when the owner of the agent is closed. */
  signal: AbortSignal;
  /** Whether connections are kept for the next request to the same origin. */
  keepAlive: boolean;
  connectionsMax: number;
}

export class EgressAgent extends Agent {
  readonly #guard: EgressGuard;
  readonly #signal: AbortSignal;

  constructor({ guard, signal, keepAlive, connectionsMax }: EgressAgentOptions) {
    super({ keepAlive, maxTotalSockets: connectionsMax, timeout: EGRESS_IDLE_MS });
    this.#guard = guard;
    this.#signal = signal;
  }

  override createConnection(
    options: { host?: string | null; port?: number | string | null },
    callback: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    const target = { host: options.host ?? "", port: Number(options.port) };
    this.#guard.connect(target, { signal: this.#signal }).then(
      (socket) => callback(null, socket),
      (error) => callback(error, undefined as never),
    );
  }
}
