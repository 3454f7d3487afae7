/** Keeps mail, reminders and tasks that failed for good, with their error, until an operator retries or drops them. */
import { JetStreamApiError, type StoredMsg } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { READER_RETRY_MS } from "../../../schemas/limits.ts";
import {
  addressOf,
  cacheSubject,
  deadAddress,
  deadSubject,
  mailSubject,
  STREAMS,
} from "../../../schemas/subjects.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { refusalOf } from "../bus/refusal.ts";
import type { Clock } from "../lib/clock.ts";
import { inRequestOf, requestCarrier, requestIdOf } from "../lib/trace.ts";
import type { Delivery } from "../shards/incoming.ts";
import { encodeTask, type Task } from "../tasks/task.ts";

/** Between MESSAGE_BYTES_MAX and the bus's own bound: a message of a client and its error fit. */
const DEAD_LETTER_BYTES_MAX = 1_030_000;
/**
 * Characters that are kept of an error, and of the input of a message that nobody's client wrote and that is too large.
 */
const DEAD_LETTER_ERROR_CHARS = 2_000;
const DEAD_LETTER_INPUT_CHARS = 10_000;

// nats-server's errors.json: 10057 delete of a message failed, as it is not there; 10043 no such sequence.
const GONE = new Set([10043, 10057]);

/** An id of a task has at most 128 characters. */
const RETRIED_ID_CHARS = 90;

/** How long an operator who acts on a letter keeps others from it: longer than the two requests to the bus may take. */
const CLAIM_S = 30;
/** A cache that does not answer within this time keeps no claims. */
const CLAIM_MS_MAX = 1_000;

const StoredLetter = z.object({
  message: z.string(),
  input: z.unknown().optional(),
  error: z.string(),
  tries: z.number(),
  /** Epoch ms. */
  buriedAt: z.number(),
  /** The id of the client's request that caused the message. */
  requestId: z.string().optional(),
  /** The subject, id and key of a task that failed at every try. */
  task: z.object({ subject: z.string(), id: z.string(), key: z.string() }).optional(),
});

export interface DeadLetter extends z.infer<typeof StoredLetter> {
  /** Names it among the others. */
  sequence: number;
  /** `<kind>.<key>` of its receiver. */
  address: string;
}

/** Keeps a delivery with its error. Tries until that is durable, so never rejects. */
export async function bury(
  { bus, clock, logger }: { bus: Bus; clock: Clock; logger: Logger },
  address: string,
  { message, input, sequence, dueAt, tries, trace }: Delivery,
  error: Error,
): Promise<void> {
  inRequestOf(trace, () =>
    logger.error({ err: error, address, message, tries }, "message became a dead letter"),
  );
  // For an input that its schema refuses, the refusal names the field.
  const { message: reason } = refusalOf(error) ?? error;
  const told = reason.slice(0, DEAD_LETTER_ERROR_CHARS);
  const requestId = requestIdOf(trace);
  const letter = { message, input, error: told, tries, buriedAt: clock.now(), requestId };
  const id = sequence === undefined ? `${address}-${message}-${dueAt}` : `mail-${sequence}`;
  const payload = encodeLetter(letter);
  const headers = { "Nats-Msg-Id": id };
  for (;;) {
    try {
      await writeAtomically(bus, [{ subject: deadSubject(address), payload, headers }]);
      return;
    } catch (cause) {
      logger.warn({ err: cause, address, message }, "dead letter not stored, will try again");
      await clock.wait(READER_RETRY_MS);
    }
  }
}

/**
 * Shows operators a task that failed at every try. One letter per kind and key is enough: the sender gets
 * the failure too, and may repeat the task until its cause is gone. Rejects where the letter is not stored.
 */
export async function buryTask(
  { bus, clock }: { bus: Bus; clock: Clock },
  { kind, task, subject, tries }: { kind: string; task: Task; subject: string; tries: number },
  error: unknown,
): Promise<void> {
  const { id, key, message, input, trace } = task;
  const told = String(error).slice(0, DEAD_LETTER_ERROR_CHARS);
  const waited = { subject, id, key };
  const payload = encodeLetter({
    ...{ message, input, error: told, tries, buriedAt: clock.now(), task: waited },
    requestId: requestIdOf(trace),
  });
  const dead = { subject: deadSubject(addressOf(kind, key)), payload, expect: { sequence: 0 } };
  await writeAtomically(bus, [dead]).catch((cause: unknown) => {
    if (!(cause instanceof WriteRefused) || !cause.conflict) throw cause;
  });
}

/** The whole input where one of our clients wrote it. Other input may be too large; then only its beginning is kept. */
function encodeLetter(letter: z.infer<typeof StoredLetter>): string {
  const payload = JSON.stringify(letter);
  if (Buffer.byteLength(payload) <= DEAD_LETTER_BYTES_MAX) return payload;
  const input = JSON.stringify(letter.input).slice(0, DEAD_LETTER_INPUT_CHARS);
  return JSON.stringify({ ...letter, input });
}

/**
 * The present letters, the oldest first. Letters that come during the listing, from retries that failed, are left
 * out.
 */
export async function* listDeadLetters(bus: Bus, after = 0): AsyncGenerator<DeadLetter> {
  const { state } = await bus.jetstream.streams.info(STREAMS.dead);
  let next = Math.max(state.first_seq, after + 1);
  while (next <= state.last_seq) {
    const found = await bus.readNext(STREAMS.dead, deadSubject(">"), next);
    if (!found || found.seq > state.last_seq) return;
    yield readLetter(found);
    next = found.seq + 1;
  }
}

/** Undefined where no such letter is kept. */
export async function findDeadLetter(bus: Bus, sequence: number): Promise<DeadLetter | undefined> {
  const found = await bus.readNext(STREAMS.dead, deadSubject(">"), sequence);
  return found?.seq === sequence ? readLetter(found) : undefined;
}

/**
 * Sends the message once more, as mail or as a task of the request that caused it, and then removes the letter.
 * If it is cut off in between and repeated, it sends nothing twice for two minutes, as long as the stream knows message
 * ids. Rejects with `conflict` while another operator acts on the letter, and with `not_found` after that.
 */
export async function retryDeadLetter(bus: Bus, letter: DeadLetter): Promise<void> {
  const leave = await claimLetter(bus, letter, "retry");
  try {
    await writeAtomically(bus, [retryOf(bus, letter)]);
  } catch (error) {
    // A message with an unknown outcome may be stored yet, so nobody else may drop the letter now.
    if (error instanceof WriteRefused) await leave();
    throw error;
  }
  await removeLetter(bus, letter);
}

/** Removes a letter. Rejects as `retryDeadLetter` does. */
export async function dropDeadLetter(bus: Bus, letter: DeadLetter): Promise<void> {
  const leave = await claimLetter(bus, letter, "drop");
  try {
    await removeLetter(bus, letter);
  } catch (error) {
    await leave();
    throw error;
  }
}

function retryOf(
  bus: Bus,
  { sequence, buriedAt, address, message, input, task, requestId }: DeadLetter,
) {
  const headers = { "Nats-Msg-Id": `dead-${sequence}-${buriedAt}` };
  const from = "operator";
  // The retry is a run of its own under the id of the request.
  const trace =
    requestId === undefined ? undefined : requestCarrier(`retry-${sequence}`, requestId);
  if (task) {
    const { subject, key } = task;
    // For two minutes the bus knows the id of the earlier run's message, and would drop one under the same id.
    const id = `${task.id.slice(0, RETRIED_ID_CHARS)}-retry-${sequence}`;
    return { subject, payload: encodeTask({ id, from, key, message, input, trace }), headers };
  }
  return {
    subject: mailSubject(bus.shardOf(address), address),
    payload: JSON.stringify({ from, message, input }),
    headers: { ...trace, ...headers },
  };
}

/**
 * Keeps other operators from a letter for CLAIM_S. Returns how to end the claim before. The claim is in the cache, which
 * may be lost or away: then two operators who act in the same moment may both succeed, and the message is sent once.
 */
async function claimLetter(
  bus: Bus,
  { sequence }: DeadLetter,
  act: "retry" | "drop",
): Promise<() => Promise<void>> {
  const subject = cacheSubject(`dead-letter.${sequence}`);
  const claim = { subject, payload: act, headers: { "Nats-TTL": `${CLAIM_S}s` } };
  const claimed = await writeAtomically(
    bus,
    [{ ...claim, expect: { sequence: 0 } }],
    CLAIM_MS_MAX,
  ).catch((error: unknown) => {
    if (!(error instanceof WriteRefused) || !error.conflict) return undefined;
    const text = `Cannot ${act} dead letter ${sequence}: another operator retries or drops it now`;
    throw new ActorError("conflict", `${text}; list the letters again in ${CLAIM_S} s`);
  });
  const leave = async () => {
    if (claimed === undefined) return;
    const ended = { ...claim, headers: { "Nats-TTL": "1s" }, expect: { sequence: claimed } };
    await writeAtomically(bus, [ended], CLAIM_MS_MAX).catch(() => {}); // It ends by itself.
  };
  if (await findDeadLetter(bus, sequence)) return leave;
  await leave();
  const text = `Cannot ${act} dead letter ${sequence}: another operator has retried or dropped it`;
  throw new ActorError("not_found", text);
}

async function removeLetter(bus: Bus, { sequence }: DeadLetter): Promise<void> {
  try {
    await bus.jetstream.streams.deleteMessage(STREAMS.dead, sequence, false);
  } catch (error) {
    // The limits of the stream may have removed it.
    if (!(error instanceof JetStreamApiError) || !GONE.has(error.code)) throw error;
  }
}

function readLetter(stored: StoredMsg): DeadLetter {
  const letter = StoredLetter.parse(stored.json());
  return { sequence: stored.seq, address: deadAddress(stored.subject), ...letter };
}
