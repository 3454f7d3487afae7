/** The journal and checkpoints of this host in one bucket, under the host's current name. */
import type { Logger } from "pino";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import type { Shard } from "../shards/shard.ts";
import { Chain, ChainLost } from "./chain.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Journal, type JournalEntry } from "./journal.ts";

interface HostJournalParts {
  bus: Bus;
  subjects: StateSubjects;
  clock: Clock;
  logger: Logger;
  /** The current name of the host. */
  hostId(): string;
  /**
   * Called when the host must continue under another name: its journal is sealed, or the outcome of a write is unknown.
   */
  lost(error: ChainLost): void;
}

interface Opened {
  journal: Journal;
  commits: Chain;
  checkpoints: Checkpoints;
}

export class HostJournal {
  readonly #parts: HostJournalParts;
  #opened: Opened | undefined;
  #opening: { id: string; opened: Promise<void> } | undefined;

  constructor(parts: HostJournalParts) {
    this.#parts = parts;
  }

  /**
   * Writes the first messages of this name's journal and checkpoints. Only then may the host take a shard under the
   * name. From then on every write expects a message, so no write succeeds after the journal was sealed and removed.
   */
  async open(id: string): Promise<void> {
    if (this.#opening?.id !== id) this.#opening = { id, opened: this.#open(id) };
    const { opened } = this.#opening;
    try {
      await opened;
    } catch (error) {
      if (this.#opening?.opened === opened) this.#opening = undefined;
      throw error;
    }
  }

  /** True when the shard was taken under the name of the open journal. */
  isOf(shard: Shard): boolean {
    return this.#opened?.journal.id === shard.host;
  }

  /** True when a commit may be stored. */
  get hasRoom(): boolean {
    return this.#opened?.journal.hasRoom ?? true;
  }

  /** True when all commits under the current name are in their keys. */
  get isEmpty(): boolean {
    return this.#opened?.journal.isEmpty ?? true;
  }

  /** True when an earlier commit has put this subject of the owner, and the key does not hold that put yet. */
  isPending(owner: string, subject: string): boolean {
    return this.#opened?.journal.isPending(owner, subject) ?? false;
  }

  async room(): Promise<void> {
    await this.#opened?.checkpoints.room();
  }

  async flushed(address: string): Promise<void> {
    await this.#opened?.checkpoints.flushed(address);
  }

  async flushedShard(shard: Shard): Promise<void> {
    await this.#opened?.checkpoints.flushedShard(shard);
  }

  /**
   * True unless all commits of the shard are in their keys. Also true for a shard of another journal, because its
   * commits are unknown.
   */
  holds(shard: Shard): boolean {
    if (!this.#opened) return false;
    return !this.isOf(shard) || this.#opened.journal.holds(shard);
  }

  /**
   * Stores the entries as one commit. Awaits `beside` before the entries count as pending; `beside` may remove puts
   * from the entries. Rejects as `Chain.append` does.
   */
  async commit(entries: readonly JournalEntry[], beside: Promise<void>): Promise<void> {
    if (!this.#opened) throw new Error("Cannot commit: the journal is not open");
    const { journal, commits, checkpoints } = this.#opened;
    const payloads = journal.encode(commits.number, commits.last, entries);
    const [stored] = await Promise.allSettled([commits.append(payloads), beside]);
    if (stored.status === "rejected") {
      const { reason } = stored;
      // The host may have a new name by now; the error does not concern the new journal.
      if (reason instanceof ChainLost && this.#parts.hostId() === journal.id) {
        this.#parts.lost(reason);
      }
      throw reason;
    }
    journal.record(stored.value, payloads, entries);
    checkpoints.committed();
    const below = journal.takeUnneeded();
    if (below !== undefined) void this.#drop(journal.id, below);
  }

  /** Removes the messages before this sequence. If this fails, the stream's limit on messages removes them later. */
  async #drop(id: string, below: number): Promise<void> {
    const { bus, subjects, logger } = this.#parts;
    const filter = { filter: subjects.journal(id), seq: below };
    const { streams } = bus.jetstream;
    await bus.writeHold.held;
    await bus
      .whileConnected(() => streams.purge(subjects.journalStream, filter))
      .catch((error: unknown) => logger.warn({ err: error }, "old commits not removed"));
  }

  /** Stops the checkpoints. The next owners of the shards write the pending changes. */
  stop(): void {
    this.#opened?.checkpoints.stop();
  }

  async #open(id: string): Promise<void> {
    const { bus, subjects, clock, logger, hostId, lost } = this.#parts;
    const isOver = () => hostId() !== id;
    const refuseFormerName = () => {
      if (isOver()) throw new ChainLost(`Cannot open journal ${id}: the host has another name now`);
    };
    refuseFormerName();
    this.stop();
    const { stream, journalStream } = subjects;
    const commits = new Chain({
      ...{ bus, clock, isOver },
      ...{ stream: journalStream, subject: subjects.journal(id) },
    });
    const chain = new Chain({ bus, clock, isOver, stream, subject: subjects.checkpoint(id) });
    const first = { number: 0 };
    await Promise.all([
      commits.append([JSON.stringify({ ...first, from: 0, entries: [] })]),
      chain.append([JSON.stringify(first)]),
    ]);
    // The host may have a new name by now, whose journal may be open already. Do not replace that journal.
    refuseFormerName();
    const journal = new Journal({ id, subjects });
    const checkpoints = new Checkpoints({
      ...{ clock, logger, journal, chain },
      lost: (error) => !isOver() && lost(error),
    });
    this.#opened = { journal, commits, checkpoints };
  }
}
