/**
 * The commits of a host in one bucket that are not written to their keys yet. Each commit is one message of the
 * journal, whatever it changed. A checkpoint then writes the gathered changes in one batch. A host that takes a shard
 * reads the journals of its former owners (JournalReplay).
 */
import { z } from "zod";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { REMOVED, scheduleOf } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";

/**
 * Commits in a journal before they must be written: those of a second, at 500 commits a second. A takeover reads as
 * many.
 */
export const JOURNAL_SLOTS = 512;
/** Bytes of commits without a checkpoint. A takeover reads them within a second. */
export const JOURNAL_BYTES_MAX = 16_000_000;
/** Actors and outboxes that are not written: a takeover reads the stored value of each. */
export const JOURNAL_OWNERS_MAX = 5_000;

/** On a message that a checkpoint or a replay wrote: the sequence of the journal's message that its content is from. */
export const CONTENT_HEADER = "Trunkline-Journal";

/** JSON texts by subject; `null` removes. */
export type Puts = Map<string, string | null>;

/** The changes of one commit to an actor, or to the outbox of a shard. */
export interface JournalEntry {
  shard: Shard;
  /** Key of its value in the bucket: `<kind>.<key>`, or `outbox.<shard>`. */
  owner: string;
  puts: Puts;
}

/** A commit as it is stored. It names keys of the bucket in place of subjects, so that operators can read it. */
export const StoredCommit = z.object({
  number: z.number(),
  entries: z.array(
    z.object({
      shard: z.number(),
      owner: z.string(),
      puts: z.record(z.string(), z.unknown()),
      removed: z.array(z.string()),
    }),
  ),
});
/**
 * Says which commits of a journal are written: all before `below`; of a lost shard, all before its number in `lost`.
 * Nobody needs messages before the sequence `from`.
 */
export const StoredNote = z.object({
  below: z.number(),
  from: z.number(),
  lost: z.record(z.string(), z.number()),
});
export type StoredNote = z.infer<typeof StoredNote>;

/** The changes of one owner, by several commits. */
export interface Pending extends JournalEntry {
  /** The number of its first commit that is not written. */
  oldest: number;
  /** Sequence of the journal's message that changed it last. */
  sequence: number;
}

export class Journal {
  /** The id of the host, which epochs name. */
  readonly id: string;
  readonly #subjects: StateSubjects;
  readonly #isReplayed: (shard: Shard) => boolean;
  /** By owner, in the order of `oldest`. */
  readonly #pending = new Map<string, Pending>();
  /**
   * Lost shards that had something pending, and the number of their oldest such commit. The next owner reads from
   * there.
   */
  readonly #owed = new Map<Shard, number>();
  /**
   * By number, for the commits that are needed and the one before them: the sequence, and the bytes of all commits up
   * to it.
   */
  readonly #commits: { sequence: number; bytesSoFar: number }[] = [];
  #next = 0;
  /** `below` of the stored note. */
  #noted = 0;

  constructor(parts: {
    id: string;
    subjects: StateSubjects;
    /** True when a later owner of the shard has written its commits in this journal. */
    isReplayed(shard: Shard): boolean;
  }) {
    this.id = parts.id;
    this.#subjects = parts.subjects;
    this.#isReplayed = parts.isReplayed;
  }

  /** Number of the next commit. */
  get next(): number {
    return this.#next;
  }

  /** The subject of the next commit. */
  get subject(): string {
    return this.#subjects.journal(this.id, this.#next % JOURNAL_SLOTS);
  }

  /** True when the next commit replaces one that nobody needs, and a takeover stays quick. */
  hasRoomFor(bytes: number): boolean {
    const { commits, bytes: held } = this.#size;
    return (
      commits < JOURNAL_SLOTS &&
      held + bytes <= JOURNAL_BYTES_MAX &&
      this.#pending.size < JOURNAL_OWNERS_MAX
    );
  }

  /** True when its commits should be written before more come. */
  get isHalfFull(): boolean {
    const { commits, bytes } = this.#size;
    return (
      commits * 2 > JOURNAL_SLOTS ||
      bytes * 2 > JOURNAL_BYTES_MAX ||
      this.#pending.size * 2 > JOURNAL_OWNERS_MAX
    );
  }

  /** True when nobody needs any of its commits. */
  get isEmpty(): boolean {
    this.#settle();
    return this.#pending.size === 0 && this.#owed.size === 0;
  }

  /** True when all commits before this number are written, but for lost shards, and the stored note says so. */
  isWrittenBelow(number: number): boolean {
    return this.#below >= number && this.#noted >= number;
  }

  /** The oldest commit that a host needs, or the next one. */
  get oldest(): number {
    this.#settle();
    return Math.min(this.#below, ...this.#owed.values());
  }

  pendingOf(owner: string): Pending | undefined {
    return this.#pending.get(owner);
  }

  holds(shard: Shard): boolean {
    return this.#pending.values().some((pending) => pending.shard === shard);
  }

  /** The next commit, as it is stored. The texts are JSON already. */
  encode(entries: readonly JournalEntry[]): string {
    const key = (subject: string) => JSON.stringify(this.#subjects.bucketKey(subject));
    const texts = entries.map(({ shard, owner, puts }) => {
      const put: string[] = [];
      const removed: string[] = [];
      for (const [subject, text] of puts) {
        if (text === null) removed.push(key(subject));
        else put.push(`${key(subject)}:${text}`);
      }
      const owned = `"shard":${shard.number},"owner":${JSON.stringify(owner)}`;
      return `{${owned},"puts":{${put.join()}},"removed":[${removed.join()}]}`;
    });
    return `{"number":${this.#next},"entries":[${texts.join()}]}`;
  }

  /** The next commit is stored. */
  record(sequence: number, bytes: number, entries: readonly JournalEntry[]): void {
    const number = this.#number(sequence, bytes);
    for (const entry of entries) {
      // The shard's next owner has read the commit here, or will.
      if (entry.shard.status === "gone") this.#owe(entry.shard, number);
      else this.#add(entry, number, sequence);
    }
  }

  /** Whether the next commit is stored is unknown. */
  skip(shards: Iterable<Shard>): void {
    const number = this.#number(this.#sequenceOf(this.#next - 1), 0);
    for (const shard of shards) this.#owe(shard, number);
  }

  /** This host has lost the shard. */
  drop(shard: Shard): void {
    for (const [owner, pending] of this.#pending) {
      if (pending.shard !== shard) continue;
      this.#pending.delete(owner);
      this.#owe(shard, pending.oldest);
    }
  }

  /** Removes puts that are written. Other puts of their owners are still pending. */
  absorbPuts(entries: readonly JournalEntry[]): void {
    for (const { owner, puts } of entries) {
      for (const subject of puts.keys()) this.#pending.get(owner)?.puts.delete(subject);
    }
  }

  /** The owner's value is written, with all that was pending beside it. */
  absorb(owner: string): void {
    this.#pending.delete(owner);
  }

  /** The changes that are pending for the longest, of one owner at least, and the note to store with them. */
  checkpoint(messagesMax: number): { pending: Pending[]; note: StoredNote } {
    const pending: Pending[] = [];
    let messages = 0;
    let below = this.#next;
    for (const one of this.#pending.values()) {
      messages += one.puts.size;
      if (pending.length > 0 && messages > messagesMax) {
        below = one.oldest;
        break;
      }
      pending.push(one);
    }
    this.#settle();
    const oldest = Math.min(below, ...this.#owed.values());
    const lost = Object.fromEntries(
      [...this.#owed].map(([{ number: shard }, number]) => [shard, number]),
    );
    return { pending, note: { below, from: this.#sequenceOf(oldest - 1) + 1, lost } };
  }

  /** The checkpoint is stored. */
  written({ pending, note }: { pending: readonly Pending[]; note: StoredNote }): void {
    for (const one of pending) {
      if (this.#pending.get(one.owner) === one) this.#pending.delete(one.owner);
    }
    this.#noted = note.below;
  }

  /** The oldest commit that this host has to write, or the next one. */
  get #below(): number {
    const [first] = this.#pending.values();
    return first?.oldest ?? this.#next;
  }

  get #size(): { commits: number; bytes: number } {
    const { oldest } = this;
    const bytes = this.#bytesUpTo(this.#next - 1) - this.#bytesUpTo(oldest - 1);
    return { commits: this.#next - oldest, bytes };
  }

  #number(sequence: number, bytes: number): number {
    const number = this.#next;
    const bytesSoFar = this.#bytesUpTo(number - 1) + bytes;
    this.#commits[number % COMMITS_KNOWN] = { sequence, bytesSoFar };
    this.#next += 1;
    return number;
  }

  #sequenceOf(number: number): number {
    return number < 0 ? 0 : (this.#commits[number % COMMITS_KNOWN]?.sequence ?? 0);
  }

  #bytesUpTo(number: number): number {
    return number < 0 ? 0 : (this.#commits[number % COMMITS_KNOWN]?.bytesSoFar ?? 0);
  }

  #owe(shard: Shard, number: number): void {
    this.#owed.set(shard, Math.min(this.#owed.get(shard) ?? number, number));
  }

  #settle(): void {
    for (const shard of this.#owed.keys()) if (this.#isReplayed(shard)) this.#owed.delete(shard);
  }

  #add({ shard, owner, puts }: JournalEntry, number: number, sequence: number): void {
    const known = this.#pending.get(owner);
    const pending = known ?? { shard, owner, puts: new Map(), oldest: number, sequence };
    pending.sequence = sequence;
    layOver(pending.puts, puts);
    if (!known) this.#pending.set(owner, pending);
  }
}

/** The commit before the oldest needed one tells where the reading begins. */
const COMMITS_KNOWN = JOURNAL_SLOTS + 1;

/** Adds later puts to earlier ones; the last put of a subject counts and stands last. */
export function layOver(earlier: Puts, later: Puts): void {
  for (const [subject, text] of later) {
    earlier.delete(subject);
    earlier.set(subject, text);
  }
}

export const shardsOf = (entries: readonly JournalEntry[]) =>
  new Set(entries.map(({ shard }) => shard));

/** The writes that bring the puts to their keys, under this fence and with these headers. */
export function writesOf(
  subjects: StateSubjects,
  fence: Write["expect"],
  puts: Puts,
  headers: Readonly<Record<string, string>> = {},
): Write[] {
  return Array.from(puts, ([subject, text]) => ({
    subject,
    payload: text ?? "",
    headers: { ...(text === null ? REMOVED : scheduleOf(subjects, subject, text)), ...headers },
    ...(fence && { expect: fence }),
  }));
}
