/**
 * Stores mail, reminders and tasks that failed at their last try, with their error, until an operator retries or
 * drops them.
 */
import { JetStreamApiError, type StoredMsg } from "@nats-io/jetstream";
import type { Logger } from "pino";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { READER_RETRY_MS } from "../../../schemas/limits.ts";
import { mailTo } from "../../../schemas/split-streams.ts";
import {
  addressOf,
  cacheSubject,
  deadAddress,
  deadSubject,
  STREAMS,
} from "../../../schemas/subjects.ts";
import { WriteRefused, writeAtomically } from "../bus/atomic-batch.ts";
import type { Bus } from "../bus/bus.ts";
import { refusalOf } from "../bus/refusal.ts";
import type { Clock } from "../lib/clock.ts";
import { inRequestOf, requestCarrier, requestIdOf } from "../lib/trace.ts";
import type { Delivery } from "../shards/incoming.ts";
import { encodeTask, type Task } from "../tasks/task.ts";

/**
 * Larger than MESSAGE_BYTES_MAX and smaller than the bus's own limit: a client's message fits together with its
 * error.
 */
const DEAD_LETTER_BYTES_MAX = 1_030_000;
/**
 * Limits the kept characters of an error, and of an input that is too large. Only an input that none of our clients
 * wrote can be so large.
 */
const DEAD_LETTER_ERROR_CHARS = 2_000;
const DEAD_LETTER_INPUT_CHARS = 10_000;

// Error codes from nats-server's errors.json. 10057: the message to delete does not exist. 10043: no such sequence.
const GONE = new Set([10043, 10057]);

/** Limits the characters that a retry takes over from a task's id, because an id has at most 128 characters. */
const RETRIED_ID_CHARS = 90;

/**
 * How long an operator's claim keeps other operators from a letter: longer than the two requests to the bus may take.
 */
const CLAIM_S = 30;
/**
 * How long an operator waits for the cache. If the cache does not answer in time, the operator acts without a claim.
 */
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
  /** The sequence in the stream, by which operators name the letter. */
  sequence: number;
  /** `<kind>.<key>` of its receiver. */
  address: string;
}

/** Stores a delivery with its error as a dead letter. Retries until the letter is durable, so this never rejects. */
export async function bury(
  { bus, clock, logger }: { bus: Bus; clock: Clock; logger: Logger },
  address: string,
  { message, input, sequence, dueAt, tries, trace }: Delivery,
  error: Error,
): Promise<void> {
  inRequestOf(trace, () =>
    logger.error({ err: error, address, message, tries }, "message became a dead letter"),
  );
  // If the schema refused the input, the refusal's message names the field.
  const { message: reason } = refusalOf(error) ?? error;
  const told = reason.slice(0, DEAD_LETTER_ERROR_CHARS);
  const requestId = requestIdOf(trace);
  const letter = { message, input, error: told, tries, buriedAt: clock.now(), requestId };
  // Two streams of mail may hold mail with the same sequence, but not to the same actor.
  const id =
    sequence === undefined ? `${address}-${message}-${dueAt}` : `mail-${sequence}-${address}`;
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
 * Stores a task that failed at every try as a dead letter. One letter per kind and key is enough: the sender also
 * gets the failure, and may repeat the task until the cause is gone. Rejects if the letter is not stored.
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
    if (!(cause instanceof WriteRefused) || !cause.conflict || cause.inFlight) throw cause;
  });
}

/**
 * Returns the letter as JSON. Keeps the whole input if one of our clients wrote it. Other input may be too large;
 * then only its beginning is kept.
 */
function encodeLetter(letter: z.infer<typeof StoredLetter>): string {
  const payload = JSON.stringify(letter);
  if (Buffer.byteLength(payload) <= DEAD_LETTER_BYTES_MAX) return payload;
  const input = JSON.stringify(letter.input).slice(0, DEAD_LETTER_INPUT_CHARS);
  return JSON.stringify({ ...letter, input });
}

/**
 * Lists the present letters, the oldest first. Letters that are stored during the listing, by retries that failed,
 * are not included.
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

/** Returns a letter, or undefined if there is no letter with this sequence. */
export async function findDeadLetter(bus: Bus, sequence: number): Promise<DeadLetter | undefined> {
  const found = await bus.readNext(STREAMS.dead, deadSubject(">"), sequence);
  return found?.seq === sequence ? readLetter(found) : undefined;
}

/**
 * Sends the message once more, as mail or as a task of the request that caused it, and then removes the letter. If
 * the call is interrupted and repeated within two minutes, the message is not sent twice, because the stream
 * remembers message ids that long. Rejects with `conflict` while another operator acts on the letter, and with
 * `not_found` after that operator has finished.
 */
export async function retryDeadLetter(bus: Bus, letter: DeadLetter): Promise<void> {
  const leave = await claimLetter(bus, letter, "retry");
  try {
    await writeAtomically(bus, [retryOf(bus, letter)]);
  } catch (error) {
    // If the outcome is unknown, the message may still be stored. So keep the claim: nobody else may drop the letter
    // now.
    if (error instanceof WriteRefused && !error.inFlight) await leave();
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
  // The retry is a separate run under the same request id.
  const trace =
    requestId === undefined ? undefined : requestCarrier(`retry-${sequence}`, requestId);
  if (task) {
    const { subject, key } = task;
    // The letter may come from a process that an attacker has taken over, and operators may publish to all subjects.
    const [kind = ""] = address.split(".", 1);
    if (!subject.replace(/^task-\d+\./, "task.").startsWith(`task.${kind}.`)) {
      const text = `Cannot retry ${sequence}: its task is not one of ${kind}`;
      throw new ActorError("invalid_request", text);
    }
    // For two minutes, the bus remembers the id of the earlier message and would drop a message with the same id. So
    // the retry has a new id.
    const id = `${task.id.slice(0, RETRIED_ID_CHARS)}-retry-${sequence}`;
    return { subject, payload: encodeTask({ id, from, key, message, input, trace }), headers };
  }
  return {
    subject: mailTo(bus.layout, address),
    payload: JSON.stringify({ from, message, input }),
    headers: { ...trace, ...headers },
  };
}

/**
 * Claims a letter for CLAIM_S, so that no other operator acts on it. Returns a function that ends the claim earlier.
 * The claim is in the cache, which may lose it or be unreachable. Then two operators who act at the same time may
 * both succeed, but the message is sent only once.
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
    // The limits of the stream may have removed the letter.
    if (!(error instanceof JetStreamApiError) || !GONE.has(error.code)) throw error;
  }
}

function readLetter(stored: StoredMsg): DeadLetter {
  const letter = StoredLetter.parse(stored.json());
  return { sequence: stored.seq, address: deadAddress(stored.subject), ...letter };
}
