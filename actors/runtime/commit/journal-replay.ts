/** Writes the commits that a former owner left in its journal to the keys of a shard that this host takes. */
import type { StateSubjects } from "../../../schemas/subjects.ts";
import { type Write, writeInBatches } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { readOnward } from "../bus/reads/read-onward.ts";
import type { Epoch, Source } from "../placement/epoch.ts";
import { isForgotten } from "../state/stored-actor.ts";
import { StoredSeal, sealChain } from "./chain.ts";
import { FirstJournals, readFirstJournal } from "./first-journals.ts";
import { layOver, type Puts, readPuts, StoredCommit, writesOf } from "./journal.ts";

/** By shard and epoch: the newest put of each key, from journal messages that may not be in their keys yet. */
type ReadJournal = Map<string, Puts>;

export class JournalReplay {
  readonly #bus: Bus;
  readonly #subjects: StateSubjects;
  readonly #first: FirstJournals;
  /**
   * Journals that this host has sealed and read. They never change again, and shards that are taken together share
   * them.
   */
  readonly #sealed = new Map<string, Promise<ReadJournal>>();

  constructor(bus: Bus, subjects: StateSubjects) {
    this.#bus = bus;
    this.#subjects = subjects;
    this.#first = new FirstJournals(bus, subjects);
  }

  /**
   * Seals the former owner's journal, and writes the shard's commits in it to the shard's keys. Callers may repeat the
   * call. `fence` is the epoch that this host has written to take the shard. `by` is the name of this host.
   */
  async replay(
    shard: number,
    fence: NonNullable<Write["expect"]>,
    { from, firstJournals }: Pick<Epoch, "from" | "firstJournals">,
    by: string,
  ): Promise<void> {
    if (firstJournals.length > 0) await this.#first.replay(shard, fence, firstJournals);
    if (!from) return;
    const read = await this.#seal(from.journal, by);
    const puts: Puts = read.get(keyOf(shard, from.epoch)) ?? new Map();
    await writeInBatches(this.#bus, writesOf(this.#subjects, puts), fence);
  }

  /** Returns whether the streams' leaders hold any message of a journal. */
  async exists(journal: string): Promise<boolean> {
    const { stream, journalStream, journal: of, checkpoint, firstJournal } = this.#subjects;
    const found = await Promise.all([
      this.#bus.readNextOfLeader(journalStream, of(journal), 1),
      this.#bus.readNextOfLeader(stream, checkpoint(journal), 1),
      this.#bus.readNextOfLeader(stream, firstJournal(journal), 1),
    ]);
    return found.some((message) => message !== undefined);
  }

  /** Frees the memory of a journal that this host has read. A later replay reads the journal again. */
  release(journal: string): void {
    this.#sealed.delete(journal);
  }

  /** Removes a journal that no host writes to and no epoch names. */
  async remove(journal: string): Promise<void> {
    const { stream, journalStream, journal: of, checkpoint, firstJournal } = this.#subjects;
    const { streams } = this.#bus.jetstream;
    await this.#bus.whileConnected(() =>
      Promise.all([
        streams.purge(journalStream, { filter: of(journal) }),
        streams.purge(stream, { filter: checkpoint(journal) }),
        streams.purge(stream, { filter: firstJournal(journal) }),
      ]),
    );
    this.release(journal);
  }

  async #seal(journal: string, by: string): Promise<ReadJournal> {
    const known = this.#sealed.get(journal);
    if (known) return known;
    const reading = this.#sealAndRead(journal, by);
    this.#sealed.set(journal, reading);
    reading.catch(() => this.#sealed.delete(journal));
    return reading;
  }

  /**
   * Seals the checkpoints first. Then no commit before the `from` of the journal is needed any more, and no later
   * checkpoint arrives.
   */
  async #sealAndRead(journal: string, by: string): Promise<ReadJournal> {
    const { stream, journalStream } = this.#subjects;
    const checkpoints = { stream, subject: this.#subjects.checkpoint(journal) };
    await sealChain(this.#bus, checkpoints, () => JSON.stringify({ sealedBy: by }));
    const commits = { stream: journalStream, subject: this.#subjects.journal(journal) };
    const seal = await sealChain(this.#bus, commits, (last) => {
      const { from } = last === undefined ? { from: 0 } : StoredCommit.parse(JSON.parse(last));
      return JSON.stringify({ sealedBy: by, from });
    });
    const { from } = StoredSeal.parse(JSON.parse(seal));
    const { read, isSealed } = await readJournal(this.#bus, this.#subjects, journal, from);
    if (!isSealed) throw new Error(`Cannot read journal ${journal}: its seal is missing`);
    return read;
  }
}

const keyOf = (shard: number, epoch: Source["epoch"]) => `${shard}/${epoch}`;

/**
 * Reads a journal from the stream up to its seal, its end, or the sequence `until`. The last commit names
 * the first message whose changes may be missing in their keys. The stream keeps all messages from there on. Earlier
 * messages may disappear, even between two reads.
 */
async function readJournal(
  bus: Bus,
  subjects: StateSubjects,
  journal: string,
  from: number,
  until = Number.POSITIVE_INFINITY,
): Promise<{ read: ReadJournal; isSealed: boolean }> {
  const { journalStream } = subjects;
  const filter = subjects.journal(journal);
  const commits: { sequence: number; entries: [key: string, puts: Puts][] }[] = [];
  let needed = from;
  let isSealed = false;
  for await (const message of readOnward(bus, journalStream, filter, from)) {
    if (message.seq > until) break;
    const stored: unknown = JSON.parse(message.string());
    isSealed = StoredSeal.safeParse(stored).success;
    if (isSealed) break;
    const commit = StoredCommit.parse(stored);
    needed = commit.from;
    const entries = commit.entries.map(
      (entry) => [keyOf(entry.shard, entry.epoch), readPuts(subjects, entry)] as [string, Puts],
    );
    commits.push({ sequence: message.seq, entries });
  }
  const read: ReadJournal = new Map();
  for (const { sequence, entries } of commits) {
    if (sequence < needed) continue;
    for (const [key, puts] of entries) {
      const known = read.get(key);
      if (!known) read.set(key, puts);
      else {
        dropVoidRows(known, puts);
        layOver(known, puts);
      }
    }
  }
  return { read, isSealed };
}

/**
 * Drops the rows that a later value of a forgotten actor makes void. If these rows were written now, they would count
 * as rows of the actor's new life.
 */
function dropVoidRows(earlier: Puts, later: Puts): void {
  for (const [subject, text] of later) {
    if (text === null || !isForgotten(text)) continue;
    for (const row of earlier.keys()) if (row.startsWith(`${subject}.=.`)) earlier.delete(row);
  }
}

/** Hosts that have a journal in a bucket, alive or not. */
export async function listJournals(bus: Bus, subjects: StateSubjects): Promise<string[]> {
  const found = await bus.subjectsOf(subjects.journalStream, subjects.journals);
  return [...found.map(subjects.lastToken), ...(await listFirstJournals(bus, subjects))];
}

async function listFirstJournals(bus: Bus, subjects: StateSubjects): Promise<string[]> {
  const found = await bus.subjectsOf(subjects.stream, subjects.firstJournals);
  return [...new Set(found.map((subject) => subjects.bucketKey(subject).split(".")[1] ?? ""))];
}

/** Subjects that any journal of a bucket names. Their newest values may not be in the bucket's keys yet. */
export async function journaledSubjects(bus: Bus, subjects: StateSubjects): Promise<Set<string>> {
  const named = new Set<string>();
  for (const subject of await bus.subjectsOf(subjects.journalStream, subjects.journals)) {
    const last = await bus.readLast(subjects.journalStream, subject);
    const from = StoredCommit.or(StoredSeal).safeParse(last?.json()).data?.from ?? 0;
    // Read only up to the last message found above, because a living host may commit faster than this function reads.
    const host = subjects.lastToken(subject);
    const { read } = await readJournal(bus, subjects, host, from, last?.seq);
    for (const puts of read.values()) for (const put of puts.keys()) named.add(put);
  }
  for (const journal of await listFirstJournals(bus, subjects)) {
    const read = await readFirstJournal(bus, subjects, journal);
    for (const { puts } of [...read.values()].flat()) {
      for (const subject of puts.keys()) named.add(subject);
    }
  }
  return named;
}
