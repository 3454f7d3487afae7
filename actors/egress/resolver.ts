/** Turns a name into addresses that were all checked, so that the dialled one is a checked one. */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { EgressError, systemError, toEgressError } from "./egress-error.ts";

/** A name's lookup; the system's own patience is 10 s and more a server. */
const EGRESS_RESOLVE_MS = 5_000;
/** A DNS answer is reused for this long, because a page opens several connections to a host within a second. */
export const EGRESS_NAME_KEPT_MS = 10_000;
export const EGRESS_NAMES_MAX = 1_000;

/** All addresses of a name, best first. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/** All addresses of a host, each of which may be dialled; throws an `EgressError` when any may not. */
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
  /** Until when it is used again; a lookup under way is always shared. */
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

/** Looks a name up in the system, /etc/hosts included. */
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

/** The promise's outcome, unless the signal is aborted first. */
function withinSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
