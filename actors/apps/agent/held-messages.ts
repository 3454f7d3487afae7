/**
 * Messages of an agent's code that wait for a record of the agent's log. No message leaves before the changes that it
 * depends on are stored.
 */
import type { OfAgent } from "../lib/app-process/process-listener.ts";
import { weightOf } from "../lib/app-process/weight.ts";

interface Held {
  after: number;
  bytes: number;
  release(): void;
}

/** Counts the bytes of waiting messages. Their number is limited per process. */
interface ByteCount {
  hold(bytes: number): void;
  release(bytes: number): void;
}

export class HeldMessages {
  readonly #count: ByteCount;
  #durable: number;
  #held: Held[] = [];

  constructor(lastCommit: number, count: ByteCount) {
    this.#durable = lastCommit;
    this.#count = count;
  }

  /** Number of the last stored record. */
  get durable(): number {
    return this.#durable;
  }

  /**
   * Calls `release` when the record that the message depends on is stored. Calls it immediately if the record is
   * stored already.
   */
  hold(message: OfAgent & { after: number }, release: () => void): void {
    if (message.after <= this.#durable) {
      release();
      return;
    }
    const held = { after: message.after, bytes: weightOf(message), release };
    this.#held.push(held);
    this.#count.hold(held.bytes);
  }

  /** Notes that this record is stored, so that `release` may release the messages that depend on it. */
  store(commit: number): void {
    this.#durable = commit;
  }

  release(): void {
    const held = this.#held;
    this.#held = held.filter(({ after }) => after > this.#durable);
    for (const { after, bytes, release } of held) {
      if (after > this.#durable) continue;
      this.#count.release(bytes);
      release();
    }
  }

  /** Drops all held messages, because the agent leaves this host. */
  drop(): void {
    for (const { bytes } of this.#held.splice(0)) this.#count.release(bytes);
  }
}
