/**
 * Commits the changes of all actors of a host in one bucket, one commit at a time. A commit is one message of the
 * host's journal, or several in one atomic batch where it is large.
 */
import type { Logger } from "pino";
import { ActorError } from "../../../schemas/errors.ts";
import { BATCH_BYTES_MAX, REMINDER_SOON_MS } from "../../../schemas/limits.ts";
import { countWork, timeWork } from "../../../schemas/meter.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Activation } from "../activation/activation.ts";
import { type Change, directOf, isRetracted } from "../activation/change.ts";
import { type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { outsideRequests } from "../lib/trace.ts";
import type { DirectMail } from "../mail/direct-mail.ts";
import type { SentBytes } from "../shards/outbox.ts";
import { reminderText } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";
import { ChainLost } from "./chain.ts";
import { HostJournal } from "./host-journal.ts";
import { type JournalEntry, type Puts, writesOf } from "./journal.ts";
import { outboxBytes, outboxChanges } from "./outbox-changes.ts";

/**
 * Up to this number of reminders, single messages cost the server less than a batch, because each batch needs its own
 * store.
 */
const EARLY_SINGLY_MAX = 16;

/** The change of one activation in a commit. Its sends go into its shard's outbox, which the commit writes once. */
interface Taken extends JournalEntry {
  activation: Activation;
  change: Change;
}

interface GroupCommitHost {
  /** The current name of the host, as epochs name it. */
  readonly id: string;
  readonly directMail: DirectMail;
  shardOf(activation: Activation): Shard | undefined;
  /** Called when the shard's outbox has new sends, which are durable and may be published. */
  committed(shard: Shard): void;
  /** Drops all shards and continues under another name, because the journal is sealed or may lack a commit. */
  startAnew(): void;
}

export class GroupCommit {
  readonly journal: HostJournal;
  readonly #bus: Bus;
  readonly #host: GroupCommitHost;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #dirty = new Set<Activation>();
  #running = false;
  /** The shards that the commit being written changes. */
  #committing: ReadonlySet<Shard> = new Set();

  constructor(parts: {
    bus: Bus;
    subjects: StateSubjects;
    host: GroupCommitHost;
    clock: Clock;
    logger: Logger;
  }) {
    const { host } = parts;
    this.#bus = parts.bus;
    this.#host = host;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.journal = new HostJournal({
      ...parts,
      hostId: () => host.id,
      lost: (error) => {
        this.#logger.warn({ err: error }, "journal lost, taking all shards again");
        host.startAnew();
      },
    });
  }

  /** Adds the activation's change to the next commit. */
  add(activation: Activation): void {
    this.#dirty.add(activation);
    this.#start();
  }

  /** Called when outboxes have room again: commits the changes that waited for room. */
  outboxDrained(): void {
    const [activation] = this.#dirty;
    if (activation) this.add(activation);
  }

  /** True while a commit that changes the shard is being written. */
  isCommitting(shard: Shard): boolean {
    return this.#committing.has(shard);
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    // Changes of the same turn of the loop share the first commit.
    setImmediate(() => outsideRequests(() => void this.#run()));
  }

  async #run(): Promise<void> {
    let crowdedBefore: ReadonlySet<Shard> = new Set();
    for (;;) {
      if (!this.journal.hasRoom) await this.journal.room();
      const { taken, crowded } = this.#take();
      if (taken.length > 0) await this.#commit(taken);
      // Mail within the host may fill an outbox, while its effects wait for room in the same outbox. Such mail is
      // then published through MAIL.
      const isStuck = (shard: Shard) => taken.length === 0 || crowdedBefore.has(shard);
      for (const shard of crowded) if (isStuck(shard)) this.#host.directMail.publishAll(shard);
      crowdedBefore = crowded;
      if (taken.length === 0) break;
    }
    this.#running = false;
  }

  /**
   * Takes the changes that one commit can hold, the longest waiting first. Also returns the shards whose outbox lacks
   * room for mail.
   */
  #take(): { taken: Taken[]; crowded: ReadonlySet<Shard> } {
    const taken: Taken[] = [];
    const crowded = new Set<Shard>();
    const sent = new Map<Shard, SentBytes>();
    const written = new Set<Shard>();
    // Shards with a change whose tasks lack room. Later changes with tasks must not take the room that it waits for.
    const waiting = new Set<Shard>();
    let bytes = 0;
    for (const activation of this.#dirty) {
      const shard = this.#host.shardOf(activation);
      if (!shard || !this.journal.isOf(shard) || activation.isEnded) {
        this.#dirty.delete(activation);
        continue;
      }
      if (isRetracted(activation.open)) {
        this.#dirty.delete(activation);
        activation.startAnew();
        continue;
      }
      if (bytes > BATCH_BYTES_MAX) break;
      const earlier = sent.get(shard) ?? { sendBytes: 0, taskBytes: 0 };
      const { sendBytes, taskBytes } = activation.open;
      // The activation stays dirty until the outbox has published some entries: see `outboxDrained`.
      if (taskBytes > 0 && waiting.has(shard)) continue;
      if (sendBytes > 0 && !shard.outbox.hasRoomFor({ sendBytes, taskBytes }, earlier)) {
        if (taskBytes > 0) waiting.add(shard);
        // If the tasks alone lack room, other mail must not leave its direct way for them.
        if (!shard.outbox.hasRoomFor({ sendBytes, taskBytes: 0 }, earlier)) crowded.add(shard);
        continue;
      }
      this.#dirty.delete(activation);
      const change = activation.takeChange();
      const puts = change && this.#putsOf(activation, shard, change);
      if (!puts) continue;
      sent.set(shard, {
        sendBytes: earlier.sendBytes + sendBytes,
        taskBytes: earlier.taskBytes + taskBytes,
      });
      for (const text of puts.values()) bytes += text?.length ?? 0;
      bytes += outboxBytes({ shard, change }, written);
      taken.push({ activation, shard, owner: activation.address, change, puts });
    }
    return { taken, crowded };
  }

  /**
   * Returns the puts of a change. The value comes last: a reader of a replica that has the value then has the rows
   * too (StateStore).
   */
  #putsOf(activation: Activation, shard: Shard, change: Change): Puts | undefined {
    const { address } = activation;
    const { subjects } = shard;
    const value = this.#encode(activation);
    if (!value) return undefined;
    const puts: Puts = new Map();
    for (const [message, at] of change.reminders) {
      const subject = subjects.remind(shard.number, address, message);
      puts.set(subject, at === null ? null : reminderText(at));
    }
    for (const [row, text] of change.rows) puts.set(subjects.row(address, row), text);
    const { rowMark } = change;
    if (rowMark !== undefined) puts.set(subjects.rowMark(address), String(rowMark));
    puts.set(subjects.value(address), value.text ?? null);
    return puts;
  }

  /**
   * Returns the actor's value; `text` is undefined if nothing needs to be stored. If the value cannot be stored,
   * restarts the activation to find the message at fault, or refuses its calls if it has searched already. Returns
   * undefined then.
   */
  #encode(activation: Activation): { text: string | undefined } | undefined {
    const { definition, key, address } = activation;
    try {
      return { text: activation.encode() };
    } catch (error) {
      if (activation.doubt()) return undefined;
      this.#logger.error({ err: error, kind: definition.contract.kind, key }, "state not encoded");
      activation.fail(new ActorError("internal_error", `Cannot change ${address}: see the log`));
      return undefined;
    }
  }

  async #commit(taken: readonly Taken[]): Promise<void> {
    const { directMail } = this.#host;
    const direct = taken.flatMap(({ change }) => directOf(change));
    directMail.committing(direct);
    const outboxes = outboxChanges(taken);
    const entries: JournalEntry[] = [...taken];
    for (const [shard, { added, done }] of outboxes) {
      const subject = shard.subjects.outbox(shard.number);
      const puts: Puts = new Map([[subject, shard.outbox.toText(added, done)]]);
      entries.push({ shard, owner: shard.subjects.bucketKey(subject), puts });
    }
    this.#committing = new Set(entries.map(({ shard }) => shard));
    const startedAt = this.#clock.monotonic();
    try {
      await this.journal.commit(entries, this.#writeEarly(taken));
    } catch (error) {
      const isRefused = error instanceof WriteRefused;
      if (!isRefused && !(error instanceof ChainLost)) throw error;
      countWork("commits_total", { outcome: isRefused ? "refused" : "lost" });
      directMail.notCommitted(direct);
      if (isRefused) this.#refuse(taken, error);
      return;
    } finally {
      this.#committing = new Set();
    }
    countWork("commits_total", { outcome: "stored" });
    countWork("commit_actors_total", {}, taken.length);
    timeWork("commit_seconds", {}, this.#clock.monotonic() - startedAt);
    for (const [shard, { added, done }] of outboxes) {
      shard.outbox.add(added);
      shard.outbox.remove(done);
    }
    directMail.committed(direct);
    for (const { activation } of taken) activation.committed();
    for (const [shard, { added }] of outboxes) {
      directMail.offer(shard, added);
      this.#host.committed(shard);
    }
  }

  /**
   * Writes reminders to the bus beside the commit that sets them, if they are due before the next checkpoint would
   * write them. If the commit fails, or another host has taken the shard, such a reminder is obsolete. It may have
   * replaced the actor's own reminder, so the actor then sets its own reminder again. Removes the written reminders
   * from the commit's puts, unless a checkpoint may later write an earlier time of the reminder. Never rejects.
   */
  async #writeEarly(taken: readonly Taken[]): Promise<void> {
    const soon = this.#clock.now() + REMINDER_SOON_MS;
    const early: { all: Puts; subjects: string[] }[] = [];
    const writes: Write[] = [];
    for (const { shard, owner, change, puts } of taken) {
      const { subjects, number } = shard;
      const ofOwner: Puts = new Map();
      for (const [message, at] of change.reminders) {
        if (at === null || at >= soon) continue;
        ofOwner.set(subjects.remind(number, owner, message), reminderText(at));
      }
      if (ofOwner.size === 0) continue;
      const done = [...ofOwner.keys()].filter((subject) => !this.journal.isPending(owner, subject));
      early.push({ all: puts, subjects: done });
      writes.push(...writesOf(subjects, ofOwner));
    }
    try {
      if (writes.length > EARLY_SINGLY_MAX) await writeAtomically(this.#bus, writes);
      else await Promise.all(writes.map((write) => writeAtomically(this.#bus, [write])));
      for (const { all, subjects } of early) for (const subject of subjects) all.delete(subject);
    } catch {
      // If a write fails, the reminders stay among the puts of their commit.
    }
  }

  #refuse(taken: readonly Taken[], error: WriteRefused): void {
    this.#logger.error({ err: error }, "commit refused");
    const text = "Cannot commit: the store refuses writes";
    const refusal = new ActorError("unavailable", text, { retryAfterS: 1 });
    for (const { activation } of taken) activation.fail(refusal);
  }
}
