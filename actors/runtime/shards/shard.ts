/** One shard while this host owns it: from the epoch it wrote until it hands the shard over or finds it lost. */
import { addressOf, readAddress, type StateSubjects, shardOf } from "../../../schemas/subjects.ts";
import type { Outbox, OutboxEntry } from "./outbox.ts";

/** `open` takes messages; `leaving` finishes what it took; `gone` belongs to somebody else, or to nobody. */
type ShardStatus = "open" | "leaving" | "gone";

/** Of an actor: `address` is both others as they stand in subjects. */
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
   * `committing`: a commit that holds its effect is being written. `over`: the effect is durable, or the mail must not have
   * its effect here.
   */
  status: "handed" | "committing" | "over";
  /** Publishes the mail: its actor could not handle it, `tries` times by now. */
  giveUp(tries: number): void;
}

export class Shard {
  readonly number: number;
  /** Sequence of the epoch's message: every commit is fenced by it. */
  readonly epoch: number;
  /** The id of this host that the epoch names. */
  readonly host: string;
  readonly subjects: StateSubjects;
  readonly outbox: Outbox;
  status: ShardStatus = "open";
  /** Sequence of the shard's `sent` message in the stream of mail. */
  sentRevision: number;
  /** Its mail to others (DirectMail). */
  readonly sends = {
    /** Mail that was handed to actors of this host and whose effect is not committed yet. */
    direct: new Map<OutboxEntry, DirectSend>(),
    /** By shard, the sequence of the last that this owner put into MAIL; and the moment since when that is all there is. */
    published: new Map<number, number>(),
    knownSince: 0,
  };
  /** Mail to it: how far MAIL is read, subjects that were passed by, and a moment when that was all there was. */
  readonly mail = { read: 0, passedBy: new Set<string>(), readAllSince: 0 };
  /** Under way when the lease alone does not prove that the shard is ours: reads wait for it together. */
  confirmation: Promise<boolean> | undefined;
  /** Ends what reads mail and reminders for it. */
  readonly closing = new AbortController();

  constructor(parts: {
    number: number;
    epoch: number;
    host: string;
    subjects: StateSubjects;
    outbox: Outbox;
    sentRevision: number;
  }) {
    this.number = parts.number;
    this.epoch = parts.epoch;
    this.host = parts.host;
    this.subjects = parts.subjects;
    this.outbox = parts.outbox;
    this.sentRevision = parts.sentRevision;
  }

  get fence() {
    return { sequence: this.epoch, subject: this.subjects.epoch(this.number) };
  }

  /**
   * Kind and key of a call's or mail's subject; undefined where it is nobody's, or that of a key on another shard, which
   * would live twice. Never throws: that would end the reader of the connection.
   */
  readAddress(subject: string): ReadAddress | undefined {
    try {
      const { kind, key } = readAddress(subject);
      const address = addressOf(kind, key);
      return shardOf(address) === this.number ? { kind, key, address } : undefined;
    } catch {
      return undefined;
    }
  }
}
