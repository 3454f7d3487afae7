/**
 * Mail between actors of one host, which needs no stream. Once the outbox that holds it is durable, the host hands it
 * to its actor. The commit of its effect also takes it out of the outbox, so both are stored or neither is. All other
 * mail goes by MAIL, as mail between hosts does.
 */
import type { Logger } from "pino";
import { addressOf, mailSubject, mailSubjects, STREAMS } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Delivery } from "../shards/incoming.ts";
import type { OutboxEntry } from "../shards/outbox.ts";
import type { DirectSend, ReadAddress, Shard } from "../shards/shard.ts";

/** Handed over within a host and not yet committed: handled in one turn of the loop, which others wait for. The rest goes by MAIL. */
export const DIRECT_MAIL_MAX = 256;

interface DirectMailParts {
  bus: Bus;
  logger: Logger;
  shards: ReadonlyMap<number, Shard>;
  /** Whether one commit can hold changes of both shards. */
  commitTogether(one: Shard, other: Shard): boolean;
  /** Whether the host commits the changes of actors of this kind. */
  isDurable(kind: string): boolean;
  deliver(shard: Shard, address: ReadAddress, delivery: Delivery): void;
  /** The shard's outbox has mail to publish. */
  publish(shard: Shard): void;
}

export class DirectMail {
  readonly #parts: DirectMailParts;
  /** Mail that was handed over and is not committed yet, of all shards. */
  #handed = 0;
  /** Orders events in time: a clock cannot, within one millisecond. */
  #moment = 0;
  readonly #looking = new Set<Shard>();

  constructor(parts: DirectMailParts) {
    this.#parts = parts;
  }

  /**
   * The host no longer knows which of the shard's sends MAIL holds: the shard was opened, or a former owner may have
   * published some.
   */
  startKnowing(shard: Shard): void {
    this.#moment += 1;
    shard.sends.knownSince = this.#moment;
    shard.sends.published.clear();
  }

  /**
   * Hands over the entries that may be handed over; the others are to be published. `added` are the newest of the
   * outbox.
   */
  offer(from: Shard, added: readonly OutboxEntry[]): void {
    if (from.status !== "open" || added.length === 0) return;
    /** Addresses of entries that are to be published: later mail to them has to stay behind. */
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

  /** A commit with their effect is being written. They are not published until its outcome is known. */
  committing(sends: readonly DirectSend[]): void {
    for (const send of sends) send.status = "committing";
  }

  /** Their effect is durable, and the stored outbox no longer names them. */
  committed(sends: readonly DirectSend[]): void {
    for (const { from, entry } of sends) this.#forget(from, entry);
  }

  /** The commit was not made: their effect is yet to come, on this host or another. */
  notCommitted(sends: readonly DirectSend[]): void {
    for (const send of sends) {
      if (send.status === "committing") send.status = "handed";
      const { from, to } = send;
      const isToGo = to.status === "gone" || from.status !== "open";
      if (isToGo) this.#publish(from, (other) => other === send);
    }
  }

  /** Publishes the mail without effect so far: the outbox is full, or the shard goes to another host. */
  publishAll(from: Shard): void {
    this.#publish(from, () => true);
  }

  /** The host has lost the shard: its next owner publishes the mail from it, and this host publishes the mail to it. */
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
    // Later mail from the same sender has to follow it, so it goes by MAIL too.
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
    // A copy that holds what JSON carries, as the bus would deliver it.
    const { input } = JSON.parse(entry.text) as OutboxEntry["message"];
    const delivery = { message, input, trace, tries: 0, direct: send, done: () => {} };
    this.#parts.deliver(to, { kind, key, address }, delivery);
  }

  /** The target's shard; undefined where the mail goes by MAIL. */
  #targetOf(from: Shard, { message }: OutboxEntry, address: string): Shard | undefined {
    const { bus, shards, isDurable, commitTogether } = this.#parts;
    if (this.#handed >= DIRECT_MAIL_MAX) return undefined;
    if (message.to !== "actor" || !isDurable(message.kind)) return undefined;
    const target = shards.get(bus.shardOf(address));
    if (target?.status !== "open" || !commitTogether(from, target)) return undefined;
    return this.#hasReadAllFrom(from, target, address) ? target : undefined;
  }

  /**
   * True when the target's reader has delivered all mail from the sender to this address that MAIL may ever hold, but
   * for the entries still in the sender's outbox. A former owner of the sender's shard may live on without knowing.
   * It can publish only entries that the outbox held when this owner read it (`ActorHost` makes sure of that). This
   * owner publishes those by MAIL too, over the same `sent` mark, so only one of the two succeeds. What remains is
   * the mail that this owner published, which it knows, and earlier mail, which is read once a later look finds
   * nothing unread.
   */
  #hasReadAllFrom({ sends }: Shard, to: Shard, address: string): boolean {
    if (to.mail.passedBy.has(mailSubject(to.number, address))) return false;
    const published = sends.published.get(to.number);
    if (published !== undefined) return to.mail.read >= published;
    if (to.mail.readAllSince > sends.knownSince) return true;
    void this.#look(to);
    return false;
  }

  /** Asks MAIL whether it holds unread mail of the shard; one question at a time. */
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
