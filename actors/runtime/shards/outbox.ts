/** The sends of one shard's actors that are committed and not yet published: one value in the store, numbered. */
import { z } from "zod";
import { OUTBOX_BYTES_MAX } from "../../../schemas/limits.ts";

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
type OutboxMessage = Omit<z.infer<typeof StoredEntry>, "number">;

/** `text` is the JSON of `message`, built once when its handler returned it; `bytes` are those of its UTF-8. */
export interface Unsent {
  message: OutboxMessage;
  text: string;
  bytes: number;
}
export interface OutboxEntry extends Unsent {
  number: number;
  /** Of an actor of this host that could not handle it. */
  tries?: number;
}

/** All up to `sent` is published but what is named: tasks whose lane was full, and mail that an actor here was handed. */
export const SentMark = z.object({ sent: z.number(), waiting: z.array(z.number()).default([]) });
export type SentMark = z.infer<typeof SentMark>;

const isUnsent = (number: number, { sent, waiting }: SentMark) =>
  number > sent || waiting.includes(number);

export class Outbox {
  #sent: number;
  #entries: OutboxEntry[] = [];
  #nextNumber: number;
  #bytes = 0;

  /** `stored` is what the store holds, `mark` what of it the stream of mail says is published. */
  constructor(stored: string | undefined, mark: SentMark) {
    const { entries } = StoredOutbox.parse(
      stored === undefined ? { entries: [] } : JSON.parse(stored),
    );
    this.#sent = mark.sent;
    this.#nextNumber = Math.max(mark.sent, ...entries.map((entry) => entry.number)) + 1;
    for (const { number, ...message } of entries) {
      if (isUnsent(number, mark)) this.#keep({ number, ...unsent(message) });
    }
  }

  /** The highest number that is published. */
  get sent(): number {
    return this.#sent;
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

  /** The value to commit: what is unsent without what is `done` by that commit, and the new entries. */
  toText(added: readonly OutboxEntry[], done: ReadonlySet<OutboxEntry> = new Set()): string {
    const left = this.#entries.filter((entry) => !done.has(entry));
    const texts = [...left, ...added].map(
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

  /** Forgets what is published. The stored value may name it still: the mark is the truth when it is read again. */
  forget(mark: SentMark): void {
    this.#sent = Math.max(this.#sent, mark.sent);
    this.#retain(({ number }) => isUnsent(number, mark));
  }

  /** Forgets what had its effect here; the stored value does not name it. */
  remove(done: ReadonlySet<OutboxEntry>): void {
    if (done.size > 0) this.#retain((entry) => !done.has(entry));
  }

  #retain(isLeft: (entry: OutboxEntry) => boolean): void {
    this.#entries = this.#entries.filter(isLeft);
    this.#bytes = this.#entries.reduce((sum, { bytes }) => sum + bytes, 0);
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
