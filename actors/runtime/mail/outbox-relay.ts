/**
 * Publishes the entries of outboxes: tasks to their lanes, mail to the streams of mail. The relay writes one batch to
 * each stream. The batch contains the mail to that stream's shards, and moves the `sent` marks of the senders' shards
 * by compare-and-set. So a stream holds each mail only once, even if several hosts publish the mail, or one host
 * publishes it repeatedly.
 */
import type { Logger } from "pino";
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { allMail, mailIn, mailOf } from "../../../schemas/split-streams.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import { type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { NOTHING_SENT, type OutboxEntry, SentMark, type StreamOf } from "../shards/outbox.ts";
import type { Shard } from "../shards/shard.ts";
import { queueTask } from "../tasks/queue-task.ts";

/** Pause before a task is queued again in a full lane. Workers take tens of tasks per second from a lane. */
const LANE_RETRY_MS = 100;

interface Group {
  shard: Shard;
  entries: OutboxEntry[];
}

export class OutboxRelay {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #drained: () => void;
  readonly #owns: (shard: Shard) => Promise<boolean>;
  readonly #reloaded: (shard: Shard) => void;
  readonly #shards = new Set<Shard>();
  /** Tasks that are in their lanes and not yet marked as sent. */
  readonly #published = new WeakSet<OutboxEntry>();
  /**
   * Shards with a task that could not be queued, for example because its queue is full. The shard's other tasks wait
   * with this task, but its mail does not.
   */
  readonly #blocked = new Set<Shard>();
  #running = false;

  /**
   * Calls `drained` when outboxes may have more room, and `reloaded` when MAIL may hold more mail from a shard than
   * this host knows. `owns` returns whether this host owns the shard now.
   */
  constructor(parts: {
    bus: Bus;
    clock: Clock;
    logger: Logger;
    drained: () => void;
    owns: (shard: Shard) => Promise<boolean>;
    reloaded: (shard: Shard) => void;
  }) {
    this.#bus = parts.bus;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#drained = parts.drained;
    this.#owns = parts.owns;
    this.#reloaded = parts.reloaded;
  }

  /** Called when the shard's outbox has entries to publish. */
  add(shard: Shard): void {
    this.#shards.add(shard);
    if (this.#running) return;
    // Set first, because `#run` resets it before it returns if there is nothing to publish.
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    for (let groups = this.#take(); groups.length > 0; groups = this.#take()) {
      try {
        const ready = await this.#publishTasks(groups);
        if (ready.length > 0) await this.#publishMail(ready);
        this.#drained();
      } catch (error) {
        this.#logger.warn({ err: error }, "outbox not published, will try again");
        await this.#clock.wait(LANE_RETRY_MS);
        await this.#reload(groups);
      }
    }
    this.#running = false;
  }

  #take(): Group[] {
    const groups: Group[] = [];
    let count = 0;
    let bytes = 0;
    for (const shard of [...this.#shards]) {
      const waiting = shard.status === "gone" ? [] : this.#publishable(shard);
      const entries: OutboxEntry[] = [];
      for (const entry of waiting) {
        // Besides its entries, each shard needs one message of the batch for its `sent` mark.
        if (count + entries.length + groups.length + 2 > BATCH_MESSAGES_MAX) break;
        if (bytes > BATCH_BYTES_MAX) break;
        entries.push(entry);
        bytes += entry.bytes;
      }
      if (waiting.length > 0 && entries.length === 0) break;
      // A shard that was served goes behind the other shards, so that a shard that is never empty delays no other.
      this.#shards.delete(shard);
      if (entries.length === 0) continue;
      this.#shards.add(shard);
      groups.push({ shard, entries });
      count += entries.length;
    }
    return groups;
  }

  /**
   * Returns the entries to publish: no mail that was handed over directly, no other mail to the same actors, and no
   * tasks of a blocked shard.
   */
  #publishable(shard: Shard): readonly OutboxEntry[] {
    const { entries } = shard.outbox;
    const { direct } = shard.sends;
    const isBlocked = this.#blocked.has(shard);
    if (direct.size === 0 && !isBlocked) return entries;
    const handed = new Set(Array.from(direct.values(), ({ address }) => address));
    return entries.filter(({ message: { to, kind, key } }) =>
      to === "worker" ? !isBlocked : !handed.has(addressOf(kind, key)),
    );
  }

  /** Publishes the groups' tasks. Returns the groups without the tasks that were refused. */
  async #publishTasks(groups: Group[]): Promise<Group[]> {
    const ready = groups.map(async ({ shard, entries }) => {
      const results = await Promise.allSettled(
        entries.map(async (entry) => {
          if (entry.message.to !== "worker" || this.#published.has(entry)) return;
          await this.#publishTask(shard, entry);
          this.#published.add(entry);
        }),
      );
      const refused = results.find((result) => result.status === "rejected");
      if (refused) this.#block(shard, refused.reason);
      return {
        shard,
        entries: entries.filter((_, index) => results[index]?.status === "fulfilled"),
      };
    });
    return (await Promise.all(ready)).filter(({ entries }) => entries.length > 0);
  }

  /**
   * Retries the shard's refused tasks later, when workers may have drained the full queue. Each try queues every task
   * that has room.
   */
  #block(shard: Shard, error: unknown): void {
    const full = error instanceof WriteRefused && error.full;
    if (!full)
      this.#logger.warn({ err: error, shard: shard.number }, "task not published, will try again");
    this.#blocked.add(shard);
    void this.#clock.wait(LANE_RETRY_MS).then(() => {
      this.#blocked.delete(shard);
      this.add(shard);
    });
  }

  /**
   * Queues a task. Within the stream's duplicate window, the stream drops a task that another host has published
   * already. After this window, the task would run twice.
   */
  async #publishTask(shard: Shard, { number, message }: OutboxEntry): Promise<void> {
    const { kind, lane = "", inTurns = false } = message;
    await queueTask(
      this.#bus,
      { kind, lane, inTurns },
      { ...message, id: `${shard.number}-${number}` },
    );
  }

  async #publishMail(groups: Group[]): Promise<void> {
    const streams = allMail(this.#bus.layout);
    const published = await Promise.allSettled(
      streams.map(({ index }) => this.#publishTo(index, partsOf(groups, index))),
    );
    // A failed stream is read again only after every other stream has answered.
    const failed = published.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  }

  /** Publishes the entries of one stream of mail, together with the marks that name them. */
  async #publishTo(stream: number, groups: readonly Group[]): Promise<void> {
    if (groups.length === 0) return;
    const { to: subjectOf, sent: markSubject } = mailIn(stream);
    const writes: Write[] = [];
    const marks: { shard: Shard; mark: SentMark; index: number }[] = [];
    const sent: { from: Shard; to: number; index: number }[] = [];
    for (const { shard, entries } of groups) {
      for (const { message, tries } of entries) {
        if (message.to !== "actor") continue;
        const { from, kind, key, message: name, input, trace } = message;
        const address = addressOf(kind, key);
        const payload = JSON.stringify({ from, message: name, input, tries });
        const to = this.#bus.shardOf(address);
        const subject = subjectOf(to, address);
        sent.push({ from: shard, to, index: writes.length });
        writes.push({ subject, payload, ...(trace && { headers: trace }) });
      }
      const mark = shard.outbox.markAfter(entries, stream);
      marks.push({ shard, mark, index: writes.length });
      writes.push({
        subject: markSubject(shard.number),
        payload: JSON.stringify(mark),
        headers: { "Nats-Rollup": "sub" },
        expect: { sequence: shard.sentRevisions[stream] ?? 0 },
      });
    }
    const last = await writeAtomically(this.#bus, writes);
    const sequenceOf = (index: number) => last - (writes.length - 1 - index);
    for (const { from, to, index } of sent) from.sends.published.set(to, sequenceOf(index));
    for (const { shard, mark, index } of marks) {
      shard.sentRevisions[stream] = sequenceOf(index);
      shard.outbox.forget(mark, stream);
    }
  }

  /** After a failure, reads which entries this host or a new owner has published. */
  async #reload(groups: Group[]): Promise<void> {
    for (const { shard } of groups) {
      try {
        const sent = await readSentMarks(this.#bus, shard.number);
        // If another host owns the shard, the mark belongs to that host. A mark written over it would not list the
        // mail that the other host still has to deliver.
        if (!(await this.#owns(shard))) continue;
        for (const [stream, mark] of sent.marks.entries()) {
          shard.sentRevisions[stream] = sent.revisions[stream] ?? 0;
          shard.outbox.forget(mark, stream);
        }
        this.#reloaded(shard);
      } catch (error) {
        this.#logger.warn({ err: error, shard: shard.number }, "sent mark not read");
      }
    }
    this.#drained();
  }
}

/** Returns the entries of the groups that belong to one stream of mail. */
function partsOf(groups: readonly Group[], stream: number): Group[] {
  const parts = groups.map(({ shard, entries }) => ({
    shard,
    entries: entries.filter((entry) => shard.outbox.streamOf(entry) === stream),
  }));
  return parts.filter(({ entries }) => entries.length > 0);
}

/** Returns a function for the number of the stream of mail to which an entry of an outbox belongs; 0 for tasks. */
export function mailStreamOf(bus: Bus): StreamOf {
  return ({ to, kind, key }) =>
    to === "worker" ? 0 : mailOf(bus.layout, bus.shardOf(addressOf(kind, key))).index;
}

/**
 * Reads from each stream of mail which entries of a shard's outbox are published, and the sequences of the messages
 * that say so.
 */
export async function readSentMarks(bus: Bus, shard: number) {
  const found = await Promise.all(
    allMail(bus.layout).map(({ stream, sent }) => bus.readLast(stream, sent(shard))),
  );
  return {
    marks: found.map((message) => (message ? SentMark.parse(message.json()) : NOTHING_SENT)),
    revisions: found.map((message) => message?.seq ?? 0),
  };
}
