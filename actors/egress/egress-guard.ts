/** The only way to the network: opens connections only to addresses that the policy allows. */
import type { Socket } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { isBlockedPort } from "./blocked-ports.ts";
import { dial } from "./dial.ts";
import { toEgressError } from "./egress-error.ts";
import { createResolver, type Lookup, refused } from "./resolver.ts";

/** Timeout from the first connection attempt until one of a name's addresses is connected. */
const EGRESS_CONNECT_MS = 10_000;
/** Maximum addresses of one name to which connections are attempted. The policy checks all addresses of the name. */
const EGRESS_ADDRESSES_MAX = 8;

export interface EgressTarget {
  /** A name or an IP address in the form of `URL.hostname`; IPv6 addresses may be in brackets. */
  host: string;
  port: number;
}

export interface EgressGuard {
  /** Opens a connection to the target over a checked address; throws an `EgressError`. */
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
