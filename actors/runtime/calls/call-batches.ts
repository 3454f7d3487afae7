/**
 * Calls of a client that leave in the same turn of the loop for the same actor go as one message, and are answered as they
 * are done, several in one message too: JSON-RPC 2.0's batches. A message costs the bus far more than its bytes do.
 */
import { CALL_BATCH_BYTES_MAX, CALL_BATCH_MAX } from "../../../schemas/call-limits.ts";
import { callSubject, shardOf } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";

interface CallBatch {
  /** Number of its first call: where its answers go. */
  number: number;
  texts: string[];
  chars: number;
}

/** The last token of where a batch is answered; that of a call alone is its number. */
const batchToken = (number: number) => `b${number}`;

export const isBatchToken = (token: string) => token.startsWith("b");

export const batchNumber = (token: string) => Number(token.slice(1));

export class CallBatches {
  readonly #bus: Bus;
  readonly #inbox: string;
  /** By address, of this turn. */
  readonly #open = new Map<string, CallBatch>();

  constructor(bus: Bus, inbox: string) {
    this.#bus = bus;
    this.#inbox = inbox;
  }

  /** The call, as JSON text, leaves at the end of this turn. Returns the number of its batch. */
  add(address: string, number: number, text: string): number {
    if (this.#open.size === 0) this.#bus.beforeSaying(() => this.#leave());
    const open = this.#open.get(address);
    if (open && hasRoomFor(open.texts.length, open.chars + text.length)) {
      open.texts.push(text);
      open.chars += text.length;
      return open.number;
    }
    if (open) this.#say(address, open);
    this.#open.set(address, { number, texts: [text], chars: text.length });
    return number;
  }

  #leave(): void {
    for (const [address, batch] of this.#open) this.#say(address, batch);
    this.#open.clear();
  }

  #say(address: string, { number, texts }: CallBatch): void {
    const isAlone = texts.length === 1;
    const token = isAlone ? number : batchToken(number);
    const payload = isAlone ? (texts[0] ?? "") : arrayOf(texts);
    this.#bus.publish(callSubject(shardOf(address), address), payload, {
      reply: `${this.#inbox}.${token}`,
    });
  }
}

/** Answers to the calls of one batch: those of the same turn of the loop go as one message. */
export class BatchAnswers {
  readonly #bus: Bus;
  readonly #inbox: string;
  #texts: string[] = [];
  #chars = 0;

  constructor(bus: Bus, inbox: string) {
    this.#bus = bus;
    this.#inbox = inbox;
  }

  /** The answer, as JSON text, leaves at the end of this turn. */
  add(text: string): void {
    if (this.#texts.length === 0) this.#bus.beforeSaying(() => this.#say());
    else if (!hasRoomFor(this.#texts.length, this.#chars + text.length)) this.#say();
    this.#texts.push(text);
    this.#chars += text.length;
  }

  #say(): void {
    if (this.#texts.length > 0) this.#bus.publish(this.#inbox, arrayOf(this.#texts));
    this.#texts = [];
    this.#chars = 0;
  }
}

const arrayOf = (texts: readonly string[]) => `[${texts.join()}]`;

const hasRoomFor = (texts: number, chars: number) =>
  texts < CALL_BATCH_MAX && chars <= CALL_BATCH_CHARS_MAX;
/** A character is three bytes of UTF-8 at most. */
const CALL_BATCH_CHARS_MAX = CALL_BATCH_BYTES_MAX / 3;
