/**
 * Commits the changes of all actors of a host in one bucket, one commit at a time. A commit is one message of the
 * journal where that is possible, else one atomic batch in which the shard of each message fences it.
 */
import type { Logger } from "pino";
import { ActorError } from "../../../schemas/errors.ts";
import {
  BATCH_BYTES_MAX,
  BATCH_MESSAGES_MAX,
  JOURNAL_ACTOR_MESSAGES_MAX,
  JOURNAL_COMMIT_BYTES_MAX,
  REMINDER_SOON_MS,
} from "../../../schemas/limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Activation } from "../activation/activation.ts";
import { type Change, directOf, isRetracted } from "../activation/change.ts";
import { OutcomeUnknown, type Write, WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { Gathering } from "../lib/gathering.ts";
import type { DirectMail } from "../mail/direct-mail.ts";
import { reminderText } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";
import { Checkpoints, type JournalHost } from "./checkpoints.ts";
import { type JournalEntry, layOver, type Puts, shardsOf, writesOf } from "./journal.ts";
import { outboxChanges } from "./outbox-changes.ts";

/** The longest that a commit waits for callers to come back: more than a round trip, less than anybody notices. */
const GATHER_MS_MAX = 5;

/** The part of one activation in a commit. Its sends go into its shard's outbox, once for the whole commit. */
interface Taken extends JournalEntry {
  activation: Activation;
  change: Change;
}

interface GroupCommitHost extends JournalHost {
  shardOf(activation: Activation): Shard | undefined;
  /** A fence that refuses a write once any shard of the bucket has an epoch that this host does not know. */
  fenceOfAll(): Write["expect"];
  /** The shard's outbox has new sends, which are durable and may be published. */
  committed(shard: Shard): void;
  readonly directMail: DirectMail;
  /** A fence has failed: finds out which shards are lost, and drops those. Resolves when that is settled. */
  verify(shards: ReadonlySet<Shard>): Promise<void>;
  /** The outcome of a commit is unknown: takes the shards again, under new epochs. */
  abandon(shards: ReadonlySet<Shard>): void;
}

/** Tries of one commit whose shards all turn out to be this host's. */
const COMMIT_TRIES_MAX = 5;
/** The part of the last commit's time that gathering may take. */
const GATHER_TIME_SHARE = 0.5;
/** Up to this many messages cost the server less one by one than in a batch, which needs a store of its own. */
const EARLY_SINGLY_MAX = 16;

export class GroupCommit {
  readonly #bus: Bus;
  readonly #host: GroupCommitHost;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** False on a replicated stream, which does not hold the fence of all shards. */
  readonly #hasJournal: boolean;
  readonly #checkpoints: Checkpoints;
  readonly #dirty = new Set<Activation>();
  #running = false;
  readonly #gathering: Gathering;

  constructor(parts: {
    bus: Bus;
    subjects: StateSubjects;
    host: GroupCommitHost;
    clock: Clock;
    logger: Logger;
    replicas: number;
  }) {
    this.#bus = parts.bus;
    this.#host = parts.host;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#hasJournal = parts.replicas === 1;
    this.#gathering = new Gathering(parts.clock, {
      timeShare: GATHER_TIME_SHARE,
      msMax: GATHER_MS_MAX,
    });
    this.#checkpoints = new Checkpoints({
      ...parts,
      isDue: () => this.#start(),
      failed: (...failure) => this.#afterFailure(...failure),
    });
  }

  /** The commits of this bucket that are not written to their keys yet. */
  get checkpoints(): Checkpoints {
    return this.#checkpoints;
  }

  /** Adds the activation's change to the next commit. */
  add(activation: Activation): void {
    this.#dirty.add(activation);
    this.#gathering.came(this.#dirty.size);
    this.#start();
  }

  /** Outboxes have room again: goes on with the changes that waited for it. */
  outboxDrained(): void {
    const [activation] = this.#dirty;
    if (activation) this.add(activation);
  }

  #start(): void {
    if (this.#running) return;
    this.#running = true;
    // Changes of the same turn of the loop share the first commit.
    setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    let crowdedBefore: ReadonlySet<Shard> = new Set();
    for (;;) {
      const { taken, crowded } = this.#take();
      if (taken.length > 0) {
        const startedAt = this.#clock.monotonic();
        await this.#commit(taken);
        const tookMs = this.#clock.monotonic() - startedAt;
        const last = { answered: taken.length, tookMs, waiting: this.#dirty.size };
        await this.#gathering.pause(last);
      }
      // Mail within the host may be all that fills an outbox, and may itself wait for room there.
      const isStuck = (shard: Shard) => taken.length === 0 || crowdedBefore.has(shard);
      for (const shard of crowded) if (isStuck(shard)) this.#host.directMail.publishAll(shard);
      crowdedBefore = crowded;
      if (this.#checkpoints.isNow) await this.#checkpoints.write();
      else if (taken.length === 0) break;
    }
    this.#running = false;
  }

  /** The changes that one commit can hold, the longest waiting first. */
  #take(): { taken: Taken[]; crowded: ReadonlySet<Shard> } {
    const taken: Taken[] = [];
    const crowded = new Set<Shard>();
    const sendBytes = new Map<Shard, number>();
    let messages = 0;
    let bytes = 0;
    for (const activation of this.#dirty) {
      const shard = this.#host.shardOf(activation);
      if (!shard || activation.isEnded) {
        this.#dirty.delete(activation);
        continue;
      }
      if (isRetracted(activation.open)) {
        this.#dirty.delete(activation);
        activation.startAnew();
        continue;
      }
      const pending = this.#checkpoints.journal.pendingOf(activation.address)?.puts;
      const size = messagesOf(activation.open) + (pending?.size ?? 0);
      if (messages + size > BATCH_MESSAGES_MAX || bytes > BATCH_BYTES_MAX) break;
      const sent = (sendBytes.get(shard) ?? 0) + activation.open.sendBytes;
      // The activation stays dirty until the outbox has published some entries: see `outboxDrained`.
      if (activation.open.sendBytes > 0 && !shard.outbox.hasRoomFor(sent)) {
        crowded.add(shard);
        continue;
      }
      this.#dirty.delete(activation);
      const change = activation.takeChange();
      const puts = change && this.#putsOf(activation, shard, change);
      if (!puts) continue;
      sendBytes.set(shard, sent);
      messages += size;
      for (const text of puts.values()) bytes += text?.length ?? 0;
      for (const text of pending?.values() ?? []) bytes += text?.length ?? 0;
      taken.push({ activation, shard, owner: activation.address, change, puts });
    }
    return { taken, crowded };
  }

  /** The value comes last: a reader of a replica then knows that the rows are there (StateStore). */
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
    if (change.rows.size > 0) puts.set(subjects.rowMark(address), String(change.rowCommits));
    puts.set(subjects.value(address), value.text ?? null);
    return puts;
  }

  /**
   * The actor's value; without a text where nothing is to be stored. Undefined where the state is too large or JSON
   * cannot carry it. One message causes that, and it must not stop the others.
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

  /** Writes all changes, or the remaining ones while shards turn out to be lost. */
  async #commit(all: readonly Taken[]): Promise<void> {
    const { directMail } = this.#host;
    let taken = all;
    for (let tries = 1; ; tries++) {
      taken = this.#stillOurs(taken);
      if (taken.length === 0) return;
      const direct = taken.flatMap(({ change }) => directOf(change));
      directMail.committing(direct);
      const outboxes = outboxChanges(taken);
      const entries: JournalEntry[] = [...taken];
      for (const [shard, { added, done }] of outboxes) {
        const subject = shard.subjects.outbox(shard.number);
        const puts: Puts = new Map([[subject, shard.outbox.toText(added, done)]]);
        entries.push({ shard, owner: shard.subjects.bucketKey(subject), puts });
      }
      try {
        const isStored = await this.#writeToJournal(taken, entries);
        // The pending changes of a lost shard are in the hands of its next owner. They must be written with its values.
        if (!isStored && hasLost(entries)) continue;
        if (!isStored) await this.#writeDown(entries);
      } catch (error) {
        const outcome = await this.#afterFailure(shardsOf(entries), tries, error);
        if (outcome === "not made") continue;
        directMail.notCommitted(direct);
        if (outcome === "refused") {
          const text = "Cannot commit: the store refuses writes";
          const refusal = new ActorError("unavailable", text, { retryAfterS: 1 });
          for (const { activation } of taken) activation.fail(refusal);
        }
        return;
      }
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
      return;
    }
  }

  /** Leaves out the changes of lost shards. An actor that had mail from a lost shard runs again without that mail. */
  #stillOurs(taken: readonly Taken[]): readonly Taken[] {
    const ours: Taken[] = [];
    for (const one of taken) {
      const { shard, activation, change } = one;
      const isLost = shard.status === "gone";
      if (!isLost && !isRetracted(change)) {
        ours.push(one);
        continue;
      }
      this.#host.directMail.notCommitted(directOf(change));
      if (!isLost) activation.startAnew();
    }
    return ours;
  }

  /**
   * Returns false where the journal cannot hold this commit, or another host has just taken a shard: then nothing is
   * stored. Nothing may be awaited between the check for lost shards in `#commit` and the fence, so that both are of
   * the same moment.
   */
  async #writeToJournal(
    taken: readonly Taken[],
    entries: readonly JournalEntry[],
  ): Promise<boolean> {
    const { journal } = this.#checkpoints;
    const expect = this.#host.fenceOfAll();
    if (!this.#hasJournal || !expect) return false;
    if (isSingle(taken, entries) && !journal.pendingOf(taken[0].owner)) return false;
    const isFit = ({ owner, shard, puts }: JournalEntry) =>
      shard.host === journal.id &&
      (journal.pendingOf(owner)?.puts.size ?? 0) + puts.size <= JOURNAL_ACTOR_MESSAGES_MAX;
    if (!entries.every(isFit)) return false;
    const payload = Buffer.from(journal.encode(entries));
    if (payload.length > JOURNAL_COMMIT_BYTES_MAX || !journal.hasRoomFor(payload.length))
      return false;
    const write = { subject: journal.subject, payload, expect };
    const early = this.#writeEarly(taken);
    try {
      journal.record(await writeAtomically(this.#bus, [write]), payload.length, entries);
      journal.absorbPuts(await early);
    } catch (error) {
      // The next write may be a batch with the same reminders.
      await early;
      if (error instanceof WriteRefused && error.conflict) return false;
      if (error instanceof OutcomeUnknown) journal.skip(shardsOf(entries));
      throw error;
    }
    this.#checkpoints.schedule();
    return true;
  }

  /**
   * Writes reminders that are due before the next checkpoint would bring them to the bus, beside the commit that sets
   * them. If the commit is not made, its reminder is obsolete, and the actor sets its own reminder, which the other may
   * have replaced, anew. Resolves with the written reminders and never rejects: the others are pending with the rest of
   * their commit.
   */
  async #writeEarly(taken: readonly Taken[]): Promise<JournalEntry[]> {
    const soon = this.#clock.now() + REMINDER_SOON_MS;
    const early: JournalEntry[] = [];
    for (const { shard, owner, change } of taken) {
      const puts: Puts = new Map();
      for (const [message, at] of change.reminders) {
        if (at === null || at >= soon) continue;
        puts.set(shard.subjects.remind(shard.number, owner, message), reminderText(at));
      }
      if (puts.size > 0) early.push({ shard, owner, puts });
    }
    const writes = early.flatMap(({ shard, puts }) => writesOf(shard.subjects, shard.fence, puts));
    try {
      if (writes.length > EARLY_SINGLY_MAX) await writeAtomically(this.#bus, writes);
      else await Promise.all(writes.map((write) => writeAtomically(this.#bus, [write])));
      return early;
    } catch {
      return [];
    }
  }

  /**
   * Writes the entries with all that is pending of the same owners: a value is never newer than the rows that belong to
   * it.
   */
  async #writeDown(entries: readonly JournalEntry[]): Promise<void> {
    const writes: Write[] = [];
    for (const { shard, owner, puts } of entries) {
      const all: Puts = new Map(this.#checkpoints.journal.pendingOf(owner)?.puts);
      layOver(all, puts);
      writes.push(...writesOf(shard.subjects, shard.fence, all));
    }
    await writeAtomically(this.#bus, writes);
    this.#checkpoints.absorb(entries);
  }

  /** `not made`: nothing was written, and lost shards are known by now. */
  async #afterFailure(
    shards: ReadonlySet<Shard>,
    tries: number,
    error: unknown,
  ): Promise<"not made" | "refused" | "unknown"> {
    if (error instanceof WriteRefused && !error.conflict) {
      this.#logger.error({ err: error }, "commit refused");
      return "refused";
    }
    // A conflict does not say whose fence has failed. If all epochs are this host's, a write of unknown origin is still
    // under way in the stream, so the epochs are renewed.
    if (error instanceof WriteRefused && tries < COMMIT_TRIES_MAX) {
      await this.#host.verify(shards);
      return "not made";
    }
    if (!(error instanceof OutcomeUnknown || error instanceof WriteRefused)) throw error;
    this.#logger.warn({ err: error, shards: shards.size }, "commit outcome unknown");
    this.#host.abandon(shards);
    return "unknown";
  }
}

const hasLost = (entries: readonly JournalEntry[]) =>
  entries.some(({ shard }) => shard.status === "gone");

/** True for one value of one actor: its own put costs less than a place in the journal. */
const isSingle = (
  taken: readonly Taken[],
  entries: readonly JournalEntry[],
): taken is readonly [Taken] =>
  taken.length === 1 && entries.length === 1 && entries[0]?.puts.size === 1;

/**
 * The messages of a batch that a change takes: rows and their mark, reminders, the value, its outbox, and the
 * outboxes its mail came from.
 */
function messagesOf(change: Readonly<Change>): number {
  const senders = new Set(directOf(change).map(({ from }) => from));
  return change.rows.size + change.reminders.size + senders.size + 3;
}
