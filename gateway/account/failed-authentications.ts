/**
 * Bounds guessing: counts failed authentications per address and identity, and slows lookups from an address that
 * fails often.
 */

import { ActorError } from "../../schemas/errors.ts";
import { exactAddressOf, networkOf } from "./network-of.ts";

/**
 * Failures allowed per window. Above the first limit, one identity (client, token, grant) is refused from one
 * address. Above the second, all lookups from that address are slowed. A script with an old secret may repeat its
 * mistake; guesses stay rare.
 */
export const AUTHENTICATION_FAILURES_MAX = 100;
export const AUTHENTICATION_WINDOW_MS = 60_000;
/**
 * Lookups at once from an address that failed too often. Each takes milliseconds, so a good token hardly waits for
 * the others.
 */
export const SLOWED_LOOKUPS_MAX = 4;
/**
 * How long each of these lookups keeps its place: 200 lookups a second, some percent of a core, whatever an address
 * invents. Without it each answer begins the next guess.
 */
export const SLOWED_LOOKUP_MS = 20;
/**
 * Credentials of one address whose lookup is under way, before it has failed too often: many people behind one address
 * may come at once after a restart. Past it they take turns too, so a burst of guesses has an end.
 */
export const LOOKUPS_AT_ONCE_MAX = 1_000;
/** Requests from one address that wait for a lookup: WAITING_S of them; each holds a connection. */
export const AUTHENTICATION_WAITING_MAX = 1_000;
const WAITING_S = (AUTHENTICATION_WAITING_MAX / SLOWED_LOOKUPS_MAX) * (SLOWED_LOOKUP_MS / 1_000);
/** Addresses, identities at addresses, and good credentials that a gateway remembers: some megabytes. */
export const AUTHENTICATION_CLIENTS_MAX = 10_000;

/** The credential of one request, as failures are counted. */
export interface Credential {
  /** The client, API token or grant that the request claims to be. Guesses at one identity are counted together. */
  identity: string;
  /** Differs for each secret. It is not stored anywhere but in memory, so a hash serves. */
  proof: string;
}

/** One lookup of a credential. The caller of `begin` must settle it once. */
export interface Attempt {
  /** Returns 0, or the seconds to wait if the credential is unknown and its address has failed too often. */
  settle(outcome: "good" | "unknown" | "unclear"): number;
}

/** Failures within one window. */
interface Count {
  since: number;
  failures: number;
  /** Proofs whose lookup is under way: a burst must not pass before its first answer. */
  pending: Set<string>;
}

/** Lookups under way from one address. */
interface Lane {
  /** Credentials of lookups that began at once, with their number. */
  free: Map<string, number>;
  slowed: number;
  /** The longest waiting first. */
  waiting: Set<() => void>;
}

/**
 * Counts in the memory of this process. A credential that was good before always passes: it is no guess.
 * Past the limit of one identity the address is refused for that identity. Past the limit of an address its unproven
 * credentials are still looked up, a few at a time: others behind the same address may have a good one.
 */
export class FailedAuthentications {
  readonly #now: () => number;
  readonly #slowedLookupMs: number;
  readonly #networks = new Map<string, Count>();
  readonly #identities = new Map<string, Count>();
  readonly #lanes = new Map<string, Lane>();
  /** Identities and proofs that were good, the latest last. */
  readonly #good = new Set<string>();

  constructor(now: () => number, slowedLookupMs = SLOWED_LOOKUP_MS) {
    this.#now = now;
    this.#slowedLookupMs = slowedLookupMs;
  }

  /**
   * Refuses as `rate_limited` if the credential must not be looked up now. `signal`: aborts when the client leaves,
   * and with its reason ends the wait for a lookup.
   */
  async begin(ip: string, { identity, proof }: Credential, signal?: AbortSignal): Promise<Attempt> {
    // Neighbours in a network share its lookups, and not the refusal of an identity.
    const [address, network] = [exactAddressOf(ip), networkOf(ip)];
    const name = `${identity} ${proof}`;
    if (this.#good.has(name)) return { settle: (outcome) => this.#learn(name, outcome) };
    const count = this.#count(this.#identities, `${address} ${identity}`);
    const others = count.pending.size - Number(count.pending.has(proof));
    if (count.failures + others >= AUTHENTICATION_FAILURES_MAX) throw this.#refusal(count);
    count.pending.add(proof);
    try {
      const leave = await this.#enter(network, name, signal);
      const settle: Attempt["settle"] = (outcome) => {
        leave();
        count.pending.delete(proof);
        this.#learn(name, outcome);
        return outcome === "unknown" ? this.#countFailure({ address, network }, identity) : 0;
      };
      return { settle };
    } catch (error) {
      count.pending.delete(proof);
      throw error;
    }
  }

  /** Waits for a place if the address has failed too often, or looks too much up at once. Returns how to leave it. */
  async #enter(network: string, name: string, signal?: AbortSignal): Promise<() => void> {
    const count = this.#count(this.#networks, network);
    const lane: Lane = this.#lanes.get(network) ?? {
      free: new Map(),
      slowed: 0,
      waiting: new Set(),
    };
    this.#lanes.set(network, lane);
    const end = () => {
      if (lane.free.size + lane.slowed === 0) this.#lanes.delete(network);
    };
    const others = lane.free.size - Number(lane.free.has(name));
    if (count.failures < AUTHENTICATION_FAILURES_MAX && others < LOOKUPS_AT_ONCE_MAX) {
      lane.free.set(name, (lane.free.get(name) ?? 0) + 1);
      return () => {
        const left = (lane.free.get(name) ?? 1) - 1;
        if (left > 0) lane.free.set(name, left);
        else lane.free.delete(name);
        end();
      };
    }
    if (lane.slowed < SLOWED_LOOKUPS_MAX) lane.slowed++;
    else if (lane.waiting.size >= AUTHENTICATION_WAITING_MAX) throw tooManyWait();
    else await turnIn(lane.waiting, signal);
    const beganAt = performance.now();
    const pass = () => {
      // The place passes to the next waiting lookup.
      for (const next of lane.waiting) return next();
      lane.slowed--;
      end();
    };
    return () => {
      setTimeout(pass, Math.max(0, beganAt + this.#slowedLookupMs - performance.now())).unref();
    };
  }

  #countFailure({ address, network }: Record<"address" | "network", string>, identity: string) {
    this.#count(this.#identities, `${address} ${identity}`).failures++;
    const count = this.#count(this.#networks, network);
    count.failures++;
    return count.failures > AUTHENTICATION_FAILURES_MAX ? this.#secondsLeft(count) : 0;
  }

  #learn(name: string, outcome: "good" | "unknown" | "unclear"): number {
    if (outcome === "unclear") return 0;
    this.#good.delete(name);
    if (outcome === "good") this.#good.add(name);
    dropOldest(this.#good);
    return 0;
  }

  #count(counts: Map<string, Count>, key: string): Count {
    const now = this.#now();
    const known = counts.get(key);
    if (known && now - known.since < AUTHENTICATION_WINDOW_MS) return known;
    const count = { since: now, failures: 0, pending: known?.pending ?? new Set<string>() };
    counts.delete(key);
    counts.set(key, count);
    dropOldest(counts);
    return count;
  }

  #refusal(count: Count): ActorError {
    const message =
      "Cannot authenticate: too many unknown tokens or secrets came from this address";
    return new ActorError("rate_limited", message, { retryAfterS: this.#secondsLeft(count) });
  }

  #secondsLeft({ since }: Count): number {
    return Math.max(1, Math.ceil((since + AUTHENTICATION_WINDOW_MS - this.#now()) / 1_000));
  }
}

/** Resolves when it is called in its turn. Rejects with the signal's reason, and leaves the queue. */
async function turnIn(waiting: Set<() => void>, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const end = () => {
      waiting.delete(begin);
      signal?.removeEventListener("abort", leave);
    };
    const begin = () => {
      end();
      resolve();
    };
    const leave = () => {
      end();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", leave);
    waiting.add(begin);
  });
}

function tooManyWait(): ActorError {
  const message = `Cannot authenticate: ${AUTHENTICATION_WAITING_MAX} requests from this address wait for that already`;
  return new ActorError("rate_limited", message, { retryAfterS: WAITING_S });
}

/** The oldest entry makes room. */
function dropOldest(entries: Map<string, unknown> | Set<string>): void {
  if (entries.size <= AUTHENTICATION_CLIENTS_MAX) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
