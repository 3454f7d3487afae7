/**
 * The sends of one shard's actors that are committed and not yet published. They are numbered and stored as one
 * value.
 */
import { z } from "zod";

/** Limits the unsent bytes of a shard. Past this limit, the shard's actors wait before they send more. */
export const OUTBOX_BYTES_MAX = 600_000;
/**
 * Limits the bytes of waiting tasks in it. Past this limit only actors that send tasks wait. So tasks for a full lane
 * leave room for the mail of the shard's other actors.
 */
export const OUTBOX_TASK_BYTES_MAX = OUTBOX_BYTES_MAX / 2;

const StoredEntry = z.object({
  number: z.number(),
  /** `<kind>.<key>` of the sender, for operators who read dead letters. */
  from: z.string(),
  to: z.enum(["actor", "worker"]),
  kind: z.string(),
  key: z.string(),
  message: z.string(),
  input: z.unknown().optional(),
  lane: z.string().optional(),
  inTurns: z.literal(true).optional(),
  trace: z.record(z.string(), z.string()).optional(),
});
const StoredOutbox = z.object({ entries: z.array(StoredEntry) });
type OutboxMessage = Omit<z.infer<typeof StoredEntry>, "number">;

/**
 * `text` is the JSON of `message`, built once when the handler returned the message. `bytes` is the length of `text`
 * in UTF-8.
 */
export interface Unsent {
  message: OutboxMessage;
  text: string;
  bytes: number;
}
/** The bytes that changes send: all of them, and those of tasks. */
export interface SentBytes {
  sendBytes: number;
  taskBytes: number;
}
const NONE: SentBytes = { sendBytes: 0, taskBytes: 0 };

export interface OutboxEntry extends Unsent {
  number: number;
  /** The stream of mail whose mark counts the entry. */
  stream: number;
  /** How often the receiving actor on this host has failed to handle the message. */
  tries?: number;
}

/**
 * How much of an outbox is in one stream of mail. All of its entries up to `sent` are published, except those of
 * `waiting`. These are tasks whose lane was full, and mail that was handed over within the host.
 */
export const SentMark = z.object({ sent: z.number(), waiting: z.array(z.number()).default([]) });
export type SentMark = z.infer<typeof SentMark>;

export const NOTHING_SENT: SentMark = { sent: 0, waiting: [] };

const isUnsent = (number: number, { sent, waiting }: SentMark) =>
  number > sent || waiting.includes(number);

/** Returns the stream of mail whose mark says whether an entry is published. The first stream counts tasks. */
export type StreamOf = (message: Pick<OutboxMessage, "to" | "kind" | "key">) => number;

export class Outbox {
  readonly #streamOf: StreamOf;
  /** By stream of mail: the highest published number. */
  readonly #sent: number[];
  #entries: OutboxEntry[] = [];
  #nextNumber: number;
  #bytes = 0;
  /** The part of `#bytes` that tasks have. */
  #taskBytes = 0;

  /** `stored` is the stored value; `marks`, one of each stream of mail, say which of its entries are published. */
  constructor(
    stored: string | undefined,
    marks: readonly SentMark[] = [NOTHING_SENT],
    streamOf: StreamOf = () => 0,
  ) {
    this.#streamOf = streamOf;
    const { entries } = StoredOutbox.parse(
      stored === undefined ? { entries: [] } : JSON.parse(stored),
    );
    this.#sent = marks.map(({ sent }) => sent);
    this.#nextNumber = Math.max(...this.#sent, ...entries.map((entry) => entry.number)) + 1;
    for (const { number, ...message } of entries) {
      const stream = streamOf(message);
      if (isUnsent(number, marks[stream] ?? NOTHING_SENT))
        this.#keep({ number, stream, ...unsent(message) });
    }
  }

  /** Returns the `sent` mark of a stream for the time after these entries are published. */
  markAfter(published: readonly OutboxEntry[], stream = 0): SentMark {
    const isOfStream = (entry: OutboxEntry) => entry.stream === stream;
    const numbers = published.filter(isOfStream).map(({ number }) => number);
    const sent = Math.max(this.#sent[stream] ?? 0, ...numbers);
    const done = new Set(published);
    const waiting = this.#entries.filter(
      (entry) => entry.number <= sent && !done.has(entry) && isOfStream(entry),
    );
    return { sent, waiting: waiting.map(({ number }) => number) };
  }

  get entries(): readonly OutboxEntry[] {
    return this.#entries;
  }

  /** The bytes of all entries. */
  get bytes(): number {
    return this.#bytes;
  }

  /**
   * Returns whether the sends of a change fit, after those of earlier changes of the same commit. An empty outbox has
   * room for everything that one change may send. A change with more tasks than tasks may have does not wait for an
   * outbox without tasks, because one task may wait long for its lane.
   */
  hasRoomFor({ sendBytes, taskBytes }: SentBytes, earlier = NONE): boolean {
    if (this.#bytes + earlier.sendBytes + sendBytes > OUTBOX_BYTES_MAX) return false;
    if (taskBytes === 0 || taskBytes > OUTBOX_TASK_BYTES_MAX) return true;
    return this.#taskBytes + earlier.taskBytes + taskBytes <= OUTBOX_TASK_BYTES_MAX;
  }

  /** Numbers new sends. The outbox keeps them only with `add`, so a failed commit leaves no gap. */
  number(sends: readonly Unsent[]): OutboxEntry[] {
    return sends.map((send, index) => {
      const number = this.#nextNumber + index;
      return { ...send, number, stream: this.#streamOf(send.message) };
    });
  }

  /**
   * Returns the value to commit: the unsent entries except those in `done`, whose effect is in this commit, and the
   * new entries.
   */
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

  /**
   * Drops the entries that are published according to the mark of a stream. The stored value may still contain them.
   * A host that loads the value applies the mark again.
   */
  forget(mark: SentMark, stream = 0): void {
    this.#sent[stream] = Math.max(this.#sent[stream] ?? 0, mark.sent);
    this.#retain((entry) => entry.stream !== stream || isUnsent(entry.number, mark));
  }

  /** Drops entries whose effect was committed on this host. The stored value does not name them. */
  remove(done: ReadonlySet<OutboxEntry>): void {
    if (done.size > 0) this.#retain((entry) => !done.has(entry));
  }

  #retain(isLeft: (entry: OutboxEntry) => boolean): void {
    const entries = this.#entries.filter(isLeft);
    this.#entries = [];
    [this.#bytes, this.#taskBytes] = [0, 0];
    for (const entry of entries) this.#keep(entry);
  }

  #keep(entry: OutboxEntry): void {
    this.#entries.push(entry);
    this.#bytes += entry.bytes;
    if (entry.message.to === "worker") this.#taskBytes += entry.bytes;
  }
}

export function unsent(message: OutboxMessage): Unsent {
  const text = JSON.stringify(message);
  return { message, text, bytes: Buffer.byteLength(text) };
}
