/** The failed requests of one task: a limited number, the latest of each kind and target. */
import type { EgressCode, EgressError } from "./egress-error.ts";
import type { EgressTarget } from "./egress-guard.ts";

/** Failures of one task that are remembered, the latest of each kind and host. */
export const EGRESS_FAILURES_MAX = 100;

export interface EgressFailure extends EgressTarget {
  code: EgressCode;
  /** For the client. */
  message: string;
  /** For the log: it may name addresses of the inside. */
  detail: string;
}

export class EgressFailures {
  readonly #failures = new Map<string, EgressFailure>();

  add({ host, port }: EgressTarget, { code, message, detail }: EgressError): void {
    const key = `${host}:${port} ${code}`;
    // Set anew, so that the order is that of the latest.
    this.#failures.delete(key);
    this.#failures.set(key, { host, port, code, message, detail });
    for (const oldest of this.#failures.keys()) {
      if (this.#failures.size <= EGRESS_FAILURES_MAX) break;
      this.#failures.delete(oldest);
    }
  }

  /** The latest last. */
  list(): readonly EgressFailure[] {
    return [...this.#failures.values()];
  }

  /** The latest about the address's host and port. */
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
