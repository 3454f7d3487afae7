/** Reads the mail and the due reminders that the bus holds for one shard, in order. */
import type { Logger } from "pino";
import { z } from "zod";
import type { DataLayout } from "../../../schemas/data-layout.ts";
import { READER_RETRY_MS } from "../../../schemas/limits.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import { mailOf } from "../../../schemas/split-streams.ts";
import type { Bus } from "../bus/bus.ts";
import type { OrderedMessage } from "../bus/reads/ordered-pulls.ts";
import { readInOrder } from "../bus/reads/read-in-order.ts";
import type { Clock } from "../lib/clock.ts";
import { traceOf } from "../lib/trace.ts";
import type { Delivery } from "../shards/incoming.ts";
import { reminderAt } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";
import { MAIL_IN_FLIGHT_MAX, MailInFlight, type Receiver } from "./mail-in-flight.ts";

/**
 * Limits the due reminders of one shard that are being handled. All reminders that came due while no host ran are
 * delivered together.
 */
const REMINDERS_IN_FLIGHT_MAX = 100;
/** How many messages of a shard's mail one request may bring ahead of the handlers. */
const MAIL_PREFETCH = 256;
/**
 * Limits the bytes of mail that are on their way to one host if it has all shards. Each shard has an equal part, and
 * one may have 256 messages of 500 bytes. Larger mail than this part is read one at a time.
 */
const MAIL_PREFETCH_BYTES = 8_000_000;
/**
 * The least part of a shard. If thousands of shards had equal parts, most mail would be read one at a time. A host with
 * 1,000 shards then has 32 MB on the way at most.
 */
const SHARD_PREFETCH_BYTES_MIN = 32_000;
/**
 * How long removals of mail are collected, so that one purge serves many. A new owner reads at most the mail of this
 * time again.
 */
const MAIL_PURGE_MS = 1_000;

const Mail = z.object({
  from: z.string(),
  message: z.string(),
  input: z.unknown().optional(),
  /** How often the receiving actor has failed to handle the mail on the host of its sender. */
  tries: z.int().min(0).default(0),
});
/** A name that no kind has. Mail to an unreadable address is delivered to this name, and so becomes a dead letter. */
const NOBODY = "(nobody)";

export interface ReaderParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  deliver(shard: Shard, address: { kind: string; key: string }, delivery: Delivery): void;
  /** True for a kind whose messages run an app's code. The first token of its keys is the account. */
  isHosted(kind: string): boolean;
}

/**
 * The mail of one key that stays in the stream for now: from the first unread message to the last message that the
 * reader skipped.
 */
interface Left {
  receiver: Receiver;
  first: number;
  last: number;
  room: Room;
}

/** Delivers the shard's mail and its due reminders until the shard closes. */
export function readDeliveries(parts: ReaderParts, shard: Shard): void {
  void new MailReader(parts, shard).read();
  void readReminders(parts, shard);
}

/**
 * Delivers the shard's mail until the shard closes. Removes mail from the stream up to the first message that is not
 * handled yet. So the next owner misses nothing, and each actor knows which mail it has handled. A key whose mail
 * fails, or an app that does not handle its mail, delays no other key: past their shares (`MailInFlight`), the reader
 * skips the key's mail and reads it separately.
 */
export class MailReader {
  readonly #parts: ReaderParts;
  readonly #shard: Shard;
  readonly #signal: AbortSignal;
  readonly #waiting = new Set<number>();
  readonly #inFlight = new MailInFlight();
  readonly #left = new Map<string, Left>();
  /** The keys of `#left` that wait for a place in their shares, the longest waiting first. */
  readonly #held = new Set<Left>();
  readonly #room: Room;
  #purging = false;

  constructor(parts: ReaderParts, shard: Shard) {
    this.#parts = parts;
    this.#shard = shard;
    this.#signal = shard.closing.signal;
    this.#room = new Room(this.#signal);
  }

  async read(): Promise<void> {
    const shard = this.#shard;
    const { stream, toShard } = mailOf(this.#parts.bus.layout, shard.number);
    await readForever(this.#parts, shard, stream, toShard(shard.number), (message) => {
      const { subject, seq } = message;
      shard.mail.read = seq;
      const passedBy = this.#left.get(subject);
      if (passedBy) passedBy.last = seq;
      else {
        const receiver = this.#receiverOf(subject);
        if (this.#inFlight.hasRoomFor(receiver)) {
          this.#inFlight.enter(receiver);
          this.#deliver(receiver, seq, message.string(), traceOf(message.headers));
        } else this.#passBy(receiver, seq);
      }
      return this.#waiting.size < MAIL_IN_FLIGHT_MAX ? undefined : this.#room.wait();
    });
  }

  #receiverOf(subject: string): Receiver {
    const { kind, key } = this.#shard.readAddress(subject) ?? { kind: NOBODY, key: subject };
    const account = this.#parts.isHosted(kind) ? key.split(".", 1)[0] : undefined;
    return { subject, kind, key, account };
  }

  /** Delivers a message that has a place. */
  #deliver(receiver: Receiver, sequence: number, text: string, trace: Delivery["trace"]): void {
    this.#waiting.add(sequence);
    const done = () => this.#finish(receiver, sequence);
    const delivery = { ...readPayload(text), sequence, trace, done };
    this.#parts.deliver(this.#shard, receiver, delivery);
  }

  #passBy(receiver: Receiver, sequence: number): void {
    const room = new Room(this.#signal);
    const rest = { receiver, first: sequence, last: sequence, room };
    this.#left.set(receiver.subject, rest);
    this.#shard.mail.passedBy.add(receiver.subject);
    void this.#catchUp(rest);
  }

  /**
   * Delivers the skipped mail of a key in its order. Afterwards the key's mail is again delivered when it is read.
   */
  async #catchUp(rest: Left): Promise<void> {
    const { bus, clock, logger } = this.#parts;
    const signal = this.#signal;
    const { number } = this.#shard;
    const { receiver } = rest;
    const { subject } = receiver;
    const { stream } = mailOf(bus.layout, number);
    for (let hasPlace = false; !signal.aborted; ) {
      if (!hasPlace) await this.#takePlace(rest);
      if (signal.aborted) return;
      hasPlace = true;
      const { last } = rest;
      // Only the leader can say that there is no message, because a replica may lag behind.
      const read = async () =>
        (await bus.whileConnected(() => bus.readNext(stream, subject, rest.first))) ??
        (await bus.readNextOfLeader(stream, subject, rest.first));
      try {
        const message = await bus.readLimits.mail.run(read);
        if (signal.aborted) return;
        // All of it was removed, for example because its actor was forgotten. Later mail is still to be read.
        if (!message || message.seq > last) {
          if (rest.last > last) continue;
          this.#endRest(rest);
          this.#leavePlace(receiver);
          return;
        }
        rest.first = message.seq + 1;
        this.#deliver(receiver, message.seq, message.string(), traceOf(message.header));
        hasPlace = false;
        if (message.seq < rest.last) continue;
        this.#endRest(rest);
        return;
      } catch (error) {
        logger.warn({ err: error, shard: number }, "mail of a key not read, will try again");
        await clock.wait(READER_RETRY_MS, signal);
      }
    }
  }

  /** The key's mail is delivered again when it is read. */
  #endRest({ receiver }: Left): void {
    this.#shard.mail.passedBy.delete(receiver.subject);
    this.#left.delete(receiver.subject);
    if (!this.#purging) void this.#purge();
  }

  #finish(receiver: Receiver, sequence: number): void {
    this.#waiting.delete(sequence);
    this.#leavePlace(receiver);
    this.#room.free();
    if (!this.#purging) void this.#purge();
  }

  async #takePlace(rest: Left): Promise<void> {
    if (this.#inFlight.hasRoomFor(rest.receiver)) return this.#inFlight.enter(rest.receiver);
    this.#held.add(rest);
    await rest.room.wait();
  }

  /** Gives the place to the longest waiting key that may have it, so that no newer mail takes it first. */
  #leavePlace(receiver: Receiver): void {
    this.#inFlight.leave(receiver);
    for (const rest of this.#held) {
      if (!this.#inFlight.hasRoomFor(rest.receiver)) continue;
      this.#inFlight.enter(rest.receiver);
      this.#held.delete(rest);
      rest.room.free();
      return;
    }
  }

  async #purge(): Promise<void> {
    this.#purging = true;
    await this.#parts.clock.wait(MAIL_PURGE_MS, this.#signal);
    this.#purging = false;
    const { number, mail } = this.#shard;
    const firsts = Array.from(this.#left.values(), ({ first }) => first);
    const open = Math.min(mail.read + 1, ...this.#waiting, ...firsts);
    const isDone = await purgeMail(this.#parts, number, open);
    // Retry the purge now, because there may be no later mail whose purge would include this mail.
    if (!isDone && !this.#purging && !this.#signal.aborted) void this.#purge();
  }
}

/**
 * Removes a shard's mail before this sequence. This needs no fence, because all of this mail had its effect under a
 * fence. Resolves with false if the removal failed.
 */
async function purgeMail(
  { bus, logger }: ReaderParts,
  shard: number,
  sequence: number,
): Promise<boolean> {
  try {
    const { stream, toShard } = mailOf(bus.layout, shard);
    const done = { filter: toShard(shard), seq: sequence };
    await bus.writeHold.held;
    await bus.whileConnected(() => bus.jetstream.streams.purge(stream, done));
    return true;
  } catch (error) {
    logger.warn({ err: error, shard }, "handled mail not deleted, will try again");
    return false;
  }
}

/** Delivers reminders when they are due. Removes each reminder by its sequence after it was handled. */
async function readReminders(parts: ReaderParts, shard: Shard): Promise<void> {
  const { bus, logger } = parts;
  const { stream } = shard.subjects;
  const room = new Room(shard.closing.signal);
  let waiting = 0;
  await readForever(parts, shard, stream, shard.subjects.firedOf(shard.number), (fired) => {
    // Another tool may have left a marker; our own removals leave none.
    if (fired.headers?.has("KV-Operation")) return undefined;
    const { kind, key, message } = shard.subjects.readReminder(fired.subject);
    const done = () => {
      waiting -= 1;
      room.free();
      bus.jetstream.streams.deleteMessage(stream, fired.seq, false).catch((error: unknown) => {
        // The next owner reads the reminder again and finds it obsolete.
        logger.debug({ err: error, shard: shard.number }, "fired reminder not removed");
      });
    };
    const dueAt = reminderAt(fired.string());
    waiting += 1;
    parts.deliver(shard, { kind, key }, { message, input: {}, dueAt, tries: 0, done });
    return waiting < REMINDERS_IN_FLIGHT_MAX ? undefined : room.wait();
  });
}

/** Lets a reader wait until one of its deliveries is done or its shard closes. */
class Room {
  readonly #closing: AbortSignal;
  #resolve: () => void = () => {};

  constructor(closing: AbortSignal) {
    this.#closing = closing;
  }

  wait(): Promise<void> {
    if (this.#closing.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const done = () => {
      this.#closing.removeEventListener("abort", done);
      resolve();
    };
    this.#closing.addEventListener("abort", done, { once: true });
    this.#resolve = done;
    return promise;
  }

  free(): void {
    this.#resolve();
  }
}

/**
 * Reads the payload of mail. Unreadable mail gets a message name that no kind has, and so becomes a dead letter that
 * shows its text.
 */
function readPayload(text: string): Pick<Delivery, "message" | "input" | "tries"> {
  const mail = Mail.safeParse(parseJson(text)).data;
  if (!mail) return { message: "(unreadable)", input: text, tries: 0 };
  const { message, input, tries } = mail;
  return { message, input, tries };
}

/** Returns how many bytes of one shard's mail one request may bring. */
export const prefetchBytesOf = ({ shards }: Pick<DataLayout, "shards">): number =>
  Math.max(SHARD_PREFETCH_BYTES_MIN, Math.floor(MAIL_PREFETCH_BYTES / shards));

async function readForever(
  { bus, clock, logger }: ReaderParts,
  shard: Shard,
  stream: string,
  filter: string,
  take: (message: OrderedMessage) => Promise<void> | undefined,
): Promise<void> {
  const { signal } = shard.closing;
  let next = 1;
  while (!signal.aborted) {
    try {
      const read = readInOrder(bus, {
        stream,
        name: `shard-${shard.number}`,
        select: { filter_subjects: filter, opt_start_seq: next },
        prefetch: MAIL_PREFETCH,
        prefetchBytes: prefetchBytesOf(bus.layout),
        starts: bus.readLimits.readerStarts,
        signal,
      });
      for await (const message of read) {
        next = message.seq + 1;
        await take(message);
      }
    } catch (error) {
      logger.warn({ err: error, shard: shard.number, stream }, "reader stopped, will start again");
    }
    await clock.wait(READER_RETRY_MS, signal);
  }
}
