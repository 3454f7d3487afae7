/** Resolves a name to addresses and checks all of them, so that connections go only to checked addresses. */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { EgressError, systemError, toEgressError } from "./egress-error.ts";

/** Timeout for the lookup of a name. The system's own timeout is 10 s or more for each DNS server. */
const EGRESS_RESOLVE_MS = 5_000;
/** A DNS answer is reused for this long, because a page opens several connections to a host within a second. */
export const EGRESS_NAME_KEPT_MS = 10_000;
export const EGRESS_NAMES_MAX = 1_000;

/** Looks up all addresses of a name, in the order in which the system's resolver prefers them. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** Resolves to all addresses of a host. Throws an `EgressError` if the policy refuses any of them. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

export interface ResolverOptions {
  policy: AddressPolicy;
  lookup?: Lookup;
  resolveMs?: number;
  /** Monotonic milliseconds. */
  now?: () => number;
}

interface Answer {
  addresses: Promise<readonly string[]>;
  /** Time until which the result is reused. Parallel requests always share a running lookup. */
  expiresAt: number;
}

export function createResolver(options: ResolverOptions): Resolve {
  const { policy, lookup = lookupAll, resolveMs = EGRESS_RESOLVE_MS } = options;
  const now = options.now ?? (() => performance.now());
  const answers = new Map<string, Answer>();
  return resolve;

  async function resolve(host: string, signal: AbortSignal) {
    const addresses = isIP(host) === 0 ? await answerOf(host, signal) : [host];
    if (addresses.length === 0) throw toEgressError(systemError("ENODATA", "no address"), host);
    for (const address of addresses) {
      const refusal = policy.refusal(address);
      if (refusal !== undefined) throw refused(host, `${address} is ${refusal}`);
    }
    return addresses;
  }

  async function answerOf(name: string, signal: AbortSignal) {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(resolveMs)]);
    try {
      return await withinSignal(askOnce(name), deadline);
    } catch (error) {
      throw toEgressError(error, name);
    }
  }

  function askOnce(name: string): Promise<readonly string[]> {
    const known = answers.get(name);
    if (known !== undefined && known.expiresAt > now()) return known.addresses;
    const answer: Answer = { addresses: lookup(name), expiresAt: Number.POSITIVE_INFINITY };
    answers.delete(name);
    answers.set(name, answer);
    for (const oldest of answers.keys()) {
      if (answers.size <= EGRESS_NAMES_MAX) break;
      answers.delete(oldest);
    }
    answer.addresses.then(
      () => {
        answer.expiresAt = now() + EGRESS_NAME_KEPT_MS;
      },
      () => {
        if (answers.get(name) === answer) answers.delete(name);
      },
    );
    return answer.addresses;
  }
}

/** Looks up a name with the system resolver, including /etc/hosts. */
async function lookupAll(name: string): Promise<string[]> {
  const answers = await systemLookup(name, { all: true, order: "verbatim" });
  return answers.map((answer) => answer.address);
}

export function refused(host: string, detail: string): EgressError {
  return new EgressError(
    "address_refused",
    `Cannot fetch from ${host}: its address is not one this service fetches`,
    detail,
  );
}

/** Settles like the promise, unless the signal is aborted first. */
function withinSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
