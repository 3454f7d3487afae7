/**
 * Mail between actors of one host, which needs no stream. As soon as the outbox that holds the mail is durable, the
 * host hands the mail directly to its actor. The commit of the mail's effect also removes the mail from the outbox,
 * so that both are stored or neither. All other mail goes through MAIL, as mail between hosts does.
 */
import type { Logger } from "pino";
import { mailOf } from "../../../schemas/split-streams.ts";
import { addressOf } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import type { Delivery } from "../shards/incoming.ts";
import type { OutboxEntry } from "../shards/outbox.ts";
import type { DirectSend, ReadAddress, Shard } from "../shards/shard.ts";

/**
 * Limits the mail that is handed over within a host and not committed yet. One turn of the event loop handles this
 * mail, and other work waits for that turn. Further mail goes through MAIL.
 */
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
  /** Called when the shard's outbox has mail to publish. */
  publish(shard: Shard): void;
}

export class DirectMail {
  readonly #parts: DirectMailParts;
  /** Counts the mail of all shards that was handed over and is not committed yet. */
  #handed = 0;
  /** A counter that orders events in time. A clock cannot order events within one millisecond. */
  #moment = 0;
  readonly #looking = new Set<Shard>();

  constructor(parts: DirectMailParts) {
    this.#parts = parts;
  }

  /**
   * Called when the host no longer knows which of the shard's sends MAIL holds: the shard was opened, or a former
   * owner may have published some sends.
   */
  startKnowing(shard: Shard): void {
    this.#moment += 1;
    shard.sends.knownSince = this.#moment;
    shard.sends.published.clear();
  }

  /**
   * Hands over those new entries of the outbox that need not go through MAIL; the relay publishes the others. `added`
   * are the newest entries of the outbox.
   */
  offer(from: Shard, added: readonly OutboxEntry[]): void {
    if (from.status !== "open" || added.length === 0) return;
    /** Addresses of entries that will be published. Later mail to the same address must stay behind them. */
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

  /**
   * Marks sends whose effect is in a commit that is being written. They are not published before the outcome is
   * known.
   */
  committing(sends: readonly DirectSend[]): void {
    for (const send of sends) send.status = "committing";
  }

  /** Forgets sends whose effect is durable, because the stored outbox no longer contains them. */
  committed(sends: readonly DirectSend[]): void {
    for (const { from, entry } of sends) this.#forget(from, entry);
  }

  /** Called when a commit failed: the effect of these sends is still to come, on this host or another. */
  notCommitted(sends: readonly DirectSend[]): void {
    for (const send of sends) {
      if (send.status === "committing") send.status = "handed";
      const { from, to } = send;
      const isToGo = to.status === "gone" || from.status !== "open";
      if (isToGo) this.#publish(from, (other) => other === send);
    }
  }

  /**
   * Publishes the direct mail that had no effect yet, because the outbox is full or the shard moves to another host.
   */
  publishAll(from: Shard): void {
    this.#publish(from, () => true);
  }

  /**
   * Called when the host has lost the shard. The shard's next owner publishes the mail that the shard sends. This
   * host publishes the mail from its other shards to the lost shard.
   */
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
    // Later mail from this shard to the same actor must follow this mail, so it goes through MAIL too.
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
    // Copies the input through JSON, so that the actor gets exactly what the bus would deliver.
    const { input } = JSON.parse(entry.text) as OutboxEntry["message"];
    const delivery = { message, input, trace, tries: 0, direct: send, done: () => {} };
    this.#parts.deliver(to, { kind, key, address }, delivery);
  }

  /** Returns the target's shard, or undefined if the mail must go through MAIL. */
  #targetOf(from: Shard, { message }: OutboxEntry, address: string): Shard | undefined {
    const { bus, shards, isDurable, commitTogether } = this.#parts;
    if (this.#handed >= DIRECT_MAIL_MAX) return undefined;
    if (message.to !== "actor" || !isDurable(message.kind)) return undefined;
    const target = shards.get(bus.shardOf(address));
    if (target?.status !== "open" || !commitTogether(from, target)) return undefined;
    return this.#hasReadAllFrom(from, target, address) ? target : undefined;
  }

  /**
   * True when the target's reader has delivered all mail from the sender's shard to this address that MAIL may ever
   * hold, except the entries that are still in the sender's outbox. A former owner of the sender's shard may not know
   * yet that it lost the shard. It can publish only entries that the outbox held when this owner read the outbox
   * (`ActorHost` ensures that). This owner publishes the same entries through MAIL over the same `sent` mark, so only
   * one of the two succeeds. The remaining mail is the mail that this owner published, which it knows, and earlier
   * mail. The reader has delivered all earlier mail when a later check of MAIL finds nothing unread.
   */
  #hasReadAllFrom({ sends }: Shard, to: Shard, address: string): boolean {
    if (to.mail.passedBy.size > 0) {
      const subject = mailOf(this.#parts.bus.layout, to.number).to(to.number, address);
      if (to.mail.passedBy.has(subject)) return false;
    }
    const published = sends.published.get(to.number);
    if (published !== undefined) return to.mail.read >= published;
    if (to.mail.readAllSince > sends.knownSince) return true;
    void this.#look(to);
    return false;
  }

  /** Asks the leader whether MAIL holds unread mail of the shard; one request at a time. */
  async #look(to: Shard): Promise<void> {
    if (this.#looking.has(to)) return;
    this.#looking.add(to);
    this.#moment += 1;
    const asked = this.#moment;
    const { bus, logger } = this.#parts;
    try {
      const { stream, toShard } = mailOf(bus.layout, to.number);
      const next = await bus.readNextOfLeader(stream, toShard(to.number), to.mail.read + 1);
      if (!next) to.mail.readAllSince = asked;
    } catch (error) {
      logger.debug({ err: error, shard: to.number }, "mail not looked for: it goes by the bus");
    } finally {
      this.#looking.delete(to);
    }
  }
}

const toOf = ({ message: { kind, key } }: OutboxEntry) => addressOf(kind, key);
