/** Counts a client's failed authentications, so that nobody makes actors look up one invented token after another. */
import {
  AUTHENTICATION_CLIENTS_MAX,
  AUTHENTICATION_FAILURES_MAX,
  AUTHENTICATION_WINDOW_MS,
} from "../schemas/limits.ts";

interface Client {
  since: number;
  failures: number;
  /** Tokens being looked up: a burst must not pass before its first answer. */
  asked: Set<string>;
}

/** Of this process alone, and forgotten with it. An address stands for a client; a token is any text of its own. */
export class FailedAuthentications {
  readonly #now: () => number;
  readonly #clients = new Map<string, Client>();
  /** When a token was last good for an address, the latest last. */
  readonly #good = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Seconds to wait, or 0: then the token may be looked up, and `settle` must be told what came of it. */
  begin(address: string, token: string): number {
    const now = this.#now();
    const client = this.#client(address, now);
    // Neighbours behind one proxy are not locked out by one of them.
    const goodAt = this.#good.get(`${address} ${token}`);
    if (goodAt !== undefined && now - goodAt < AUTHENTICATION_WINDOW_MS) return 0;
    const others = client.asked.size - Number(client.asked.has(token));
    if (client.failures + others >= AUTHENTICATION_FAILURES_MAX) {
      return Math.ceil((client.since + AUTHENTICATION_WINDOW_MS - now) / 1_000);
    }
    client.asked.add(token);
    return 0;
  }

  settle(address: string, token: string, outcome: "good" | "unknown" | "unclear"): void {
    const client = this.#client(address, this.#now());
    client.asked.delete(token);
    const key = `${address} ${token}`;
    if (outcome === "unclear") return;
    this.#good.delete(key);
    if (outcome === "unknown") client.failures++;
    else keep(this.#good, key, this.#now());
  }

  #client(address: string, now: number): Client {
    const known = this.#clients.get(address);
    if (known && now - known.since < AUTHENTICATION_WINDOW_MS) return known;
    const client = { since: now, failures: 0, asked: known?.asked ?? new Set<string>() };
    this.#clients.delete(address);
    keep(this.#clients, address, client);
    return client;
  }
}

/** The oldest entry makes room. */
function keep<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  if (map.size <= AUTHENTICATION_CLIENTS_MAX) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
