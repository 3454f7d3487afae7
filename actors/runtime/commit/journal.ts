/**
 * The commits of a host in one bucket that are not in their keys yet. Each commit is one message of the journal, or
 * several if it is large. Checkpoints write the newest value of each key to the bucket. A host that takes the shards
 * of a dead host reads the dead host's journal (JournalReplay).
 */
import { z } from "zod";
import { JOURNAL_MESSAGE_BYTES_MAX, JOURNAL_MESSAGES_MAX } from "../../../schemas/limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { REMOVED, scheduleOf } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";

/** Limits the bytes of commits that are not in their keys, so that a takeover reads them within a second. */
export const JOURNAL_BYTES_MAX = 16_000_000;
/**
 * Limits the bytes of commits in the stream that are in their keys already. The stream's limit on messages alone
 * would let it keep 900 MB of large commits.
 */
export const JOURNAL_KEPT_BYTES_MAX = 32_000_000;
/**
 * Limits the keys whose changes are not in the bucket, because a takeover writes each of them, 5,000 in about a second.
 * One actor may have thousands: a crawl job that reads a sitemap changes 5,000 rows a second.
 */
export const JOURNAL_KEYS_MAX = 5_000;

/** JSON texts by subject; `null` removes the subject's value. */
export type Puts = Map<string, string | null>;

/** The changes of one commit to an actor, or to the outbox of a shard. */
export interface JournalEntry {
  shard: Shard;
  /** Key of the owner's value in the bucket: `<kind>.<key>`, or `outbox.<shard>`. */
  owner: string;
  /** Rows and reminders, and the value last. */
  puts: Puts;
}

/**
 * A commit as it is stored, or one of its parts. It contains keys of the bucket instead of subjects, so that
 * operators can read it. `epoch` is the epoch under which the host owns the shard. The changes of all commits before
 * the sequence `from` are in their keys, or a later commit has replaced them.
 */
export const StoredCommit = z.object({
  number: z.number(),
  from: z.number(),
  entries: z.array(
    z.object({
      shard: z.number(),
      epoch: z.number(),
      puts: z.record(z.string(), z.unknown()),
      removed: z.array(z.string()),
    }),
  ),
});

/** Reads the puts of an entry of a stored commit. */
export function readPuts(
  subjects: StateSubjects,
  { puts, removed }: { puts: Record<string, unknown>; removed: readonly string[] },
): Puts {
  const read: Puts = new Map();
  // The value comes last, as in a commit: a reader that has the value has the removals too.
  for (const key of removed) read.set(subjects.ofBucketKey(key), null);
  for (const [key, value] of Object.entries(puts)) {
    read.set(subjects.ofBucketKey(key), JSON.stringify(value));
  }
  return read;
}

/** The changes of one owner by several commits, and where the first of those commits is. */
interface Pending extends Omit<JournalEntry, "puts"> {
  /** The newest put of each key, in the order of their commits. */
  puts: Map<string, { text: string | null; at: Position }>;
  oldest: Position;
}
interface Position {
  sequence: number;
  /** Number of messages and bytes in the journal before this commit. */
  messages: number;
  bytes: number;
}

export class Journal {
  /** The id of its host. */
  readonly id: string;
  readonly #subjects: StateSubjects;
  /** The changes that no checkpoint has taken yet, by owner, in the order of `oldest`. */
  #pending = new Map<string, Pending>();
  /** The changes that a checkpoint is writing. The pending changes of the same owner are newer. */
  #writing = new Map<string, Pending>();
  /** Number of keys in `#pending` and `#writing`. */
  #keys = 0;
  #messages = 0;
  #bytes = 0;
  /**
   * The end of the messages that no takeover reads. `#unneeded` applies as soon as the commit being written is
   * stored; `#surelyUnneeded` applies already.
   */
  #unneeded = { below: 0, bytes: 0 };
  #surelyUnneeded = this.#unneeded;
  #droppedBytes = 0;

  constructor(parts: { id: string; subjects: StateSubjects }) {
    this.id = parts.id;
    this.#subjects = parts.subjects;
  }

  /**
   * True while the commits that are in no key yet have few messages, bytes and keys. So a takeover is fast, and the
   * stream keeps all messages that the takeover would read.
   */
  get hasRoom(): boolean {
    return this.#isWithin(1);
  }

  /** True when a checkpoint should write the commits to their keys before more commits arrive. */
  get isHalfFull(): boolean {
    return !this.#isWithin(1 / 2);
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0 && this.#writing.size === 0;
  }

  /** Number of messages so far. */
  get messages(): number {
    return this.#messages;
  }

  /** True when the changes of all messages before this number are in their keys, or later messages have replaced them. */
  isWrittenBelow(messages: number): boolean {
    const { messages: written } = this.#oldest ?? { messages: this.#messages };
    return written >= messages;
  }

  /**
   * True when the owner's keys lack some of its commits. With `subject`: true when the key of this subject lacks
   * some.
   */
  isPending(owner: string, subject?: string): boolean {
    const all = [this.#pending.get(owner), this.#writing.get(owner)];
    return all.some((one) => one && (subject === undefined || one.puts.has(subject)));
  }

  holds(shard: Shard): boolean {
    const isOf = (pending: Pending) => pending.shard === shard;
    return this.#pending.values().some(isOf) || this.#writing.values().some(isOf);
  }

  /** Returns the payloads of a commit that follows the message `last`. The texts in `entries` are JSON already. */
  encode(number: number, last: number, entries: readonly JournalEntry[]): string[] {
    const { sequence: from, bytes: bytesBefore } = this.#oldest ?? {
      sequence: last + 1,
      bytes: this.#bytes,
    };
    this.#unneeded = { below: from, bytes: bytesBefore };
    const parts: string[][] = [[]];
    let bytes = 0;
    for (const text of entries.flatMap((entry) => this.#textsOf(entry))) {
      const size = Buffer.byteLength(text) + 1;
      if (bytes > 0 && bytes + size > JOURNAL_MESSAGE_BYTES_MAX) {
        parts.push([]);
        bytes = 0;
      }
      parts.at(-1)?.push(text);
      bytes += size;
    }
    return parts.map((texts) => `{"number":${number},"from":${from},"entries":[${texts.join()}]}`);
  }

  /** Records a stored commit. `sequence` is the sequence of its first part. */
  record(sequence: number, payloads: readonly string[], entries: readonly JournalEntry[]): void {
    const at = { sequence, messages: this.#messages, bytes: this.#bytes };
    this.#surelyUnneeded = this.#unneeded;
    this.#messages += payloads.length;
    for (const payload of payloads) this.#bytes += Buffer.byteLength(payload);
    for (const { shard, owner, puts } of entries) {
      const pending = this.#pending.get(owner) ?? { shard, owner, puts: new Map(), oldest: at };
      const keysBefore = pending.puts.size;
      for (const [subject, text] of puts) {
        pending.puts.delete(subject);
        pending.puts.set(subject, { text, at });
      }
      this.#keys += pending.puts.size - keysBefore;
      this.#pending.set(owner, pending);
    }
  }

  /**
   * Returns the sequence before which messages may be removed, if they have more than JOURNAL_KEPT_BYTES_MAX bytes
   * since the last removal; otherwise undefined. No takeover reads these messages.
   */
  takeUnneeded(): number | undefined {
    const { below, bytes } = this.#surelyUnneeded;
    if (bytes - this.#droppedBytes <= JOURNAL_KEPT_BYTES_MAX) return undefined;
    this.#droppedBytes = bytes;
    return below;
  }

  /**
   * Returns the changes that have been pending for the longest time. They count as being written until `written` or
   * `notWritten` is called. If only a part of an owner's changes fits, the others count from their own commits.
   * Otherwise a takeover would read all commits of an owner that changes thousands of keys a second.
   */
  checkpoint({ messagesMax, bytesMax }: { messagesMax: number; bytesMax: number }): Write[] {
    const puts: Puts = new Map();
    let bytes = 0;
    for (const pending of this.#pending.values()) {
      const part: Pending["puts"] = new Map();
      for (const [subject, put] of pending.puts) {
        if (puts.size >= messagesMax || bytes > bytesMax) break;
        part.set(subject, put);
        puts.set(subject, put.text);
        bytes += put.text?.length ?? 0;
        pending.puts.delete(subject);
      }
      if (part.size > 0) this.#writing.set(pending.owner, { ...pending, puts: part });
      const [next] = pending.puts.values();
      if (next) {
        if (part.size > 0) this.#countFrom(pending, next.at);
        break;
      }
      this.#pending.delete(pending.owner);
    }
    return writesOf(this.#subjects, puts);
  }

  written(): void {
    this.#keys -= keysOf(this.#writing);
    this.#writing.clear();
  }

  notWritten(): void {
    const all = this.#writing;
    this.#writing = new Map();
    for (const [owner, later] of this.#pending) {
      const earlier = all.get(owner);
      if (earlier) layOver(earlier.puts, later.puts);
      else all.set(owner, later);
    }
    this.#pending = all;
    this.#keys = keysOf(all);
  }

  get #oldest(): Position | undefined {
    const [writing] = this.#writing.values();
    const [pending] = this.#pending.values();
    return writing?.oldest ?? pending?.oldest;
  }

  /** The owner's changes begin at another commit now. */
  #countFrom(pending: Pending, oldest: Position): void {
    pending.oldest = oldest;
    const sorted = [...this.#pending].sort(
      ([, one], [, other]) => one.oldest.sequence - other.oldest.sequence,
    );
    this.#pending = new Map(sorted);
  }

  #isWithin(share: number): boolean {
    const { messages, bytes } = this.#oldest ?? { messages: this.#messages, bytes: this.#bytes };
    return (
      this.#messages - messages < share * JOURNAL_MESSAGES_MAX &&
      this.#bytes - bytes < share * JOURNAL_BYTES_MAX &&
      this.#keys < share * JOURNAL_KEYS_MAX
    );
  }

  /** Returns the stored form of an entry: one text, or several if it is too large for one message. */
  #textsOf({ shard, puts }: JournalEntry): string[] {
    const texts: string[] = [];
    let put: string[] = [];
    let removed: string[] = [];
    let bytes = 0;
    const close = () => {
      const of = `"shard":${shard.number},"epoch":${shard.epoch}`;
      texts.push(`{${of},"puts":{${put.join()}},"removed":[${removed.join()}]}`);
      [put, removed, bytes] = [[], [], 0];
    };
    for (const [subject, text] of puts) {
      const key = JSON.stringify(this.#subjects.bucketKey(subject));
      const size = key.length + Buffer.byteLength(text ?? "");
      if (bytes > 0 && bytes + size > JOURNAL_MESSAGE_BYTES_MAX) close();
      if (text === null) removed.push(key);
      else put.push(`${key}:${text}`);
      bytes += size;
    }
    close();
    return texts;
  }
}

function keysOf(all: ReadonlyMap<string, Pending>): number {
  return all.values().reduce((sum, { puts }) => sum + puts.size, 0);
}

/** Adds later puts to earlier ones; the last put of a subject counts and stands last. */
export function layOver<T>(earlier: Map<string, T>, later: ReadonlyMap<string, T>): void {
  for (const [subject, put] of later) {
    earlier.delete(subject);
    earlier.set(subject, put);
  }
}

/** Returns the writes that store the puts in their keys. */
export const writesOf = (subjects: StateSubjects, puts: Puts): Write[] =>
  Array.from(puts, ([subject, text]) => ({
    subject,
    payload: text ?? "",
    headers: text === null ? REMOVED : scheduleOf(subjects, subject, text),
  }));
