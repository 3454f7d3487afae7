/** The only way to the network: opens connections only to addresses that the policy allows. */
import type { Socket } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { isBlockedPort } from "./blocked-ports.ts";
import { dial } from "./dial.ts";
import { toEgressError } from "./egress-error.ts";
import type { LookupOwner, LookupSlots } from "./lookup-slots.ts";
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

/** A guard that can also check a target for another program, such as git, which then connects by itself. */
export interface CheckingGuard extends EgressGuard {
  /**
   * Resolves to the addresses of the target after all checks of `connect`. The other program must connect to one of
   * these addresses and not resolve the name again.
   */
  check(target: EgressTarget, options: CheckOptions): Promise<readonly string[]>;
}

interface CheckOptions {
  signal: AbortSignal;
  /** Counts the lookup of the name for this owner; by default, for the guard. */
  owner?: LookupOwner | undefined;
}

interface ConnectOptions extends CheckOptions {
  allowHalfOpen?: boolean;
}

export interface EgressGuardOptions {
  policy: AddressPolicy;
  lookup?: Lookup;
  slots?: LookupSlots;
  resolveMs?: number;
  connectMs?: number;
}

export function createEgressGuard(options: EgressGuardOptions): CheckingGuard {
  const { connectMs = EGRESS_CONNECT_MS } = options;
  const resolve = createResolver(options);
  return { connect, check };

  async function check({ host: shown, port }: EgressTarget, { signal, owner }: CheckOptions) {
    const host = withoutBrackets(shown);
    if (isBlockedPort(port)) throw refused(host, `port ${port} is blocked`);
    return await resolve(host, signal, owner);
  }

  async function connect(target: EgressTarget, options: ConnectOptions) {
    const { signal, allowHalfOpen = false } = options;
    const addresses = (await check(target, options)).slice(0, EGRESS_ADDRESSES_MAX);
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(connectMs)]);
    try {
      return await dial({ addresses, port: target.port, allowHalfOpen, signal: deadline });
    } catch (error) {
      throw toEgressError(error, withoutBrackets(target.host));
    }
  }
}

const withoutBrackets = (host: string) => host.replace(/^\[(.*)\]$/, "$1");

/** Returns a guard that counts the lookups of its connections for this owner, such as an account. */
export function guardFor(owner: LookupOwner, guard: EgressGuard): EgressGuard {
  return { connect: (target, options) => guard.connect(target, { ...options, owner }) };
}
