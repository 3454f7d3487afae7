/**
 * Mail between actors of one host: it needs no stream. Once the outbox that holds it is durable it is handed to its actor,
 * and the commit of what that did takes it out of the outbox: both are stored, or neither is. Whatever does not come to
 * that goes by MAIL, as mail between hosts does.
 */
import type { Logger } from "pino";
import { DIRECT_MAIL_MAX } from "../../../schemas/limits.ts";
import {
  addressOf,
  mailSubject,
  mailSubjects,
  STREAMS,
  shardOf,
} from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Delivery } from "../shards/incoming.ts";
import type { OutboxEntry } from "../shards/outbox.ts";
import type { DirectSend, ReadAddress, Shard } from "../shards/shard.ts";

interface DirectMailParts {
  bus: Bus;
  logger: Logger;
  shards: ReadonlyMap<number, Shard>;
  /** Whether one commit can hold changes of both. */
  commitTogether(one: Shard, other: Shard): boolean;
  /** Whether what actors of this kind do is committed by their host. */
  isDurable(kind: string): boolean;
  deliver(shard: Shard, address: ReadAddress, delivery: Delivery): void;
  /** The shard's outbox has something to publish. */
  publish(shard: Shard): void;
}

export class DirectMail {
  readonly #parts: DirectMailParts;
  /** Of all shards. */
  #handed = 0;
  /** Counts what is compared in time: a clock has no two moments in a millisecond. */
  #moment = 0;
  readonly #looking = new Set<Shard>();

  constructor(parts: DirectMailParts) {
    this.#parts = parts;
  }

  /** What MAIL holds of the shard's sends is not known: it was opened just now, or somebody may have published some. */
  startKnowing(shard: Shard): void {
    this.#moment += 1;
    shard.sends.knownSince = this.#moment;
    shard.sends.published.clear();
  }

  /** Hands over what may go so; the rest is to be published. `added` are the newest of the outbox. */
  offer(from: Shard, added: readonly OutboxEntry[]): void {
    if (from.status !== "open" || added.length === 0) return;
    /** Addresses of what is to be published: what is sent to them later comes later. */
    const behind = new Set<string>();
    for (const entry of from.outbox.entries) {
      if (entry === added[0]) break;
      if (!from.sends.direct.has(entry)) behind.add(toOf(entry));
    }
    const sends: DirectSend[] = [];
    for (const entry of added) {
      const address = toOf(entry);
      const to = behind.has(address) ? undefined : this.#targetOf(from, entry, address);
      if (to) sends.push(this.#hand({ from, to, address, entry }));
      else behind.add(address);
    }
    for (const send of sends) this.#deliver(send);
  }

  /** A commit is being written that holds their effect: until its outcome is known they are not published. */
  committing(sends: readonly DirectSend[]): void {
    for (const send of sends) send.status = "committing";
  }

  /** Their effect is durable, and the stored outbox does not name them. */
  committed(sends: readonly DirectSend[]): void {
    for (const { from, entry } of sends) this.#forget(from, entry);
  }

  /** The commit does not hold their effect after all: they have it yet to have, here or elsewhere. */
  notCommitted(sends: readonly DirectSend[]): void {
    for (const send of sends) {
      if (send.status === "committing") send.status = "handed";
      const { from, to } = send;
      const isToGo = to.status === "gone" || from.status !== "open";
      if (isToGo) this.#publish(from, (other) => other === send);
    }
  }

  /** The outbox has no room, or is to go to another host: what has not had its effect goes by MAIL. */
  publishAll(from: Shard): void {
    this.#publish(from, () => true);
  }

  /** The shard is not this host's any more: the next owner publishes what it sent, and what was for it goes by MAIL. */
  drop(shard: Shard): void {
    for (const entry of [...shard.sends.direct.keys()]) this.#forget(shard, entry);
    for (const from of this.#parts.shards.values()) this.#publish(from, ({ to }) => to === shard);
  }

  #publish(from: Shard, isMeant: (send: DirectSend) => boolean): void {
    const meant = [...from.sends.direct.values()].filter(
      (send) => send.status === "handed" && isMeant(send),
    );
    for (const { entry } of meant) this.#forget(from, entry);
    if (meant.length > 0) this.#parts.publish(from);
  }

  #forget({ sends: { direct } }: Shard, entry: OutboxEntry): void {
    const send = direct.get(entry);
    if (!send) return;
    send.status = "over";
    direct.delete(entry);
    this.#handed -= 1;
  }

  #hand(what: Pick<DirectSend, "from" | "to" | "address" | "entry">): DirectSend {
    const { from, address, entry } = what;
    // What the actor has of the same sender after it comes after it by MAIL, too.
    const isBehind = (other: DirectSend) =>
      other.address === address && other.entry.number >= entry.number;
    const giveUp = (tries: number) => {
      entry.tries = tries;
      this.#publish(from, isBehind);
    };
    const send: DirectSend = { ...what, status: "handed", giveUp };
    from.sends.direct.set(entry, send);
    this.#handed += 1;
    return send;
  }

  #deliver(send: DirectSend): void {
    const { to, address, entry } = send;
    const { kind, key, message, trace } = entry.message;
    // As the bus would give it: a copy, of what JSON carries.
    const { input } = JSON.parse(entry.text) as OutboxEntry["message"];
    const delivery = { message, input, trace, tries: 0, direct: send, done: () => {} };
    this.#parts.deliver(to, { kind, key, address }, delivery);
  }

  /** Undefined where it goes by MAIL. */
  #targetOf(from: Shard, { message }: OutboxEntry, address: string): Shard | undefined {
    const { shards, isDurable, commitTogether } = this.#parts;
    if (this.#handed >= DIRECT_MAIL_MAX) return undefined;
    if (message.to !== "actor" || !isDurable(message.kind)) return undefined;
    const target = shards.get(shardOf(address));
    if (target?.status !== "open" || !commitTogether(from, target)) return undefined;
    return this.#hasReadAllFrom(from, target, address) ? target : undefined;
  }

  /**
   * Whether the target's reader has delivered whatever MAIL may ever hold of the sender for this address, but for what is
   * still in its outbox. A former owner that lives on without knowing can publish only what the outbox held when this one
   * read it; that goes by MAIL here, too, over the `sent` mark, so that one of the two fails. So MAIL holds what this owner
   * published, which it knows, and what was there before, which is read once a look after that has found nothing unread.
   */
  #hasReadAllFrom({ sends }: Shard, to: Shard, address: string): boolean {
    if (to.mail.passedBy.has(mailSubject(to.number, address))) return false;
    const published = sends.published.get(to.number);
    if (published !== undefined) return to.mail.read >= published;
    if (to.mail.readAllSince > sends.knownSince) return true;
    void this.#look(to);
    return false;
  }

  /** Once at a time, whether the shard has read all its mail. */
  async #look(to: Shard): Promise<void> {
    if (this.#looking.has(to)) return;
    this.#looking.add(to);
    this.#moment += 1;
    const asked = this.#moment;
    const { bus, logger } = this.#parts;
    try {
      const filter = mailSubjects(to.number);
      const next = await bus.readNextOfLeader(STREAMS.mail, filter, to.mail.read + 1);
      if (!next) to.mail.readAllSince = asked;
    } catch (error) {
      logger.debug({ err: error, shard: to.number }, "mail not looked for: it goes by the bus");
    } finally {
      this.#looking.delete(to);
    }
  }
}

const toOf = ({ message: { kind, key } }: OutboxEntry) => addressOf(kind, key);
