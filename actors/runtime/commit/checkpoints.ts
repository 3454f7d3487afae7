/** Writes what a host's journal holds of a bucket where it belongs: a while after each commit, or when somebody waits. */
import { CHECKPOINT_MESSAGES_MAX, CHECKPOINT_MS } from "../../../schemas/journal-limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import { writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { Shard } from "../shards/shard.ts";
import { CONTENT_HEADER, Journal, type JournalEntry, shardsOf, writesOf } from "./journal.ts";

/** What a journal needs to know of its host. */
export interface JournalHost {
  /** The id that epochs name. */
  readonly id: string;
  /** A later owner has written down what this host's journal held of a lost shard. */
  isReplayed(shard: Shard): boolean;
}

interface CheckpointsParts {
  bus: Bus;
  subjects: StateSubjects;
  clock: Clock;
  host: JournalHost;
  /** `write` is to be called as soon as no commit is under way. */
  isDue(): void;
  /** Finds out which of the shards are lost, and drops those. */
  failed(shards: ReadonlySet<Shard>, tries: number, error: unknown): Promise<unknown>;
}

export class Checkpoints {
  readonly #parts: CheckpointsParts;
  readonly #stopped = new AbortController();
  #journal: Journal | undefined;
  /** Commits before this number are to be written down now. */
  #below = 0;
  #scheduled = false;
  /** Since the last success. Nothing is tried again before it is due by the clock. */
  #failures = 0;
  #paused = false;
  /** Who waits until something is written down, or not this host's any more. */
  #waiting: { isDone: () => boolean; done: () => void }[] = [];

  constructor(parts: CheckpointsParts) {
    this.#parts = parts;
  }

  /**
   * The one of the host's id. A host gets another id when it has lost all its shards: what the journal of the former id
   * holds is stored, and their next owners read it.
   */
  get journal(): Journal {
    const { host, subjects } = this.#parts;
    if (this.#journal?.id === host.id) return this.#journal;
    this.#below = 0;
    const isReplayed = (shard: Shard) => host.isReplayed(shard);
    this.#journal = new Journal({ id: host.id, subjects, isReplayed });
    return this.#journal;
  }

  /** True when there is something to write down now. */
  get isNow(): boolean {
    if (this.#paused) return false;
    const { journal } = this;
    if (journal.isHalfFull) this.#below = journal.next;
    return !journal.isWrittenBelow(this.#below);
  }

  /** A commit went into the journal: in a while it is written down. */
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

  /** Resolves when an actor's keys hold all that is committed of it: before that it must not be loaded. */
  flushed(address: string): Promise<void> {
    return this.#until(() => this.journal.pendingOf(address) === undefined);
  }

  /** Resolves when the keys of a shard hold all that is committed of it, or the shard is lost. */
  flushedShard(shard: Shard): Promise<void> {
    return this.#until(() => !this.journal.holds(shard));
  }

  /** Writes down what has waited for the longest, and the note that it is. No commit may be under way meanwhile. */
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
      // What others have by now need not be written; else whatever is wrong may pass.
      this.#paused = part.pending.every(({ shard }) => shard.status !== "gone");
      this.schedule();
    }
    this.#tell();
  }

  /** They are written with all that was pending of the same owners. */
  absorb(entries: readonly JournalEntry[]): void {
    for (const { owner } of entries) this.#journal?.absorb(owner);
    this.#tell();
  }

  /** The shard is not this host's any more. */
  drop(shard: Shard): void {
    this.#journal?.drop(shard);
    this.#tell();
  }

  /** Nothing is written down any more: what is pending is the next owner's. */
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
