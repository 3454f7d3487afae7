/** Resolves a name to addresses and checks all of them, so that connections go only to checked addresses. */
import { lookup as systemLookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { AddressPolicy } from "./address-policy.ts";
import { EgressError, NoLookupSlotError, systemError, toEgressError } from "./egress-error.ts";
import { type LookupOwner, LookupSlots, lookupsMax } from "./lookup-slots.ts";

/** Timeout for the lookup of a name, with the wait for a slot. The system's own timeout is 10 s or more for each DNS server. */
export const EGRESS_RESOLVE_MS = 5_000;
/** A DNS answer is reused for this long, because a page opens several connections to a host within a second. */
export const EGRESS_NAME_KEPT_MS = 10_000;
export const EGRESS_NAMES_MAX = 1_000;

/** Looks up all addresses of a name, in the order in which the system's resolver prefers them. */
export type Lookup = (name: string) => Promise<readonly string[]>;

/**
 * Resolves to all addresses of a host. Throws an `EgressError` if the policy refuses any of them, and a
 * `NoLookupSlotError` if no lookup could start in time. A lookup that this starts counts for `owner` until it ends; by
 * default, for the resolver.
 */
export type Resolve = (
  host: string,
  signal: AbortSignal,
  owner?: LookupOwner,
) => Promise<readonly string[]>;

const LOOKUPS_MAX = lookupsMax(process.env.UV_THREADPOOL_SIZE);
/** The system lookups of all resolvers of this process, because they share the threads of libuv. */
const SYSTEM_LOOKUPS = new LookupSlots(LOOKUPS_MAX);

export interface ResolverOptions {
  policy: AddressPolicy;
  lookup?: Lookup;
  /** Limits the lookups that have not ended. All system lookups of the process share one limit. */
  slots?: LookupSlots;
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
  const { slots = options.lookup ? new LookupSlots(LOOKUPS_MAX) : SYSTEM_LOOKUPS } = options;
  const now = options.now ?? (() => performance.now());
  const answers = new Map<string, Answer>();
  return resolve;

  async function resolve(host: string, signal: AbortSignal, owner: LookupOwner = resolve) {
    const addresses = isIP(host) === 0 ? await answerOf(host, signal, owner) : [host];
    if (addresses.length === 0) throw toEgressError(systemError("ENODATA", "no address"), host);
    for (const address of addresses) {
      const refusal = policy.refusal(address);
      if (refusal !== undefined) throw refused(host, `${address} is ${refusal}`);
    }
    return addresses;
  }

  async function answerOf(name: string, signal: AbortSignal, owner: LookupOwner) {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(resolveMs)]);
    try {
      const { addresses } = knownAnswer(name) ?? (await startLookup(name, owner, deadline));
      return await withinSignal(addresses, deadline);
    } catch (error) {
      throw toEgressError(error, name);
    }
  }

  function knownAnswer(name: string): Answer | undefined {
    const known = answers.get(name);
    return known !== undefined && known.expiresAt > now() ? known : undefined;
  }

  async function startLookup(
    name: string,
    owner: LookupOwner,
    deadline: AbortSignal,
  ): Promise<Answer> {
    const release = slots.tryTake(owner) ?? (await slotWithin(name, owner, deadline));
    // Another request may have started the lookup while this one waited for its slot.
    const started = knownAnswer(name);
    if (started !== undefined) {
      release();
      return started;
    }
    const answer: Answer = { addresses: lookup(name), expiresAt: Number.POSITIVE_INFINITY };
    answers.delete(name);
    answers.set(name, answer);
    for (const oldest of answers.keys()) {
      if (answers.size <= EGRESS_NAMES_MAX) break;
      answers.delete(oldest);
    }
    answer.addresses.then(
      () => {
        release();
        answer.expiresAt = now() + EGRESS_NAME_KEPT_MS;
      },
      () => {
        release();
        if (answers.get(name) === answer) answers.delete(name);
      },
    );
    return answer;
  }

  async function slotWithin(name: string, owner: LookupOwner, deadline: AbortSignal) {
    try {
      return await slots.take(owner, deadline);
    } catch (error) {
      if (!isTimeout(error)) throw error;
      const detail = `${slots.taken} lookups have not ended`;
      throw new NoLookupSlotError(name, detail, { cause: error });
    }
  }
}

const isTimeout = (error: unknown) => error instanceof Error && error.name === "TimeoutError";

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
