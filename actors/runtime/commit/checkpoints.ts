/**
 * Writes the commits of a host's journal to their keys: CHECKPOINT_MS after a commit, or earlier if the journal is
 * half full or a caller waits. Commits continue meanwhile. Each checkpoint expects the previous one, so that a late
 * checkpoint changes nothing.
 */
import type { Logger } from "pino";
import { BATCH_BYTES_MAX, CHECKPOINT_MS } from "../../../schemas/limits.ts";
import type { Clock } from "../lib/clock.ts";
import type { Shard } from "../shards/shard.ts";
import { type Chain, ChainLost } from "./chain.ts";
import type { Journal } from "./journal.ts";

/** Limits the messages of one checkpoint. Other writes of the stream wait about 8 ms for a checkpoint of this size. */
const CHECKPOINT_MESSAGES_MAX = 256;

interface CheckpointsParts {
  clock: Clock;
  logger: Logger;
  journal: Journal;
  chain: Chain;
  /** Called when the host can write no more checkpoints under its name. */
  lost(error: ChainLost): void;
}

export class Checkpoints {
  readonly #parts: CheckpointsParts;
  readonly #stopped = new AbortController();
  /** Checkpoints are written until the keys hold all journal messages before this number. */
  #below = 0;
  #isScheduled = false;
  #isRunning = false;
  /** True after a failure, until the next checkpoint is due. */
  #isPaused = false;
  /** Callers that wait until commits are in their keys, or until the host continues under another name. */
  #waiting: { isDone: () => boolean; done: () => void }[] = [];

  constructor(parts: CheckpointsParts) {
    this.#parts = parts;
  }

  /** Schedules a checkpoint for a commit that the journal has stored. */
  committed(): void {
    if (this.#parts.journal.isHalfFull) this.#demand();
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { signal } = this.#stopped;
    void this.#parts.clock.wait(CHECKPOINT_MS, signal).then(() => {
      this.#isScheduled = false;
      this.#isPaused = false;
      if (!signal.aborted) this.#demand();
    });
  }

  /** Resolves when the journal has room for another commit. */
  room(): Promise<void> {
    return this.#until(() => this.#parts.journal.hasRoom);
  }

  /** Resolves when an actor's keys hold all its commits. The actor must not be loaded before. */
  flushed(address: string): Promise<void> {
    return this.#until(() => !this.#parts.journal.isPending(address));
  }

  /** Resolves when the keys of a shard hold all its commits. */
  flushedShard(shard: Shard): Promise<void> {
    return this.#until(() => !this.#parts.journal.holds(shard));
  }

  /** Stops all checkpoints and releases all waiting callers. The next owners write the pending changes. */
  stop(): void {
    this.#stopped.abort();
    this.#notify();
  }

  #demand(): void {
    this.#below = this.#parts.journal.messages;
    void this.#run();
  }

  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const { journal } = this.#parts;
    while (!journal.isWrittenBelow(this.#below) && !this.#isPaused && !this.#isStopped) {
      await this.#write();
      this.#notify();
    }
    this.#isRunning = false;
  }

  async #write(): Promise<void> {
    const { journal, chain, logger, lost } = this.#parts;
    const limits = { messagesMax: CHECKPOINT_MESSAGES_MAX, bytesMax: BATCH_BYTES_MAX };
    const writes = journal.checkpoint(limits);
    try {
      await chain.append([JSON.stringify({ number: chain.number })], writes);
      journal.written();
    } catch (error) {
      journal.notWritten();
      if (error instanceof ChainLost) return lost(error);
      logger.error({ err: error }, "checkpoint refused, will try again");
      this.#isPaused = true;
      this.committed();
    }
  }

  get #isStopped(): boolean {
    return this.#stopped.signal.aborted;
  }

  #until(isDone: () => boolean): Promise<void> {
    if (isDone() || this.#isStopped) return Promise.resolve();
    this.#demand();
    return new Promise((done) => this.#waiting.push({ isDone, done }));
  }

  #notify(): void {
    this.#waiting = this.#waiting.filter(({ isDone, done }) => {
      if (!isDone() && !this.#isStopped) return true;
      done();
      return false;
    });
  }
}
