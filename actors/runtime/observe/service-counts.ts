/** Counts the messages of each kind that a process handled and refused, and the time that took. */

import { refusalOf } from "../bus/refusal.ts";
import type { Clock } from "../lib/clock.ts";
import type { Answer, Delivery } from "../shards/incoming.ts";

export interface MessageCounts {
  kind: string;
  message: string;
  requests: number;
  errors: number;
  lastError: string;
  /** Sum of the times from arrival to answer, in milliseconds. */
  ms: number;
}

/** Names that callers invent are counted together under this name, because labels come from closed lists. */
const UNKNOWN = "(unknown)";

export class ServiceCounts {
  readonly #counts = new Map<string, MessageCounts>();

  /** `known`: the messages of each kind that are counted by name. */
  constructor(known: ReadonlyMap<string, ReadonlySet<string>>) {
    for (const [kind, messages] of known) {
      for (const message of messages) this.#begin(kind, message);
    }
  }

  count(kind: string, message: string, answer: Answer, ms: number): void {
    if ("misdirected" in answer || "dropped" in answer) return;
    const counts = this.#of(kind, message);
    counts.requests += 1;
    counts.ms += ms;
    if ("refusal" in answer) this.fail(kind, message, answer.refusal);
  }

  /**
   * Returns a delivery that counts as a request. The request ends when the delivery's effect or its dead letter is
   * durable.
   */
  countDelivery(kind: string, delivery: Delivery, clock: Clock): Delivery {
    const startedAt = clock.monotonic();
    const done = () => {
      this.count(kind, delivery.message, { reply: "" }, clock.monotonic() - startedAt);
      delivery.done();
    };
    return { ...delivery, done };
  }

  /**
   * Counts a message that has failed and is not retried. The message itself is counted among the requests separately,
   * now or later.
   */
  fail(kind: string, message: string, error: Error): void {
    const counts = this.#of(kind, message);
    counts.errors += 1;
    const refusal = refusalOf(error);
    counts.lastError = refusal ? `${refusal.code}: ${refusal.message}` : error.message;
  }

  /** Returns the counts of all known messages in the order of registration, including messages without requests. */
  all(): MessageCounts[] {
    return [...this.#counts.values()];
  }

  #of(kind: string, message: string): MessageCounts {
    return (
      this.#counts.get(`${kind}.${message}`) ??
      this.#counts.get(`${UNKNOWN}.${UNKNOWN}`) ??
      this.#begin(UNKNOWN, UNKNOWN)
    );
  }

  #begin(kind: string, message: string): MessageCounts {
    const counts = { kind, message, requests: 0, errors: 0, lastError: "", ms: 0 };
    this.#counts.set(`${kind}.${message}`, counts);
    return counts;
  }
}
