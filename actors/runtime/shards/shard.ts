/**
 * One shard while this host owns it: from the epoch that the host wrote until the host hands the shard over or finds
 * it lost.
 */
import { addressOf, readAddress, type StateSubjects, shardOf } from "../../../schemas/subjects.ts";
import type { Outbox, OutboxEntry } from "./outbox.ts";

/**
 * `open`: the shard takes messages. `leaving`: the shard finishes the messages that it has taken. `gone`: another
 * host owns the shard, or nobody does.
 */
type ShardStatus = "open" | "leaving" | "gone";

/** The address of an actor, read from a subject. `address` is `<kind>.<key>` in the encoding of subjects. */
export interface ReadAddress {
  kind: string;
  key: string;
  address: string;
}

/** Mail that was handed to an actor of the same host. */
export interface DirectSend {
  readonly from: Shard;
  readonly to: Shard;
  readonly address: string;
  readonly entry: OutboxEntry;
  /**
   * `committing`: a commit that contains the effect is being written. `over`: the effect is durable, or the mail must
   * not have its effect on this host.
   */
  status: "handed" | "committing" | "over";
  /** Sends the mail through MAIL instead, because its actor could not handle it. `tries` counts the failed tries. */
  giveUp(tries: number): void;
}

export class Shard {
  readonly number: number;
  /** Sequence of the epoch's message; each commit to the shard names it. */
  readonly epoch: number;
  /** The id of this host that the epoch names. */
  readonly host: string;
  readonly subjects: StateSubjects;
  readonly outbox: Outbox;
  readonly #shards: number | undefined;
  status: ShardStatus = "open";
  /** By stream of mail: the sequence of the shard's `sent` message in it. */
  readonly sentRevisions: number[];
  /** The mail that the shard's actors send (DirectMail). */
  readonly sends = {
    /** Mail that was handed to actors of this host and whose effect is not committed yet. */
    direct: new Map<OutboxEntry, DirectSend>(),
    /**
     * By target shard: the sequence of the last mail that this owner put into MAIL. The map is complete since
     * `knownSince`.
     */
    published: new Map<number, number>(),
    knownSince: 0,
  };
  /**
   * The mail to the shard's actors. `read`: the last sequence read from MAIL. `passedBy`: subjects whose mail is read
   * later. `readAllSince`: when MAIL last held nothing unread, counted in the events of DirectMail.
   */
  readonly mail = { read: 0, passedBy: new Set<string>(), readAllSince: 0 };
  /** A read of the epoch, which proves ownership when the lease does not. All checks of the same turn share it. */
  confirmation: Promise<boolean> | undefined;
  /** Ends the readers of the shard's mail and reminders. */
  readonly closing = new AbortController();

  constructor(parts: {
    number: number;
    epoch: number;
    host: string;
    subjects: StateSubjects;
    outbox: Outbox;
    sentRevisions: readonly number[];
    /** The number of all shards. Default: the number that new data has. */
    shards?: number;
  }) {
    this.number = parts.number;
    this.epoch = parts.epoch;
    this.host = parts.host;
    this.subjects = parts.subjects;
    this.outbox = parts.outbox;
    this.sentRevisions = [...parts.sentRevisions];
    this.#shards = parts.shards;
  }

  /**
   * Reads kind and key from the subject of a call or of mail. Returns undefined for a subject of no actor, or of an
   * actor of another shard, which would otherwise run twice. Never throws, since that would end the reader of the
   * connection.
   */
  readAddress(subject: string): ReadAddress | undefined {
    try {
      const { kind, key } = readAddress(subject);
      const address = addressOf(kind, key);
      return shardOf(address, this.#shards) === this.number ? { kind, key, address } : undefined;
    } catch {
      return undefined;
    }
  }
}
