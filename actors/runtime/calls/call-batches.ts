/**
 * Joins the calls of a client to one actor that leave in the same turn of the loop, and answers of the same turn, as
 * JSON-RPC 2.0's batches do. A message costs the bus far more than its bytes.
 */
import { CALL_BATCH_MAX } from "../../../schemas/limits.ts";
import { callSubject } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";

/** Bytes of joined calls or answers; larger ones go alone. */
export const CALL_BATCH_BYTES_MAX = 192 * 1024;

interface CallBatch {
  /** The number of its first call, which names the subject of its answers. */
  number: number;
  texts: string[];
  chars: number;
}

/** The last token of the subject that a batch is answered on. For a single call that token is its number. */
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

  /** The call, as JSON text, leaves at the end of this turn. Returns the number of its batch. */
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

  /** The answer, as JSON text, leaves at the end of this turn. */
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
/** A character is three bytes of UTF-8 at most. */
const CALL_BATCH_CHARS_MAX = CALL_BATCH_BYTES_MAX / 3;
