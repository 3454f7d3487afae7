/** Reads what the bus holds for one shard, mail and due reminders, in order, from what is left of it to the end. */
import type { JsMsg } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { z } from "zod";
import {
  MAIL_IN_FLIGHT_MAX,
  MAIL_PREFETCH,
  MAIL_PURGE_MS,
  READER_RETRY_MS,
  REMINDERS_IN_FLIGHT_MAX,
} from "../../schemas/limits.ts";
import { mailSubjects, STREAMS } from "../../schemas/subjects.ts";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { Delivery } from "./incoming.ts";
import { readInOrder } from "./read-in-order.ts";
import type { Shard } from "./shard.ts";
import { traceOf } from "./trace.ts";

const Mail = z.object({ from: z.string(), message: z.string(), input: z.unknown().optional() });
/** No kind is called so: what is addressed to it becomes a dead letter under its subject. */
const NOBODY = "(nobody)";
const Fired = z.object({ at: z.number() });

export interface ReaderParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  deliver(shard: Shard, address: { kind: string; key: string }, delivery: Delivery): void;
}

/**
 * Delivers the shard's mail until it closes. What was delivered and is done is removed from the stream, up to the
 * first that is not; so after a change of owner nothing is missing, and each actor knows what it has had.
 */
export async function readMail(parts: ReaderParts, shard: Shard): Promise<void> {
  const { bus, clock, logger } = parts;
  const waiting = new Set<number>();
  const room = new Room(shard.closing.signal);
  let lastRead = 0;
  let purging = false;

  await readForever(parts, shard, STREAMS.mail, mailSubjects(shard.number), (message) => {
    lastRead = message.seq;
    waiting.add(message.seq);
    const address = shard.readAddress(message.subject) ?? { kind: NOBODY, key: message.subject };
    parts.deliver(shard, address, {
      ...readPayload(message.string()),
      sequence: message.seq,
      trace: traceOf(message.headers),
      tries: 0,
      done: () => finish(message.seq),
    });
    return waiting.size < MAIL_IN_FLIGHT_MAX ? undefined : room.wait();
  });

  function finish(sequence: number): void {
    waiting.delete(sequence);
    room.free();
    if (!purging) void purge();
  }

  // Unfenced, and need not be: what is removed had its effect under a fence, whoever owns the shard by now.
  async function purge(): Promise<void> {
    purging = true;
    await clock.wait(MAIL_PURGE_MS, shard.closing.signal);
    purging = false;
    const [first = lastRead + 1] = waiting;
    try {
      await bus.jetstream.streams.purge(STREAMS.mail, {
        filter: mailSubjects(shard.number),
        seq: first,
      });
    } catch (error) {
      logger.warn(
        { err: error, shard: shard.number },
        "mail not removed, the next removal takes it",
      );
    }
  }
}

/** Delivers reminders as they come due. A delivery that is done is removed by its sequence. */
export async function readReminders(parts: ReaderParts, shard: Shard): Promise<void> {
  const { bus, logger } = parts;
  const { stream } = shard.subjects;
  const room = new Room(shard.closing.signal);
  let waiting = 0;
  await readForever(parts, shard, stream, shard.subjects.firedOf(shard.number), (fired) => {
    // A removal leaves no message, but a marker may be read where another tool made one.
    if (fired.headers?.has("KV-Operation")) return undefined;
    const { kind, key, message } = shard.subjects.readFired(fired.subject);
    const done = () => {
      waiting -= 1;
      room.free();
      bus.jetstream.streams.deleteMessage(stream, fired.seq, false).catch((error: unknown) => {
        // It will be read once more, and be found obsolete.
        logger.debug({ err: error, shard: shard.number }, "fired reminder not removed");
      });
    };
    const { at } = Fired.parse(fired.json());
    waiting += 1;
    parts.deliver(shard, { kind, key }, { message, input: {}, dueAt: at, tries: 0, done });
    return waiting < REMINDERS_IN_FLIGHT_MAX ? undefined : room.wait();
  });
}

/** Where a reader waits until one of its deliveries is done, or its shard closes. */
class Room {
  readonly #closing: AbortSignal;
  #resolve: () => void = () => {};

  constructor(closing: AbortSignal) {
    this.#closing = closing;
    closing.addEventListener("abort", () => this.free(), { once: true });
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      if (this.#closing.aborted) resolve();
    });
  }

  free(): void {
    this.#resolve();
  }
}

/** Mail that cannot be read becomes a message no kind has, and so a dead letter that shows what came. */
function readPayload(text: string): { message: string; input: unknown } {
  try {
    const { message, input } = Mail.parse(JSON.parse(text));
    return { message, input };
  } catch {
    return { message: "(unreadable)", input: text };
  }
}

async function readForever(
  { bus, clock, logger }: ReaderParts,
  shard: Shard,
  stream: string,
  filter: string,
  take: (message: JsMsg) => Promise<void> | undefined,
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
