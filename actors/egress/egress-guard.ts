/** The one way out: opens connections to addresses that policy lets through, and to no others. */
import type { Socket } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { isBlockedPort } from "./blocked-ports.ts";
import { dial } from "./dial.ts";
import { toEgressError } from "./egress-error.ts";
import { createResolver, type Lookup, refused } from "./resolver.ts";

/** From the first dialled address to a connection over any of a name's. */
const EGRESS_CONNECT_MS = 10_000;
/** Addresses of one name that are dialled; all of its answers are checked. */
const EGRESS_ADDRESSES_MAX = 8;

export interface EgressTarget {
  /** A name or an IP address as `URL.hostname` has it; IPv6 may stand in brackets. */
  host: string;
  port: number;
}

export interface EgressGuard {
  /** A connection to the target over an address that was checked; throws an `EgressError`. */
  connect(target: EgressTarget, options: ConnectOptions): Promise<Socket>;
}

interface ConnectOptions {
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
