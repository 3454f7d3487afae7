/**
 * Writes the commits in a host's journal to the keys of their actors: a while after each commit, or when a caller waits
 * for it.
 */
import { CHECKPOINT_MS } from "../../../schemas/limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { Shard } from "../shards/shard.ts";
import { CONTENT_HEADER, Journal, type JournalEntry, shardsOf, writesOf } from "./journal.ts";

/** Messages of one checkpoint batch: some 8 ms, for which commits wait. */
const CHECKPOINT_MESSAGES_MAX = 256;

/** The facts about its host that a journal needs. */
export interface JournalHost {
  /** The id that epochs name. */
  readonly id: string;
  /** True when a later owner has written the shard's commits in this host's journal to their keys. */
  isReplayed(shard: Shard): boolean;
}

interface CheckpointsParts {
  bus: Bus;
  subjects: StateSubjects;
  clock: Clock;
  host: JournalHost;
  /** Calls for `write` as soon as no commit is under way. */
  isDue(): void;
  /** Finds out which of the shards are lost, and drops those. */
  failed(shards: ReadonlySet<Shard>, tries: number, error: unknown): Promise<unknown>;
}

export class Checkpoints {
  readonly #parts: CheckpointsParts;
  readonly #stopped = new AbortController();
  #journal: Journal | undefined;
  /** Commits before this number are to be written now. */
  #below = 0;
  #scheduled = false;
  /** Failures since the last success. After one, nothing is tried again before the next checkpoint is due. */
  #failures = 0;
  #paused = false;
  /** Callers that wait until commits are written, or are another host's. */
  #waiting: { isDone: () => boolean; done: () => void }[] = [];

  constructor(parts: CheckpointsParts) {
    this.#parts = parts;
  }

  /**
   * The journal under the host's present id. A host gets a new id when it has lost all its shards. The commits in the
   * former journal are stored, and the next owners read them.
   */
  get journal(): Journal {
    const { host, subjects } = this.#parts;
    if (this.#journal?.id === host.id) return this.#journal;
    this.#below = 0;
    const isReplayed = (shard: Shard) => host.isReplayed(shard);
    this.#journal = new Journal({ id: host.id, subjects, isReplayed });
    return this.#journal;
  }

  /** True when there are commits to write now. */
  get isNow(): boolean {
    if (this.#paused) return false;
    const { journal } = this;
    if (journal.isHalfFull) this.#below = journal.next;
    return !journal.isWrittenBelow(this.#below);
  }

  /** A commit went into the journal: it is written after CHECKPOINT_MS. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const { signal } = this.#stopped;
    void this.#parts.clock.wait(CHECKPOINT_MS, signal).then(() => {
      this.#scheduled = false;
      this.#paused = false;
      if (!signal.aborted) this.#demand();
    });
  }

  /** Resolves when an actor's keys hold all its commits. The actor must not be loaded before. */
  flushed(address: string): Promise<void> {
    return this.#until(() => this.journal.pendingOf(address) === undefined);
  }

  /** Resolves when the keys of a shard hold all its commits, or the shard is lost. */
  flushedShard(shard: Shard): Promise<void> {
    return this.#until(() => !this.journal.holds(shard));
  }

  /**
   * Writes the commits that have waited longest, and the note that they are written. No commit may be under way
   * meanwhile.
   */
  async write(): Promise<void> {
    const { journal } = this;
    const { bus, subjects } = this.#parts;
    const part = journal.checkpoint(CHECKPOINT_MESSAGES_MAX);
    const writes = part.pending.flatMap(({ shard, puts, sequence }) =>
      writesOf(subjects, shard.fence, puts, { [CONTENT_HEADER]: String(sequence) }),
    );
    const payload = JSON.stringify(part.note);
    writes.push({ subject: subjects.journalNote(journal.id), payload });
    try {
      await writeAtomically(bus, writes);
      journal.written(part);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      await this.#parts.failed(shardsOf(part.pending), this.#failures, error);
      // Entries of lost shards need not be written. Any other fault may pass by itself.
      this.#paused = part.pending.every(({ shard }) => shard.status !== "gone");
      this.schedule();
    }
    this.#tell();
  }

  /** The entries are written, with all that was pending of the same owners. */
  absorb(entries: readonly JournalEntry[]): void {
    for (const { owner } of entries) this.#journal?.absorb(owner);
    this.#tell();
  }

  /** This host has lost the shard. */
  drop(shard: Shard): void {
    this.#journal?.drop(shard);
    this.#tell();
  }

  /** Ends all checkpoints: the next owners write what is pending. */
  stop(): void {
    this.#stopped.abort();
  }

  #demand(): void {
    this.#below = this.journal.next;
    if (this.isNow) this.#parts.isDue();
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone()) return Promise.resolve();
    this.#demand();
    return new Promise((done) => this.#waiting.push({ isDone, done }));
  }

  #tell(): void {
    if (this.#waiting.length === 0) return;
    this.#waiting = this.#waiting.filter(({ isDone, done }) => {
      if (!isDone()) return true;
      done();
      return false;
    });
  }
}
