/**
 * Reads journals of the first release, which are in the bucket's own stream, with one subject for each of 512 slots.
 * The first host that takes a shard from that release writes their commits to the shard's keys.
 */
import { z } from "zod";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import { type Write, writeInBatches } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { layOver, type Puts, readPuts, writesOf } from "./journal.ts";

/** The header of a message that was copied from a journal: the sequence of the source message in the journal. */
const CONTENT_HEADER = "Trunkline-Journal";

const FirstCommit = z.object({
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
 * States which commits of a journal are in their keys: all before `below`, and for a lost shard all before its number
 * in `lost`. No reader needs messages before the sequence `from`.
 */
const FirstNote = z.object({
  below: z.number(),
  from: z.number(),
  lost: z.record(z.string(), z.number()),
});

/** Maximum number of concurrent reads of a takeover. */
const JOURNAL_READS_MAX = 64;

/** The changes of one commit to the keys of one owner. */
interface ReadEntry {
  owner: string;
  puts: Puts;
  /** Sequence of the journal's message. */
  sequence: number;
}

/** Entries by shard. */
type ReadJournal = Map<number, ReadEntry[]>;

export class FirstJournals {
  readonly #bus: Bus;
  readonly #subjects: StateSubjects;
  /** Limits the reads for all shards that are taken together. */
  readonly #asked = new Semaphore(JOURNAL_READS_MAX);
  /** By journal: the current read, and the read that begins after it. */
  readonly #readings = new Map<string, { now: Promise<unknown>; next?: Promise<ReadJournal> }>();

  constructor(bus: Bus, subjects: StateSubjects) {
    this.#bus = bus;
    this.#subjects = subjects;
  }

  /**
   * Writes the missing commits of a shard to its keys. Callers may repeat the call: it does not change values that
   * are already written or were changed later. `fence` is the fence of the new epoch.
   */
  async replay(
    shard: number,
    fence: NonNullable<Write["expect"]>,
    journals: readonly string[],
  ): Promise<void> {
    const read = await Promise.all(journals.map((journal) => this.#read(journal)));
    const owners = new Map<string, ReadEntry[]>();
    for (const entry of read.flatMap((ofShard) => ofShard.get(shard) ?? [])) {
      const entries = owners.get(entry.owner);
      if (entries) entries.push(entry);
      else owners.set(entry.owner, [entry]);
    }
    const writes = await Promise.all(
      Array.from(owners, ([owner, entries]) => this.#missing(owner, entries)),
    );
    await writeInBatches(this.#bus, writes.flat(), fence);
  }

  /**
   * Returns the writes of the changes that an owner's keys still lack. A host writes a value after all its rows and
   * reminders, so the content header of the value covers all of them.
   */
  async #missing(owner: string, entries: ReadEntry[]): Promise<Write[]> {
    const { stream } = this.#subjects;
    const value = this.#subjects.ofBucketKey(owner);
    const stored = await this.#asked.run(() => this.#bus.readLast(stream, value));
    // A value that was written directly has no content header. It includes all pending changes, so its own sequence
    // counts.
    const content = Number(stored?.header.get(CONTENT_HEADER) || stored?.seq || 0);
    const missing = entries
      .filter(({ sequence }) => sequence > content)
      .sort((a, b) => a.sequence - b.sequence);
    const puts: Puts = new Map();
    for (const entry of missing) layOver(puts, entry.puts);
    const from = { [CONTENT_HEADER]: String(missing.at(-1)?.sequence) };
    return writesOf(this.#subjects, puts).map((write) => ({
      ...write,
      headers: { ...write.headers, ...from },
    }));
  }

  /**
   * Reads a journal. The read begins after this call, so it sees all commits of shards whose epoch is written. Callers
   * share the read.
   */
  #read(journal: string): Promise<ReadJournal> {
    const known = this.#readings.get(journal);
    if (known?.next) return known.next;
    const readings = known ?? { now: Promise.resolve() };
    const next = readings.now.then(() => {
      const now = readFirstJournal(this.#bus, this.#subjects, journal);
      const over = () => {};
      this.#readings.set(journal, { now: now.then(over, over) });
      return now;
    });
    this.#readings.set(journal, { ...readings, next });
    return next;
  }
}

/**
 * Reads the commits of a host's journal from the stream's leader, by shard, except commits that its note lists as
 * written.
 */
export async function readFirstJournal(
  bus: Bus,
  subjects: StateSubjects,
  journal: string,
): Promise<ReadJournal> {
  const { stream } = subjects;
  const stored = await bus.readLast(stream, subjects.firstJournalNote(journal));
  const note = stored ? FirstNote.parse(stored.json()) : { below: 0, from: 0, lost: {} };
  const read: ReadJournal = new Map();
  const filter = subjects.firstJournal(journal);
  let message = await bus.readNextOfLeader(stream, filter, note.from);
  for (; message; message = await bus.readNextOfLeader(stream, filter, message.seq + 1)) {
    if (message.subject === subjects.firstJournalNote(journal)) continue;
    const { number, entries } = FirstCommit.parse(message.json());
    for (const { shard, owner, ...stored } of entries) {
      if (number < (note.lost[shard] ?? note.below)) continue;
      const entry = { owner, sequence: message.seq, puts: readPuts(subjects, stored) };
      const ofShard = read.get(shard);
      if (ofShard) ofShard.push(entry);
      else read.set(shard, [entry]);
    }
  }
  return read;
}
