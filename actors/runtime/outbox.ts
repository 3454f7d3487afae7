/** The sends of one shard's actors that are committed and not yet published: one value in the store, numbered. */
import { z } from "zod";
import { OUTBOX_BYTES_MAX } from "../../schemas/limits.ts";

const StoredEntry = z.object({
  number: z.number(),
  /** `<kind>.<key>` of the sender, for those who read dead letters. */
  from: z.string(),
  to: z.enum(["actor", "worker"]),
  kind: z.string(),
  key: z.string(),
  message: z.string(),
  input: z.unknown().optional(),
  lane: z.string().optional(),
  trace: z.record(z.string(), z.string()).optional(),
});
const StoredOutbox = z.object({ entries: z.array(StoredEntry) });
export type OutboxMessage = Omit<z.infer<typeof StoredEntry>, "number">;

/** `text` is the JSON of `message`, built once when its handler returned it; `bytes` are those of its UTF-8. */
export interface Unsent {
  message: OutboxMessage;
  text: string;
  bytes: number;
}
export interface OutboxEntry extends Unsent {
  number: number;
}

export class Outbox {
  #entries: OutboxEntry[] = [];
  #nextNumber: number;
  #bytes = 0;

  /** `stored` is what the store holds, `sent` the number up to which the stream of mail has it. */
  constructor(stored: string | undefined, sent: number) {
    const { entries } = StoredOutbox.parse(
      stored === undefined ? { entries: [] } : JSON.parse(stored),
    );
    this.#nextNumber = Math.max(sent, ...entries.map((entry) => entry.number)) + 1;
    for (const { number, ...message } of entries) {
      if (number > sent) this.#keep({ number, ...unsent(message) });
    }
  }

  get entries(): readonly OutboxEntry[] {
    return this.#entries;
  }

  /** True when so much more fits. An empty outbox takes whatever one change may send. */
  hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= OUTBOX_BYTES_MAX;
  }

  /** Numbers for new sends. Nothing is kept before `add`: a commit that fails leaves no gap. */
  number(sends: readonly Unsent[]): OutboxEntry[] {
    return sends.map((send, index) => ({ ...send, number: this.#nextNumber + index }));
  }

  /** The value to commit: what is unsent, and the new entries. */
  toText(added: readonly OutboxEntry[]): string {
    const texts = [...this.#entries, ...added].map(
      ({ number, text }) => `{"number":${number},${text.slice(1)}`,
    );
    return `{"entries":[${texts.join(",")}]}`;
  }

  add(entries: readonly OutboxEntry[]): void {
    for (const entry of entries) {
      this.#keep(entry);
      this.#nextNumber = entry.number + 1;
    }
  }

  /** Forgets what is published. The stored value may name it still: `sent` is the truth when it is read again. */
  forgetUpTo(number: number): void {
    const first = this.#entries.findIndex((entry) => entry.number > number);
    const gone = this.#entries.splice(0, first === -1 ? this.#entries.length : first);
    for (const { bytes } of gone) this.#bytes -= bytes;
  }

  #keep(entry: OutboxEntry): void {
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
  }
}

export function unsent(message: OutboxMessage): Unsent {
  const text = JSON.stringify(message);
  return { message, text, bytes: Buffer.byteLength(text) };
}
