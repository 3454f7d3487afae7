/**
 * Joins the calls that a client sends to one actor in the same turn of the event loop into one message, and joins the
 * answers likewise, as the batches of JSON-RPC 2.0 do. Each message costs the bus far more than its bytes do.
 */
import { CALL_BATCH_MAX } from "../../../schemas/limits.ts";
import { callSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";

/** Limits the bytes of joined calls or answers. A larger call or answer is sent alone. */
export const CALL_BATCH_BYTES_MAX = 192 * 1024;

interface CallBatch {
  /** The number of the batch's first call, which names the subject of the batch's answers. */
  number: number;
  texts: string[];
  chars: number;
}

/**
 * Returns the last token of the subject on which a batch is answered. For a single call this token is the number of
 * the call.
 */
const batchToken = (number: number) => `b${number}`;

export const isBatchToken = (token: string) => token.startsWith("b");

export const batchNumber = (token: string) => Number(token.slice(1));

export class CallBatches {
  readonly #bus: Bus;
  readonly #inbox: string;
  /** The batches of this turn, by address. */
  readonly #open = new Map<string, CallBatch>();

  constructor(bus: Bus, inbox: string) {
    this.#bus = bus;
    this.#inbox = inbox;
  }

  /** Adds a call, as JSON text, to a batch that is sent at the end of this turn. Returns the number of the batch. */
  add(address: string, number: number, text: string): number {
    if (this.#open.size === 0) this.#bus.beforePublishing(() => this.#publishAll());
    const open = this.#open.get(address);
    if (open && hasRoomFor(open.texts.length, open.chars + text.length)) {
      open.texts.push(text);
      open.chars += text.length;
      return open.number;
    }
    if (open) this.#publish(address, open);
    this.#open.set(address, { number, texts: [text], chars: text.length });
    return number;
  }

  #publishAll(): void {
    for (const [address, batch] of this.#open) this.#publish(address, batch);
    this.#open.clear();
  }

  #publish(address: string, { number, texts }: CallBatch): void {
    const isAlone = texts.length === 1;
    const token = isAlone ? number : batchToken(number);
    const payload = isAlone ? (texts[0] ?? "") : arrayOf(texts);
    this.#bus.publish(callSubject(this.#bus.shardOf(address), address), payload, {
      reply: `${this.#inbox}.${token}`,
    });
  }
}

/** Answers to the calls of one batch. Answers of the same turn of the loop go as one message. */
export class BatchAnswers {
  readonly #bus: Bus;
  readonly #inbox: string;
  #texts: string[] = [];
  #chars = 0;

  constructor(bus: Bus, inbox: string) {
    this.#bus = bus;
    this.#inbox = inbox;
  }

  /** Adds an answer, as JSON text, which is sent at the end of this turn. */
  add(text: string): void {
    if (this.#texts.length === 0) this.#bus.beforePublishing(() => this.#publish());
    else if (!hasRoomFor(this.#texts.length, this.#chars + text.length)) this.#publish();
    this.#texts.push(text);
    this.#chars += text.length;
  }

  #publish(): void {
    if (this.#texts.length > 0) this.#bus.publish(this.#inbox, arrayOf(this.#texts));
    this.#texts = [];
    this.#chars = 0;
  }
}

const arrayOf = (texts: readonly string[]) => `[${texts.join()}]`;

const hasRoomFor = (texts: number, chars: number) =>
  texts < CALL_BATCH_MAX && chars <= CALL_BATCH_CHARS_MAX;
/** A character of a JavaScript string takes at most three bytes in UTF-8. */
const CALL_BATCH_CHARS_MAX = CALL_BATCH_BYTES_MAX / 3;
