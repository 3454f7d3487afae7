/**
 * Limits guesses of credentials: counts failed authentications per network and per identity at one address. Slows
 * down the lookups of a network that fails often.
 */

import { ActorError } from "../../schemas/errors.ts";
import { exactAddressOf, networkOf } from "./network-of.ts";

/**
 * Limits the failures in one window, for each identity (client, token, grant) at one address and for each network.
 * After too many failures of one identity, it is refused at that address. After too many failures from one network,
 * its lookups are slowed down. A script with an outdated secret may repeat its mistake this often, but guesses stay
 * rare.
 */
export const AUTHENTICATION_FAILURES_MAX = 100;
export const AUTHENTICATION_WINDOW_MS = 60_000;
/**
 * Limits how many lookups from a network with too many failures run at the same time. A lookup takes milliseconds, so
 * a valid token waits only a short time for the others.
 */
export const SLOWED_LOOKUPS_MAX = 4;
/**
 * The minimum time for which a slowed lookup occupies its place. This allows 200 lookups a second, a few percent of a
 * core. Otherwise each answer would immediately start the next guess.
 */
export const SLOWED_LOOKUP_MS = 20;
/**
 * Limits how many credentials from one network are looked up at the same time while the network has few failures.
 * Many people of one network may send requests together after a restart. Further lookups wait in the queue of slowed
 * lookups, so that a burst of guesses is limited too.
 */
export const LOOKUPS_AT_ONCE_MAX = 1_000;
/**
 * Limits the requests from one network that wait for a lookup. Each holds a connection. The last of them waits about
 * WAITING_S seconds.
 */
export const AUTHENTICATION_WAITING_MAX = 1_000;
const WAITING_S = (AUTHENTICATION_WAITING_MAX / SLOWED_LOOKUPS_MAX) * (SLOWED_LOOKUP_MS / 1_000);
/**
 * Limits each list that a gateway remembers: addresses, identities at addresses, and valid credentials. Together they
 * take some megabytes.
 */
export const AUTHENTICATION_CLIENTS_MAX = 10_000;

/** The credential of one request, in the form in which failures are counted. */
export interface Credential {
  /** The client, API token or grant that the request claims to be. Guesses at one identity are counted together. */
  identity: string;
  /**
   * A hash that differs for each secret, or "" if the identity is already the hash of a secret. It is kept only in
   * memory, so a plain hash is enough.
   */
  proof: string;
}

/** One lookup of a credential. The caller of `begin` must call `settle` exactly once. */
export interface Attempt {
  /**
   * Reports the outcome. Returns the seconds that the client must wait if the credential is unknown and its network
   * has failed too often; otherwise 0.
   */
  settle(outcome: "good" | "unknown" | "unclear"): number;
}

/** Failures within one window. */
interface Count {
  since: number;
  failures: number;
  /**
   * Proofs whose lookup is running. They count like failures, so that a burst of requests cannot exceed the limit
   * before the first lookup ends.
   */
  pending: Set<string>;
}

/** The running and waiting lookups of one network. */
interface Lane {
  /** Credentials with running lookups that did not have to wait, each with the number of these lookups. */
  free: Map<string, number>;
  slowed: number;
  /** Lookups in the queue; the lookup that has waited longest comes first. */
  waiting: Set<() => void>;
}

/**
 * Counts failures in the memory of this process. A credential that was valid before is always looked up, because it
 * is no guess. Past the limit of an identity, that identity is refused at the address. Past the limit of a network,
 * only a few of its unproven credentials are looked up at a time, and the others wait: other people of the network may
 * have a valid one. One is refused only if too many wait.
 */
export class FailedAuthentications {
  readonly #now: () => number;
  readonly #slowedLookupMs: number;
  readonly #networks = new Map<string, Count>();
  readonly #identities = new Map<string, Count>();
  readonly #lanes = new Map<string, Lane>();
  /** Identities and proofs that were valid, the latest last. */
  readonly #good = new Set<string>();

  constructor(now: () => number, slowedLookupMs = SLOWED_LOOKUP_MS) {
    this.#now = now;
    this.#slowedLookupMs = slowedLookupMs;
  }

  /**
   * Starts a lookup. Refuses as `rate_limited` if the credential must not be looked up now. `signal` aborts when the
   * client leaves; then a waiting call rejects with the signal's reason.
   */
  async begin(ip: string, { identity, proof }: Credential, signal?: AbortSignal): Promise<Attempt> {
    const name = `${identity} ${proof}`;
    if (this.#good.has(name)) return { settle: (outcome) => this.#learn(name, outcome) };
    // All addresses of a network share the limit of lookups, but the refusal of an identity concerns one address
    // only.
    const [address, network] = [exactAddressOf(ip), networkOf(ip)];
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

  /**
   * Waits for a place in the queue if the network has failed too often or has too many lookups running. Returns the
   * function that frees the place.
   */
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

/**
 * Waits in the queue. Resolves when a finished lookup gives its place to this one. If the signal aborts, it leaves
 * the queue and rejects with the signal's reason.
 */
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

/** Removes the oldest entry if there are more than AUTHENTICATION_CLIENTS_MAX. */
function dropOldest(entries: Map<string, unknown> | Set<string>): void {
  if (entries.size <= AUTHENTICATION_CLIENTS_MAX) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
