/** How many messages of each kind a process has handled, how many it refused, and how long that took. */
import type { Answer } from "./activation.ts";

export interface MessageCounts {
  kind: string;
  message: string;
  requests: number;
  errors: number;
  lastError: string;
  /** Milliseconds from arrival to answer, added up. */
  ms: number;
}

/** Names a caller made up are counted together: labels come from closed lists. */
const UNKNOWN = "(unknown)";

export class ServiceCounts {
  readonly #known: ReadonlyMap<string, ReadonlySet<string>>;
  readonly #counts = new Map<string, MessageCounts>();

  /** `known`: the messages of each kind that are counted by name. */
  constructor(known: ReadonlyMap<string, ReadonlySet<string>>) {
    this.#known = known;
  }

  count(kind: string, message: string, answer: Answer, ms: number): void {
    if ("misdirected" in answer || "dropped" in answer) return;
    const counts = this.#of(kind, message);
    counts.requests += 1;
    counts.ms += ms;
    if ("refusal" in answer) {
      counts.errors += 1;
      counts.lastError = `${answer.refusal.code}: ${answer.refusal.message}`;
    }
  }

  /** Every known message, also those nobody has sent yet. */
  all(): MessageCounts[] {
    for (const [kind, messages] of this.#known) {
      for (const message of messages) this.#of(kind, message);
    }
    return [...this.#counts.values()];
  }

  #of(kind: string, message: string): MessageCounts {
    const known = this.#known.get(kind)?.has(message) ?? false;
    const id = known ? `${kind}.${message}` : UNKNOWN;
    let counts = this.#counts.get(id);
    if (!counts) {
      const named = known ? { kind, message } : { kind: UNKNOWN, message: UNKNOWN };
      counts = { ...named, requests: 0, errors: 0, lastError: "", ms: 0 };
      this.#counts.set(id, counts);
    }
    return counts;
  }
}
