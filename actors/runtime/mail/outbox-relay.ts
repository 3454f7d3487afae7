/**
 * Publishes the entries of outboxes: tasks to their lanes, mail to the streams of mail. The tasks and the mail of each
 * stream have their own rounds, so a stream that does not answer delays only its own mail. A round of mail is one batch
 * with the mail to that stream's shards. The batch also moves the `sent` marks of the senders' shards by
 * compare-and-set. So a stream holds each mail only once, even if several hosts publish the mail, or one host
 * publishes it repeatedly.
 */
import type { Logger } from "pino";
import { BATCH_BYTES_MAX, BATCH_MESSAGES_MAX } from "../../../schemas/limits.ts";
import { allMail, type MailSubjects, mailOf } from "../../../schemas/split-streams.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import { type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { NOTHING_SENT, type OutboxEntry, SentMark, type StreamOf } from "../shards/outbox.ts";
import type { Shard } from "../shards/shard.ts";
import { queueSubject, queueTask, type TaskQueue } from "../tasks/queue-task.ts";
import { FullQueues, type Round } from "./full-queues.ts";

/** Pause before mail is published again after a failure. */
const RETRY_MS = 100;

interface Group {
  shard: Shard;
  entries: readonly OutboxEntry[];
}

interface RelayParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  /** Called when outboxes may have more room. */
  drained(): void;
  /** Returns whether this host owns the shard now. */
  owns(shard: Shard): Promise<boolean>;
  /** Called when MAIL may hold more mail from a shard than this host knows. */
  reloaded(shard: Shard): void;
}

export class OutboxRelay {
  readonly #parts: RelayParts;
  readonly #tasks: Rounds;
  readonly #mail: readonly Rounds[];
  /** Tasks that are in their lanes and not yet marked as sent. */
  readonly #queued = new WeakSet<OutboxEntry>();
  readonly #full: FullQueues;

  constructor(parts: RelayParts) {
    this.#parts = parts;
    this.#full = new FullQueues({
      clock: parts.clock,
      subjectOf: ({ message }) => queueSubject(parts.bus, queueOf(message), message.key),
      resume: (shards) => this.#tasks.add(shards),
    });
    this.#tasks = new Rounds(
      (shard) => this.#tasksOf(shard),
      (groups) => this.#queueTasks(groups),
    );
    this.#mail = allMail(parts.bus.layout).map(
      (mail) =>
        new Rounds(
          (shard) => this.#publishable(shard, mail.index),
          (groups) => this.#publishMail(mail, groups),
        ),
    );
  }

  /** Called when the shard's outbox has entries to publish. */
  add(shard: Shard): void {
    for (const rounds of [this.#tasks, ...this.#mail]) rounds.add([shard]);
  }

  /** Returns the tasks that are not queued yet and may be tried now. */
  #tasksOf(shard: Shard): readonly OutboxEntry[] {
    const round: Round = new Map();
    return shard.outbox.entries.filter((entry) => {
      if (entry.message.to !== "worker" || this.#queued.has(entry)) return false;
      return this.#full.mayTry(shard, entry, round);
    });
  }

  /**
   * Returns the entries that the next `sent` mark of a stream may count: its mail, but none that was handed over
   * directly and no other mail to the same actors. The first stream also counts the queued tasks.
   */
  #publishable(shard: Shard, stream: number): readonly OutboxEntry[] {
    const handed = new Set(Array.from(shard.sends.direct.values(), ({ address }) => address));
    return shard.outbox.entries.filter((entry) => {
      if (entry.stream !== stream) return false;
      const { to, kind, key } = entry.message;
      if (to === "worker") return this.#queued.has(entry);
      return handed.size === 0 || !handed.has(addressOf(kind, key));
    });
  }

  async #queueTasks(groups: readonly Group[]): Promise<void> {
    const round: Round = new Map();
    // Each group was selected by itself, but the tasks of all groups are one round.
    const tried = groups.flatMap(({ shard, entries }) =>
      entries
        .filter((entry) => this.#full.mayTry(shard, entry, round))
        .map((entry) => this.#tryTask(shard, entry)),
    );
    await Promise.all(tried);
    this.#full.endRound(round);
    this.#mail[0]?.add(groups.map(({ shard }) => shard));
  }

  /**
   * Queues a task. Within the stream's duplicate window, the stream drops a task that another host has published
   * already. After this window, the task would run twice.
   */
  async #tryTask(shard: Shard, entry: OutboxEntry): Promise<void> {
    const { number, message } = entry;
    try {
      const task = { ...message, id: `${shard.number}-${number}` };
      await queueTask(this.#parts.bus, queueOf(message), task);
      this.#queued.add(entry);
    } catch (error) {
      const isFirst = this.#full.refused(shard, entry, error);
      const isFull = error instanceof WriteRefused && error.full;
      if (!isFirst || isFull) return;
      const named = { err: error, shard: shard.number };
      this.#parts.logger.warn(named, "task not published, will try again");
    }
  }

  async #publishMail(mail: MailSubjects, groups: readonly Group[]): Promise<void> {
    const { clock, logger } = this.#parts;
    try {
      await this.#publishTo(mail, groups);
      this.#parts.drained();
    } catch (error) {
      logger.warn({ err: error, stream: mail.stream }, "mail not published, will try again");
      await clock.wait(RETRY_MS);
      await this.#reload(mail, groups);
    }
  }

  /** Publishes entries of one stream of mail, together with the marks that count them. */
  async #publishTo(mail: MailSubjects, groups: readonly Group[]): Promise<void> {
    const { bus } = this.#parts;
    const writes: Write[] = [];
    const marks: { shard: Shard; mark: SentMark; index: number }[] = [];
    const sent: { from: Shard; to: number; index: number }[] = [];
    for (const { shard, entries } of groups) {
      for (const { message, tries } of entries) {
        if (message.to !== "actor") continue;
        const { from, kind, key, message: name, input, trace } = message;
        const address = addressOf(kind, key);
        const payload = JSON.stringify({ from, message: name, input, tries });
        const to = bus.shardOf(address);
        const subject = mail.to(to, address);
        sent.push({ from: shard, to, index: writes.length });
        writes.push({ subject, payload, ...(trace && { headers: trace }) });
      }
      const mark = shard.outbox.markAfter(entries, mail.index);
      marks.push({ shard, mark, index: writes.length });
      writes.push({
        subject: mail.sent(shard.number),
        payload: JSON.stringify(mark),
        headers: { "Nats-Rollup": "sub" },
        expect: { sequence: shard.sentRevisions[mail.index] ?? 0 },
      });
    }
    const last = await writeAtomically(bus, writes);
    const sequenceOf = (index: number) => last - (writes.length - 1 - index);
    for (const { from, to, index } of sent) from.sends.published.set(to, sequenceOf(index));
    for (const { shard, mark, index } of marks) {
      shard.sentRevisions[mail.index] = sequenceOf(index);
      shard.outbox.forget(mark, mail.index);
    }
  }

  /** After a failure, reads which entries of one stream this host or a new owner has published. */
  async #reload(mail: MailSubjects, groups: readonly Group[]): Promise<void> {
    const { bus, logger } = this.#parts;
    for (const { shard } of groups) {
      try {
        const { mark, revision } = await readSentMark(bus, mail, shard.number);
        // Nobody has published since, so this host still knows which mail the stream holds.
        if (revision === shard.sentRevisions[mail.index]) continue;
        // If another host owns the shard, the mark belongs to that host. A mark written over it would not list the
        // mail that the other host still has to deliver.
        if (!(await this.#parts.owns(shard))) continue;
        shard.sentRevisions[mail.index] = revision;
        shard.outbox.forget(mark, mail.index);
        this.#parts.reloaded(shard);
      } catch (error) {
        logger.warn({ err: error, shard: shard.number }, "sent mark not read");
      }
    }
    this.#parts.drained();
  }
}

function queueOf({ kind, lane = "", inTurns }: OutboxEntry["message"]): TaskQueue {
  return { kind, lane, inTurns: inTurns === true };
}

/** Publishes some of the entries of outboxes, one round after the other. */
class Rounds {
  readonly #select: (shard: Shard) => readonly OutboxEntry[];
  readonly #publish: (groups: readonly Group[]) => Promise<void>;
  readonly #shards = new Set<Shard>();
  #running = false;

  /** `select` returns the entries of an outbox that `publish` publishes in a round. `publish` never rejects. */
  constructor(
    select: (shard: Shard) => readonly OutboxEntry[],
    publish: (groups: readonly Group[]) => Promise<void>,
  ) {
    this.#select = select;
    this.#publish = publish;
  }

  add(shards: readonly Shard[]): void {
    for (const shard of shards) this.#shards.add(shard);
    if (this.#running) return;
    // Set first, because `#run` resets it before it returns if there is nothing to publish.
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    for (let groups = this.#take(); groups.length > 0; groups = this.#take())
      await this.#publish(groups);
    this.#running = false;
  }

  #take(): Group[] {
    const groups: Group[] = [];
    let count = 0;
    let bytes = 0;
    for (const shard of [...this.#shards]) {
      const waiting = shard.status === "gone" ? [] : this.#select(shard);
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
    allMail(bus.layout).map((mail) => readSentMark(bus, mail, shard)),
  );
  return {
    marks: found.map(({ mark }) => mark),
    revisions: found.map(({ revision }) => revision),
  };
}

async function readSentMark(bus: Bus, { stream, sent }: MailSubjects, shard: number) {
  const message = await bus.readLast(stream, sent(shard));
  const mark = message ? SentMark.parse(message.json()) : NOTHING_SENT;
  return { mark, revision: message?.seq ?? 0 };
}
