/** Commits what all of a host's actors in one bucket have done, one atomic batch at a time, each fenced by its shard. */
import type { Logger } from "pino";
import { ActorError } from "../../schemas/errors.ts";
import {
  BATCH_BYTES_MAX,
  BATCH_MESSAGES_MAX,
  GATHER_MS_MAX,
  SINGLE_PUTS_MAX,
} from "../../schemas/limits.ts";
import type { Activation } from "./activation.ts";
import { OutcomeUnknown, type Write, WriteRefused, writeAtomically } from "./atomic-batch.ts";
import type { Bus } from "./bus.ts";
import type { Change } from "./change.ts";
import type { Clock } from "./clock.ts";
import type { OutboxEntry, Unsent } from "./outbox.ts";
import { REMOVED, reminderWrite } from "./reminders.ts";
import type { Shard } from "./shard.ts";

/** What one activation adds to a commit; its sends go into its shard's outbox, once for the whole commit. */
interface Taken {
  activation: Activation;
  shard: Shard;
  change: Change;
  writes: Write[];
}

export interface GroupCommitHost {
  shardOf(activation: Activation): Shard | undefined;
  /** The shard's outbox has new sends, which are durable and may be published. */
  committed(shard: Shard): void;
  /** A fence failed: finds out which shards are lost, and drops those. Resolves when that is settled. */
  verify(shards: ReadonlySet<Shard>): Promise<void>;
  /** Whether a commit was made is unknown: the shards are taken anew, under new epochs. */
  abandon(shards: ReadonlySet<Shard>): void;
}

/** Tries of one commit whose shards all turn out to be ours. */
const COMMIT_TRIES_MAX = 5;
/** What may be spent on gathering, of the time the last batch took: the rule of PostgreSQL's commit_delay. */
const GATHER_TIME_SHARE = 0.5;
/** Of the actors of the last batch, those whose return is waited for: the last stragglers are not worth it. */
const GATHER_RETURN_SHARE = 0.75;

export class GroupCommit {
  readonly #bus: Bus;
  readonly #host: GroupCommitHost;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** Replicated streams refuse a second write under the same fence while one is under way. */
  readonly #singlePutsMax: number;
  readonly #dirty = new Set<Activation>();
  #running = false;
  /** Under way: ends at once when so many activations are dirty. */
  #gathering: { enough: number; ended: AbortController } | undefined;

  constructor(parts: {
    bus: Bus;
    host: GroupCommitHost;
    clock: Clock;
    logger: Logger;
    replicas: number;
  }) {
    this.#bus = parts.bus;
    this.#host = parts.host;
    this.#clock = parts.clock;
    this.#logger = parts.logger;
    this.#singlePutsMax = parts.replicas === 1 ? SINGLE_PUTS_MAX : 1;
  }

  /** The activation's change goes into the next commit. */
  add(activation: Activation): void {
    this.#dirty.add(activation);
    if (this.#gathering && this.#dirty.size >= this.#gathering.enough) {
      this.#gathering.ended.abort();
    }
    if (this.#running) return;
    this.#running = true;
    // What else arrived in this turn of the loop shall share the first commit.
    setImmediate(() => void this.#run());
  }

  /** Outboxes have room again: what waited for that goes on. */
  outboxDrained(): void {
    const [activation] = this.#dirty;
    if (activation) this.add(activation);
  }

  async #run(): Promise<void> {
    for (;;) {
      const taken = this.#take();
      if (taken.length === 0) break;
      if (taken.length <= this.#singlePutsMax && taken.every(({ change }) => isSmall(change))) {
        await Promise.all(taken.map((one) => this.#commit([one])));
      } else {
        const startedAt = this.#clock.monotonic();
        await this.#commit(taken);
        const tookMs = this.#clock.monotonic() - startedAt;
        await this.#gather(taken.length, Math.min(tookMs * GATHER_TIME_SHARE, GATHER_MS_MAX));
      }
    }
    this.#running = false;
  }

  /**
   * A batch costs about the same whatever its size, and callers that were just answered come back in a moment: one
   * batch for them and for those who wait already, instead of one for each half in turn.
   */
  async #gather(answered: number, ms: number): Promise<void> {
    const ended = new AbortController();
    this.#gathering = { enough: this.#dirty.size + answered * GATHER_RETURN_SHARE, ended };
    await this.#clock.wait(ms, ended.signal);
    this.#gathering = undefined;
  }

  /** What one batch can hold of the dirty activations, the longest waiting first. */
  #take(): Taken[] {
    const taken: Taken[] = [];
    const sendBytes = new Map<Shard, number>();
    let messages = 0;
    let bytes = 0;
    for (const activation of this.#dirty) {
      const shard = this.#host.shardOf(activation);
      if (!shard || activation.isEnded) {
        this.#dirty.delete(activation);
        continue;
      }
      const size = messagesOf(activation.open);
      if (messages + size > BATCH_MESSAGES_MAX || bytes > BATCH_BYTES_MAX) break;
      const sent = (sendBytes.get(shard) ?? 0) + activation.open.sendBytes;
      // It waits among the dirty until some of what the outbox holds is published: see `outboxDrained`.
      if (activation.open.sendBytes > 0 && !shard.outbox.hasRoomFor(sent)) continue;
      this.#dirty.delete(activation);
      const change = activation.takeChange();
      const writes = change && this.#writesOf(activation, shard, change);
      if (!writes) continue;
      sendBytes.set(shard, sent);
      messages += size;
      bytes += writes.reduce((sum, write) => sum + write.payload.length, 0);
      taken.push({ activation, shard, change, writes });
    }
    return taken;
  }

  /** The value last: who reads a replica knows by it that the rows are there (StateStore). */
  #writesOf(activation: Activation, shard: Shard, change: Change): Write[] | undefined {
    const { subjects, fence: expect } = shard;
    const { address } = activation;
    const value = this.#encode(activation);
    if (!value) return undefined;
    const writes: Write[] = [];
    for (const [row, text] of change.rows) {
      const subject = subjects.row(address, row);
      writes.push(
        text === null
          ? { subject, payload: "", headers: REMOVED, expect }
          : { subject, payload: text, expect },
      );
    }
    if (change.rows.size > 0) {
      const payload = String(change.rowCommits);
      writes.push({ subject: subjects.rowMark(address), payload, expect });
    }
    for (const [message, at] of change.reminders) {
      writes.push({ ...reminderWrite(shard, address, message, at), expect });
    }
    const subject = subjects.value(address);
    writes.push(
      value.text === undefined
        ? { subject, payload: "", headers: REMOVED, expect }
        : { subject, payload: value.text, expect },
    );
    return writes;
  }

  /** Undefined where the state is too large, or nothing JSON can carry: one message's doing, which must not stop others. */
  /** Without a text where nothing is to be stored; undefined where it cannot be. */
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

  /** Writes it all, or less and less of it while shards turn out to be lost. */
  async #commit(all: Taken[]): Promise<void> {
    for (let tries = 1; ; tries++) {
      const taken = all.filter(({ shard }) => shard.status !== "gone");
      if (taken.length === 0) return;
      const outboxes = newEntries(taken);
      const writes = taken.flatMap((one) => one.writes);
      for (const [shard, entries] of outboxes) {
        const subject = shard.subjects.outbox(shard.number);
        writes.push({ subject, payload: shard.outbox.toText(entries), expect: shard.fence });
      }
      try {
        await writeAtomically(this.#bus, writes);
      } catch (error) {
        const retry = await this.#afterFailure(taken, tries, error);
        if (retry) continue;
        return;
      }
      for (const [shard, entries] of outboxes) {
        shard.outbox.add(entries);
        this.#host.committed(shard);
      }
      for (const { activation } of taken) activation.committed();
      return;
    }
  }

  /** True when the commit was surely not made and is worth another try. */
  async #afterFailure(taken: Taken[], tries: number, error: unknown): Promise<boolean> {
    const shards = new Set(taken.map(({ shard }) => shard));
    if (error instanceof WriteRefused && !error.conflict) {
      this.#logger.error({ err: error }, "commit refused");
      const refusal = new ActorError("unavailable", "Cannot commit: the store refuses writes", {
        retryAfterS: 1,
      });
      for (const { activation } of taken) activation.fail(refusal);
      return false;
    }
    // A conflict does not say whose fence failed. One that stays while every epoch is ours is a write that
    // is still under way in the stream: who wrote it is not known, so the epochs are renewed.
    if (error instanceof WriteRefused && tries < COMMIT_TRIES_MAX) {
      await this.#host.verify(shards);
      return true;
    }
    if (!(error instanceof OutcomeUnknown || error instanceof WriteRefused)) throw error;
    this.#logger.warn({ err: error, shards: shards.size }, "commit outcome unknown");
    this.#host.abandon(shards);
    return false;
  }
}

const isSmall = (change: Change) =>
  change.rows.size === 0 && change.reminders.size === 0 && change.sends.length === 0;

/** Messages a change takes of a batch: rows and their mark, reminders, the value, the outbox. */
const messagesOf = (change: Readonly<Change>) => change.rows.size + change.reminders.size + 3;

function newEntries(taken: readonly Taken[]): Map<Shard, OutboxEntry[]> {
  const sends = new Map<Shard, Unsent[]>();
  for (const { shard, change } of taken) {
    if (change.sends.length === 0) continue;
    const ofShard = sends.get(shard);
    if (ofShard) ofShard.push(...change.sends);
    else sends.set(shard, [...change.sends]);
  }
  return new Map([...sends].map(([shard, unsent]) => [shard, shard.outbox.number(unsent)]));
}
