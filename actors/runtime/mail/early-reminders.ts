/**
 * Delivers reminders early after the time of day was set back. The bus fires reminders by the time of day, so it would
 * fire the pending ones late by the time that the clock was set back. Only reminders that may come early are delivered
 * (`ActorDefinition.mayComeEarly`): they end a pause, and most of their actors set them again if the pause is not over.
 */
import { DeliverPolicy } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { CHECKPOINT_MS, READER_RETRY_MS } from "../../../schemas/limits.ts";
import type { StateSubjects } from "../../../schemas/subjects.ts";
import type { Bus } from "../bus/bus.ts";
import { readInOrder } from "../bus/reads/read-in-order.ts";
import { type Clock, OVER } from "../lib/clock.ts";
import { readSteady } from "../lib/steady-clock.ts";
import type { Delivery } from "../shards/incoming.ts";
import { reminderAt } from "../shards/reminders.ts";
import type { Shard } from "../shards/shard.ts";

/** Interval at which a host compares the time of day with a clock that is never set. */
const TIME_OF_DAY_POLL_MS = 1_000;
/** A clock that is set back by less than this delays reminders, but only by this time. */
const SET_BACK_MS_MIN = 1_000;
/**
 * When the reminders are read after the clock was set back. Those from before are usually on the bus at the first time.
 * The second time also finds those that a busy bus stored late, or that the first one missed while others changed.
 */
const LOOKS_AFTER_MS = [2 * CHECKPOINT_MS, 30_000];
/** Limits the reminders that are being handled at the same time, and how long they may delay the next ones. */
const EARLY_AT_ONCE = 100;
const EARLY_MS_MAX = 10_000;
/** A look ends after this time without a reminder: the last ones may have been removed before they were read. */
const SILENCE_MS_MAX = 30_000;
const PREFETCH = 100;

/** What is needed of an ActorDefinition. */
interface EarlyKind {
  contract: { kind: string };
  mayComeEarly?: readonly string[] | undefined;
}

interface EarlyParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  /** The state buckets. */
  stores: readonly { subjects: StateSubjects }[];
  definitions: readonly EarlyKind[];
  /** The shards of this host. */
  shards: ReadonlyMap<number, Shard>;
  deliver(shard: Shard, address: { kind: string; key: string }, delivery: Delivery): void;
}

/** Watches the time of day until the signal aborts. */
export async function watchTimeOfDay(parts: EarlyParts, signal: AbortSignal): Promise<void> {
  const { clock, logger } = parts;
  const early = parts.definitions.filter(({ mayComeEarly = [] }) => mayComeEarly.length > 0);
  if (early.length === 0) return;
  let { aheadMs } = readSteady(clock);
  while (!signal.aborted) {
    await clock.wait(TIME_OF_DAY_POLL_MS, signal);
    const now = readSteady(clock).aheadMs;
    const setBackMs = aheadMs - now;
    if (setBackMs < 0) aheadMs = now;
    if (setBackMs < SET_BACK_MS_MIN) continue;
    aheadMs = now;
    logger.warn({ setBackMs }, "time of day was set back, pauses of actors are checked");
    for (const afterMs of LOOKS_AFTER_MS) {
      await clock.wait(afterMs, signal);
      for (const { subjects } of parts.stores) {
        for (const definition of early) await deliverEarly(parts, subjects, definition, signal);
      }
    }
  }
}

/** Delivers the pending reminders of one kind, again from the start if the bus does not answer. Never rejects. */
async function deliverEarly(
  parts: EarlyParts,
  subjects: StateSubjects,
  { contract: { kind }, mayComeEarly = [] }: EarlyKind,
  signal: AbortSignal,
): Promise<void> {
  const { clock, logger } = parts;
  while (!signal.aborted) {
    let batch: Promise<void>[] = [];
    try {
      for await (const { subject, text } of readReminders(parts, subjects, kind, signal)) {
        const { shard: number, key, message } = subjects.readReminder(subject);
        const shard = parts.shards.get(number);
        const dueAt = reminderAt(text);
        // The bus fires a due reminder itself.
        if (!shard || !mayComeEarly.includes(message) || dueAt <= clock.now()) continue;
        const { promise, resolve: done } = Promise.withResolvers<void>();
        batch.push(promise);
        parts.deliver(shard, { kind, key }, { message, input: {}, dueAt, tries: 0, done });
        if (batch.length < EARLY_AT_ONCE) continue;
        await settled(batch, clock);
        batch = [];
      }
      return;
    } catch (error) {
      logger.warn({ err: error, kind }, "pending reminders not read, will try again");
      await clock.wait(READER_RETRY_MS, signal);
    }
  }
}

/** Resolves when all have been handled. Reminders of a shard that leaves this host meanwhile never are. */
async function settled(batch: readonly Promise<void>[], clock: Clock): Promise<void> {
  const over = new AbortController();
  await Promise.race([Promise.all(batch), clock.wait(EARLY_MS_MAX, over.signal)]);
  over.abort(OVER);
}

async function* readReminders(
  { bus, clock }: EarlyParts,
  { stream, remindersOf }: StateSubjects,
  kind: string,
  signal: AbortSignal,
): AsyncGenerator<{ subject: string; text: string }, void, undefined> {
  const enough = new AbortController();
  const messages = readInOrder(bus, {
    stream,
    name: "reminders",
    select: { filter_subjects: remindersOf(kind), deliver_policy: DeliverPolicy.LastPerSubject },
    prefetch: PREFETCH,
    signal: AbortSignal.any([signal, enough.signal]),
    started: (pending) => pending === 0 && enough.abort(OVER),
  });
  let heardAt = clock.monotonic();
  const endInSilence = async () => {
    while (!enough.signal.aborted) {
      await clock.wait(TIME_OF_DAY_POLL_MS, enough.signal);
      if (clock.monotonic() - heardAt > SILENCE_MS_MAX) enough.abort(OVER);
    }
  };
  void endInSilence();
  try {
    for await (const message of messages) {
      // A removed reminder leaves an empty message for a while.
      if (message.data.length > 0) yield { subject: message.subject, text: message.string() };
      heardAt = clock.monotonic();
      if (message.pending === 0) return;
    }
    if (!enough.signal.aborted && !signal.aborted) {
      throw new Error("Cannot read all pending reminders: the consumer has ended");
    }
  } finally {
    enough.abort(OVER);
  }
}
