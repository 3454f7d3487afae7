/** Stores the failed requests of one task: a limited number, and only the latest for each kind and target. */
import type { EgressCode, EgressError } from "./egress-error.ts";
import type { EgressTarget } from "./egress-guard.ts";

/** Maximum failures stored for one task; only the latest for each kind and host is stored. */
export const EGRESS_FAILURES_MAX = 100;

export interface EgressFailure extends EgressTarget {
  code: EgressCode;
  /** For the client. */
  message: string;
  /** For the log only, because it may name internal addresses. */
  detail: string;
}

export class EgressFailures {
  readonly #failures = new Map<string, EgressFailure>();

  add({ host, port }: EgressTarget, { code, message, detail }: EgressError): void {
    const key = `${host}:${port} ${code}`;
    // Deletes the entry before it is set again, so that the map is ordered by the time of the latest failure.
    this.#failures.delete(key);
    this.#failures.set(key, { host, port, code, message, detail });
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= EGRESS_FAILURES_MAX) break;
      this.#failures.delete(oldest);
    }
  }

  /** Returns the stored failures, the latest last. */
  list(): readonly EgressFailure[] {
    return [...this.#failures.values()];
  }

  /** Returns the latest failure for the host and port of the address. */
  of(address: string): EgressFailure | undefined {
    if (!URL.canParse(address)) return undefined;
    const target = targetOfUrl(new URL(address));
    return this.list().findLast(({ host, port }) => host === target.host && port === target.port);
  }

  clear(): void {
    this.#failures.clear();
  }
}

export function targetOfUrl(url: URL): EgressTarget {
  const secure = url.protocol === "https:" || url.protocol === "wss:";
  const port = url.port === "" ? (secure ? 443 : 80) : Number(url.port);
  return { host: url.hostname, port };
}
