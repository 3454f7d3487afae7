/**
 * What a host has committed in one bucket and not yet written where it belongs. Each commit is one message of the
 * journal, whatever it changed; a checkpoint then writes what has gathered in one batch. Who takes a shard over reads the
 * journals of its former owners (JournalReplay).
 */
import { z } from "zod";
import {
  JOURNAL_BYTES_MAX,
  JOURNAL_OWNERS_MAX,
  JOURNAL_SLOTS,
} from "../../../schemas/journal-limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Write } from "../bus/atomic-batch.ts";
import { REMOVED, scheduleOf } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";

/** On what a checkpoint or a replay wrote: the sequence of the journal's message whose content it is. */
export const CONTENT_HEADER = "Trunkline-Journal";

/** JSON texts by subject; `null` removes. */
export type Puts = Map<string, string | null>;

/** What one commit does to an actor, or to the outbox of a shard. */
export interface JournalEntry {
  shard: Shard;
  /** Key of its value in the bucket: `<kind>.<key>`, or `outbox.<shard>`. */
  owner: string;
  puts: Puts;
}

/** As it is stored; keys of the bucket in place of subjects, so that an operator can read it. */
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
 * What of a journal is written down: all commits before `below`, but for shards that were lost, all before the number that
 * stands there. Messages before the sequence `from` are needed by nobody.
 */
export const StoredNote = z.object({
  below: z.number(),
  from: z.number(),
  lost: z.record(z.string(), z.number()),
});
export type StoredNote = z.infer<typeof StoredNote>;

/** Of one owner, by several commits. */
export interface Pending extends JournalEntry {
  /** Numbers of the commits: the first that is not written down. */
  oldest: number;
  /** Sequence of the journal's message that changed it last. */
  sequence: number;
}

export class Journal {
  /** Of the host: epochs name it. */
  readonly id: string;
  readonly #subjects: StateSubjects;
  readonly #isReplayed: (shard: Shard) => boolean;
  /** By owner, in the order of `oldest`. */
  readonly #pending = new Map<string, Pending>();
  /** Shards that were lost with something pending, and the number of its oldest commit: the next owner reads from there. */
  readonly #owed = new Map<Shard, number>();
  /** By number, of those that are needed and the one before them: sequence, and bytes of all up to it. */
  readonly #commits: { sequence: number; bytesSoFar: number }[] = [];
  #next = 0;
  /** `below` of the stored note. */
  #noted = 0;

  constructor(parts: {
    id: string;
    subjects: StateSubjects;
    /** True when a later owner of the shard has written down what this journal held of it. */
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

  /** Where the next commit goes. */
  get subject(): string {
    return this.#subjects.journal(this.id, this.#next % JOURNAL_SLOTS);
  }

  /** True when the next commit takes the place of one that nobody needs, and a takeover stays quick. */
  hasRoomFor(bytes: number): boolean {
    const { commits, bytes: held } = this.#size;
    return (
      commits < JOURNAL_SLOTS &&
      held + bytes <= JOURNAL_BYTES_MAX &&
      this.#pending.size < JOURNAL_OWNERS_MAX
    );
  }

  /** True when it is better written down before more comes. */
  get isHalfFull(): boolean {
    const { commits, bytes } = this.#size;
    return (
      commits * 2 > JOURNAL_SLOTS ||
      bytes * 2 > JOURNAL_BYTES_MAX ||
      this.#pending.size * 2 > JOURNAL_OWNERS_MAX
    );
  }

  /** True when nobody needs it. */
  get isEmpty(): boolean {
    this.#settle();
    return this.#pending.size === 0 && this.#owed.size === 0;
  }

  /** True when all commits before this number are written down, but for lost shards, and the stored note says so. */
  isWrittenBelow(number: number): boolean {
    return this.#below >= number && this.#noted >= number;
  }

  /** The oldest commit that somebody needs, or the next one. */
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
      // Whoever has the shard by now read it here, or will.
      if (entry.shard.status === "gone") this.#owe(entry.shard, number);
      else this.#add(entry, number, sequence);
    }
  }

  /** Whether the next commit is stored is not known. */
  skip(shards: Iterable<Shard>): void {
    const number = this.#number(this.#sequenceOf(this.#next - 1), 0);
    for (const shard of shards) this.#owe(shard, number);
  }

  /** This host does not own the shard any more. */
  drop(shard: Shard): void {
    for (const [owner, pending] of this.#pending) {
      if (pending.shard !== shard) continue;
      this.#pending.delete(owner);
      this.#owe(shard, pending.oldest);
    }
  }

  /** These puts are written, and what else is pending of their owners is not. */
  absorbPuts(entries: readonly JournalEntry[]): void {
    for (const { owner, puts } of entries) {
      for (const subject of puts.keys()) this.#pending.get(owner)?.puts.delete(subject);
    }
  }

  /** The owner's value and all that was pending beside it are written. */
  absorb(owner: string): void {
    this.#pending.delete(owner);
  }

  /** What is pending for the longest, one owner at least; and the note to store with it. */
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

  /** The oldest commit that this host is to write down, or the next one. */
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

/** The one before the oldest that is needed tells where the reading begins. */
const COMMITS_KNOWN = JOURNAL_SLOTS + 1;

/** Takes the later puts among the earlier ones; what was put last stands last. */
export function layOver(earlier: Puts, later: Puts): void {
  for (const [subject, text] of later) {
    earlier.delete(subject);
    earlier.set(subject, text);
  }
}

export const shardsOf = (entries: readonly JournalEntry[]) =>
  new Set(entries.map(({ shard }) => shard));

/** The puts where they belong, under the epoch the shard has; all of them have these headers. */
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
