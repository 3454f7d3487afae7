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

/**
 * Pause before mail is published again after a failure, or one task is queued again in a full queue. Workers take tens
 * of tasks per second from a lane.
 */
export const RETRY_MS = 100;

/** A queue that has refused a task. Its tasks wait until it has taken one. */
interface FullQueue {
  /** True during the pause after a refusal, in which no task is tried. */
  isShut: boolean;
  /** The shards with tasks for the queue. */
  shards: Set<Shard>;
}

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
  /** By subject: the queues that have refused a task, for example because they are full. */
  readonly #full = new Map<string, FullQueue>();

  constructor(parts: RelayParts) {
    this.#parts = parts;
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

  /** Returns the tasks that are not queued yet: of a full queue none during the pause, and then one. */
  #tasksOf(shard: Shard): readonly OutboxEntry[] {
    const tried = new Set<FullQueue>();
    return shard.outbox.entries.filter((entry) => {
      if (entry.message.to !== "worker" || this.#queued.has(entry)) return false;
      const full = this.#full.size > 0 && this.#full.get(this.#queueOf(entry));
      if (!full) return true;
      full.shards.add(shard);
      if (full.isShut || tried.has(full)) return false;
      tried.add(full);
      return true;
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
    const tried = new Set<FullQueue>();
    const queued = groups.flatMap(({ shard, entries }) =>
      entries.map(async (entry) => {
        const subject = this.#queueOf(entry);
        const full = this.#full.get(subject);
        // Another shard's task shows whether the queue has room.
        if (full && tried.has(full)) return;
        if (full) tried.add(full);
        try {
          await this.#queueTask(shard, entry);
          this.#queued.add(entry);
          if (full) this.#open(subject, full);
        } catch (error) {
          this.#shut(subject, shard, error);
        }
      }),
    );
    await Promise.all(queued);
    this.#mail[0]?.add(groups.map(({ shard }) => shard));
  }

  /** Called when a full queue has taken a task again: queues the others that wait for it. */
  #open(subject: string, full: FullQueue): void {
    this.#full.delete(subject);
    this.#tasks.add([...full.shards]);
  }

  /**
   * Called when a queue has refused a task. After a pause, in which workers may drain the queue, one of its tasks is
   * tried. If all were tried, every refusal would be repeated as often as tasks wait.
   */
  #shut(subject: string, shard: Shard, error: unknown): void {
    const { clock, logger } = this.#parts;
    const full = this.#full.get(subject) ?? { isShut: false, shards: new Set() };
    this.#full.set(subject, full);
    full.shards.add(shard);
    if (full.isShut) return;
    full.isShut = true;
    if (!(error instanceof WriteRefused && error.full))
      logger.warn({ err: error, shard: shard.number }, "task not published, will try again");
    void clock.wait(RETRY_MS).then(() => {
      full.isShut = false;
      for (const one of full.shards) if (one.status === "gone") full.shards.delete(one);
      if (full.shards.size === 0) this.#full.delete(subject);
      this.#tasks.add([...full.shards]);
    });
  }

  #queueOf({ message }: OutboxEntry): string {
    return queueSubject(this.#parts.bus, queueOf(message), message.key);
  }

  /**
   * Queues a task. Within the stream's duplicate window, the stream drops a task that another host has published
   * already. After this window, the task would run twice.
   */
  async #queueTask(shard: Shard, { number, message }: OutboxEntry): Promise<void> {
    const task = { ...message, id: `${shard.number}-${number}` };
    await queueTask(this.#parts.bus, queueOf(message), task);
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
