/**
 * Reads the stored state of actors and shards. Values come from the stream's leader; rows may come from a replica.
 */
import { DeliverPolicy } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import { mailOf, mailTo } from "../../../schemas/split-streams.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { OrderedMessage } from "../bus/reads/ordered-pulls.ts";
import { type DirectMessage, isUnanswered, readDirect } from "../bus/reads/read-direct.ts";
import { readTogether } from "../bus/reads/read-in-order.ts";
import type { AnyActorDefinition } from "../kinds/define-actor.ts";
import { StoredRow } from "../kinds/rows-view.ts";
import {
  decodeActor,
  decodeRow,
  isForgotten,
  type LoadedActor,
  rowMarkOf,
} from "./stored-actor.ts";

/** Limits of one request for rows. The rows of a crawl have about 1 kB each, and the largest 256 kB. */
const ROWS_PREFETCH = 1_000;
const ROWS_PREFETCH_BYTES = 512_000;

/** A stored value and its sequence; `text` is undefined where it was removed. */
interface StoredValue {
  sequence: number;
  text: string | undefined;
}

export class StateStore {
  readonly subjects: StateSubjects;
  readonly #bus: Bus;

  constructor(bus: Bus, subjects: StateSubjects) {
    this.#bus = bus;
    this.subjects = subjects;
  }

  /** The newest value under a subject of this bucket. Sequence 0 means that it was never written. */
  async read(subject: string): Promise<StoredValue> {
    const message = await this.#bus.readLast(this.subjects.stream, subject);
    if (!message) return { sequence: 0, text: undefined };
    return {
      sequence: message.seq,
      text: isRemoved(message.header) ? undefined : message.string(),
    };
  }

  /**
   * Loads an actor as it was last committed. Call it only under an epoch of this host, so that nobody else writes
   * meanwhile.
   */
  async load(definition: AnyActorDefinition, address: string): Promise<LoadedActor> {
    const { values } = this.#bus.readLimits;
    const value = await values.run(() => this.read(this.subjects.value(address)));
    if (isForgotten(value.text)) return this.#loadForgotten(definition, address, value);
    if (!definition.rows) return decodeActor(definition, value.text, new Map());
    const { rows, bytes } = await this.#readRows(definition, address, value);
    return decodeActor(definition, value.text, rows, bytes);
  }

  /**
   * Loads a forgotten actor and purges its old rows and mail. This needs no fence: the rows of a new life have higher
   * sequences than the value of the forgotten actor, and the mail had its effect already. From now on the value can
   * be removed without bringing back old rows or mail.
   */
  async #loadForgotten(
    definition: AnyActorDefinition,
    address: string,
    value: StoredValue,
  ): Promise<LoadedActor> {
    const actor = decodeActor(definition, value.text, new Map());
    const rows = { filter: this.subjects.rows(address), seq: value.sequence };
    const { layout } = this.#bus;
    const mail = { filter: mailTo(layout, address), seq: actor.mail + 1 };
    const { stream } = mailOf(layout, this.#bus.shardOf(address));
    const { readLimits, jetstream } = this.#bus;
    const { streams } = jetstream;
    const purge = () =>
      Promise.all([
        definition.rows && streams.purge(this.subjects.stream, rows),
        streams.purge(stream, mail),
      ]);
    await readLimits.mail.run(() => this.#bus.whileConnected(purge));
    return actor;
  }

  /**
   * Reads all rows of an actor. A replica that lags behind may serve the consumer. The rows are complete once their
   * mark has reached the mark in the value: every commit of rows writes both marks, and so does the first commit
   * after the actor was forgotten. The mark is stored among the rows, because a consumer with two filters takes 40 s
   * for 100,000 messages, and a consumer with one filter 0.7 s (nats-server 2.15.2). Rows stay text until a handler
   * reads them, because decoding 100,000 rows takes longer than reading them.
   */
  async #readRows(
    definition: AnyActorDefinition,
    address: string,
    value: StoredValue,
  ): Promise<{ rows: Map<string, unknown>; bytes: number }> {
    if (value.text === undefined) return { rows: new Map(), bytes: 0 };
    const committed = rowMarkOf(value.text);
    const decode = (text: string) => decodeRow(definition, text);
    const mark = this.subjects.rowMark(address);
    const filter = this.subjects.rows(address);
    const few = await this.#readFew(filter);
    const read = few && (await this.#collect([few], mark, decode));
    if (read && read.marked >= committed) return read;
    return this.#bus.readLimits.rows.run(async () => {
      for (;;) {
        const all = await this.#collect(this.#readAll(filter), mark, decode);
        if (all.marked >= committed) return all;
      }
    });
  }

  async #collect(
    parts: Iterable<DirectMessage[]> | AsyncIterable<OrderedMessage[]>,
    mark: string,
    decode: (text: string) => unknown,
  ) {
    const rows = new Map<string, unknown>();
    let [bytes, marked] = [0, 0];
    for await (const part of parts) {
      for (const message of part) {
        if (message.subject === mark) marked = Number(message.string());
        // Only an empty message can be a removal, because no row is empty. So the headers of other messages are not
        // read: reading them costs as much as all other work here.
        else if (message.data.length > 0 || !isRemoved(message.headers)) {
          bytes += message.data.length;
          rows.set(this.subjects.rowName(message.subject), new StoredRow(message.string(), decode));
        }
      }
    }
    return { rows, bytes, marked };
  }

  /**
   * Returns undefined if a consumer must read the rows: they do not fit in one answer, or the request failed, for
   * example because this user of the bus lacks a permission that this release needs.
   */
  async #readFew(filter: string): Promise<DirectMessage[] | undefined> {
    const query = { multi_last: [filter] };
    try {
      const answer = await this.#bus.readLimits.values.run(() =>
        readDirect(this.#bus, this.subjects.stream, query),
      );
      return answer?.pending === 0 ? answer.messages : undefined;
    } catch (error) {
      if (isUnanswered(error)) return undefined;
      throw error;
    }
  }

  async *#readAll(filter: string) {
    const enough = new AbortController();
    const read = readTogether(this.#bus, {
      stream: this.subjects.stream,
      name: "rows",
      select: { filter_subjects: [filter], deliver_policy: DeliverPolicy.LastPerSubject },
      prefetch: ROWS_PREFETCH,
      prefetchBytes: ROWS_PREFETCH_BYTES,
      signal: enough.signal,
      started: (pending) => pending === 0 && enough.abort(),
    });
    for await (const messages of read) {
      yield messages;
      if (messages.at(-1)?.pending === 0) return;
    }
  }
}

/**
 * True for a removal by a host or by the bus: when the marker of a host's removal expires, the bus leaves its own
 * marker for a while.
 */
const isRemoved = (headers: MsgHdrs | undefined) =>
  headers !== undefined && (headers.has("KV-Operation") || headers.has("Nats-Marker-Reason"));
