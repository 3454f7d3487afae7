/** The one way out: opens connections to addresses that policy lets through, and to no others. */
import type { Socket } from "node:net";
import { EGRESS_ADDRESSES_MAX, EGRESS_CONNECT_MS } from "../../schemas/limits.ts";
import type { AddressPolicy } from "./address-policy.ts";
import { isBlockedPort } from "./blocked-ports.ts";
import { dial } from "./dial.ts";
import { toEgressError } from "./egress-error.ts";
import { createResolver, type Lookup, refused } from "./resolver.ts";

export interface EgressTarget {
  /** A name or an IP address as `URL.hostname` has it; IPv6 may stand in brackets. */
  host: string;
  port: number;
}

export interface EgressGuard {
  /** A connection to the target over an address that was checked; throws an `EgressError`. */
  connect(target: EgressTarget, options: ConnectOptions): Promise<Socket>;
}

export interface ConnectOptions {
  signal: AbortSignal;
  allowHalfOpen?: boolean;
}

export interface EgressGuardOptions {
  policy: AddressPolicy;
  lookup?: Lookup;
  resolveMs?: number;
  connectMs?: number;
}

export function createEgressGuard(options: EgressGuardOptions): EgressGuard {
  const { connectMs = EGRESS_CONNECT_MS } = options;
  const resolve = createResolver(options);
  return { connect };

  async function connect(target: EgressTarget, { signal, allowHalfOpen = false }: ConnectOptions) {
    const { port } = target;
    const host = target.host.replace(/^\[(.*)\]$/, "$1");
    if (isBlockedPort(port)) throw refused(host, `port ${port} is blocked`);
    const addresses = (await resolve(host, signal)).slice(0, EGRESS_ADDRESSES_MAX);
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(connectMs)]);
    try {
      return await dial({ addresses, port, allowHalfOpen, signal: deadline });
    } catch (error) {
      throw toEgressError(error, host);
    }
  }
}
