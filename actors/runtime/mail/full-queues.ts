/**
 * Decides which waiting tasks a host tries to queue while queues are full. A refused task of a full queue waits for the
 * tries of others, because each try costs a request to the bus.
 */
import { WriteRefused } from "../bus/atomic-batch.ts";
import type { Clock } from "../lib/clock.ts";
import type { OutboxEntry } from "../shards/outbox.ts";
import type { Shard } from "../shards/shard.ts";

/** Pause after a refusal, in which workers may drain the queue. They take tens of tasks per second from a lane. */
export const FULL_PAUSE_MS = 100;
/** Time after its last refusal after which a queue no longer counts as full. */
const FULL_KNOWN_MS = 10_000;

/** A queue that has refused a task. */
interface FullQueue {
  /** Monotonic time of the last refusal. */
  refusedAt: number;
  isPaused: boolean;
  /** How many refused tasks the next round may try: one after a refusal, and twice as many after each round without. */
  tries: number;
  /** The shards with tasks for the queue. */
  shards: Set<Shard>;
}

/** The full queues of which a round tries tasks, and how many of each. */
export type Round = Map<FullQueue, number>;

interface FullQueuesParts {
  clock: Clock;
  /** Returns the subject of a task's queue. */
  subjectOf(entry: OutboxEntry): string;
  /** Called when tasks of these shards may be tried again. */
  resume(shards: readonly Shard[]): void;
}

export class FullQueues {
  readonly #parts: FullQueuesParts;
  /** By subject. */
  readonly #queues = new Map<string, FullQueue>();
  readonly #subjects = new WeakMap<OutboxEntry, string>();
  /**
   * Tasks that are certainly not in their queue. Another task, whose last try had an unknown outcome or that an earlier
   * owner of the shard may have queued, is tried after each pause. So it comes again within the duplicate window of the
   * stream, which then recognizes it.
   */
  readonly #refused = new WeakSet<OutboxEntry>();

  constructor(parts: FullQueuesParts) {
    this.#parts = parts;
  }

  /** Returns whether a round tries this task, and counts the task in the round. */
  mayTry(shard: Shard, entry: OutboxEntry, round: Round): boolean {
    const full = this.#find(entry);
    if (!full) return true;
    full.shards.add(shard);
    if (full.isPaused) return false;
    const tried = round.get(full) ?? 0;
    if (this.#refused.has(entry) && tried >= full.tries) return false;
    round.set(full, tried + 1);
    return true;
  }

  /**
   * Called when the queue of a task has refused it, or when the outcome is unknown. Begins a pause. Returns false if the
   * queue is paused already.
   */
  refused(shard: Shard, entry: OutboxEntry, error: unknown): boolean {
    if (error instanceof WriteRefused && !error.inFlight) this.#refused.add(entry);
    const full = this.#find(entry) ?? this.#add(entry);
    full.refusedAt = this.#parts.clock.monotonic();
    full.tries = 1;
    full.shards.add(shard);
    if (full.isPaused) return false;
    full.isPaused = true;
    void this.#parts.clock.wait(FULL_PAUSE_MS).then(() => {
      full.isPaused = false;
      this.#resume(full);
    });
    return true;
  }

  /** Called at the end of a round. A queue that has refused nothing gets more tasks at once. */
  endRound(round: Round): void {
    for (const full of round.keys()) {
      if (full.isPaused) continue;
      full.tries *= 2;
      this.#resume(full);
    }
  }

  #resume(full: FullQueue): void {
    for (const shard of full.shards) if (shard.status === "gone") full.shards.delete(shard);
    this.#parts.resume([...full.shards]);
  }

  #find(entry: OutboxEntry): FullQueue | undefined {
    if (this.#queues.size === 0) return undefined;
    return this.#queues.get(this.#subjectOf(entry));
  }

  #add(entry: OutboxEntry): FullQueue {
    const now = this.#parts.clock.monotonic();
    for (const [subject, { refusedAt, isPaused }] of this.#queues) {
      if (!isPaused && now - refusedAt > FULL_KNOWN_MS) this.#queues.delete(subject);
    }
    const full = { refusedAt: now, isPaused: false, tries: 1, shards: new Set<Shard>() };
    this.#queues.set(this.#subjectOf(entry), full);
    return full;
  }

  /** The subject is computed once: thousands of tasks may wait, and each look at them needs it. */
  #subjectOf(entry: OutboxEntry): string {
    const known = this.#subjects.get(entry);
    if (known !== undefined) return known;
    const subject = this.#parts.subjectOf(entry);
    this.#subjects.set(entry, subject);
    return subject;
  }
}
