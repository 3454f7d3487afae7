/** The form of a call and its answer on the bus. Any NATS tool can make a call: `{"message":"get","input":{}}`. */
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { CALL_BATCH_MAX, CALL_DEADLINE_MS } from "../../../schemas/limits.ts";
import { parseJson } from "../../../schemas/parse-json.ts";
import type { Bus, ReceivedMessage } from "../bus/bus.ts";
import { decodeRefusal, encodeRefusal } from "../bus/refusal.ts";
import { REQUEST_HEADER, traceOf } from "../lib/trace.ts";
import type { Answer, IncomingCall } from "../shards/incoming.ts";
import { BatchAnswers } from "./call-batches.ts";

/** Limits the characters of a message's name, because answers, headers and logs repeat the name. */
const MESSAGE_NAME_CHARS_MAX = 128;

/**
 * `client` and `number` identify the call. The client no longer waits for its calls below `settled`
 * (RememberedReplies).
 */
const CallMessage = z.object({
  message: z.string().max(MESSAGE_NAME_CHARS_MAX),
  input: z.unknown().default({}),
  client: z.string().optional(),
  number: z.number().optional(),
  settled: z.number().optional(),
  deadlineAt: z.number().optional(),
  /** The request that caused this call, in the form of REQUEST_HEADER. */
  request: z.string().optional(),
});
export type CallMessage = z.input<typeof CallMessage>;

/** HTTP status 421, "Misdirected Request", in the error code header of an answer. */
const MISDIRECTED_CODE = "421";
/** Set in such an answer to a call that was not run, because its deadline had passed. */
const LATE_HEADER = "Trunkline-Late";
/** The answer of a host that does not own the key: the caller sends the call again. */
const MISDIRECTED = encodeMisdirected();
const LATE = encodeMisdirected();
LATE.headers.set(LATE_HEADER, "true");

/** An answer as the caller receives it. `misdirected`: the host has no answer, so the call is sent again. */
export type CallAnswer =
  | { reply: unknown }
  | { refusal: ActorError }
  | { misdirected: true; isLate?: boolean };

/** Reads the calls of a message: one call, or an array of calls. Refuses calls that cannot be read. */
export function readCalls(bus: Bus, heard: ReceivedMessage, now: number): IncomingCall[] {
  const common = { now, trace: traceOf(heard.headers) };
  const sent = parseJson(heard.string());
  if (!Array.isArray(sent) || sent.length === 0) {
    const call = readCall(sent, common, (answer) => answerCall(bus, heard.reply, answer));
    return call ? [call] : [];
  }
  if (sent.length > CALL_BATCH_MAX) {
    const text = `Cannot read calls: at most ${CALL_BATCH_MAX} go in one message`;
    answerCall(bus, heard.reply, { refusal: new ActorError("invalid_request", text) });
    return [];
  }
  const answers = new BatchAnswers(bus, heard.reply ?? "");
  return sent.flatMap((one: unknown) => {
    const number = numberOf(one);
    return readCall(one, common, (answer) => answerInBatch(answers, number, answer)) ?? [];
  });
}

function readCall(
  sent: unknown,
  { now, trace }: { now: number; trace: IncomingCall["trace"] },
  respond: IncomingCall["respond"],
): IncomingCall | undefined {
  // Our own clients send tens of thousands of calls of this shape per second. Only other calls get a full parse.
  const read = isOwnCall(sent) ? sent : CallMessage.safeParse(sent).data;
  if (!read) {
    const expected = 'expected JSON like {"message":"<name>","input":{}}';
    respond({ refusal: new ActorError("invalid_request", `Cannot read call: ${expected}`) });
    return undefined;
  }
  const { message, input, client, number, settled = 0, deadlineAt, request } = read;
  return {
    message,
    input,
    ...(client !== undefined && number !== undefined && { id: { client, number, settled } }),
    deadlineAt: deadlineAt ?? now + CALL_DEADLINE_MS,
    trace: request === undefined ? trace : { ...trace, [REQUEST_HEADER]: request },
    respond,
  };
}

/**
 * Returns the number that identifies an answer within a batch; `null` for a call from an operator's tool, which has
 * no number.
 */
function numberOf(sent: unknown): number | null {
  const { number } = (sent ?? {}) as { number?: unknown };
  return typeof number === "number" ? number : null;
}

function isOwnCall(value: unknown): value is z.infer<typeof CallMessage> {
  if (typeof value !== "object" || value === null) return false;
  const call = value as Record<string, unknown>;
  return (
    typeof call.message === "string" &&
    call.message.length <= MESSAGE_NAME_CHARS_MAX &&
    typeof call.client === "string" &&
    typeof call.number === "number" &&
    typeof call.settled === "number" &&
    typeof call.deadlineAt === "number"
  );
}

function answerCall(bus: Bus, inbox: string | undefined, answer: Answer): void {
  if (!inbox || "dropped" in answer) return;
  if ("reply" in answer) {
    bus.publish(inbox, answer.reply);
    return;
  }
  const misdirected = "isLate" in answer ? LATE : MISDIRECTED;
  const { headers, payload } = "refusal" in answer ? encodeRefusal(answer.refusal) : misdirected;
  bus.publish(inbox, payload, { headers });
}

/** One answer in an array of answers. A `refusal` has the same text as in the answer to a single call. */
type BatchAnswer = { number: number } & (
  | { reply: unknown }
  | { refusal: string }
  | { misdirected: true; isLate?: true }
);

function answerInBatch(answers: BatchAnswers, number: number | null, answer: Answer): void {
  // The reply is JSON text already.
  if ("reply" in answer) answers.add(`{"number":${number},"reply":${answer.reply}}`);
  else if ("refusal" in answer) {
    const refusal = encodeRefusal(answer.refusal).payload;
    answers.add(JSON.stringify({ number, refusal }));
  } else if ("misdirected" in answer) answers.add(JSON.stringify({ number, ...answer }));
}

/** Reads the answer to a call that was sent alone. */
export function readAnswer(heard: ReceivedMessage): CallAnswer {
  const { headers } = heard;
  if (!headers) return { reply: JSON.parse(heard.string()) };
  // Status 503: no host owns the shard at this moment. Code 421: the owner of the shard has just changed.
  return headers.code === 503 || headers.get("Nats-Service-Error-Code") === MISDIRECTED_CODE
    ? { misdirected: true, isLate: headers.has(LATE_HEADER) }
    : { refusal: decodeRefusal(heard.string()) };
}

/** Reads answers to calls that were sent together. */
export function readBatchAnswers(heard: ReceivedMessage): { number: number; answer: CallAnswer }[] {
  // Written by `answerInBatch`.
  const answers = JSON.parse(heard.string()) as BatchAnswer[];
  return answers.map((answer) => ({
    number: answer.number,
    answer: "refusal" in answer ? { refusal: decodeRefusal(answer.refusal) } : answer,
  }));
}

function encodeMisdirected() {
  const refusal = new ActorError("unavailable", "Cannot answer: the key lives on another host");
  const { headers, payload } = encodeRefusal(refusal);
  headers.set("Nats-Service-Error-Code", MISDIRECTED_CODE);
  return { headers, payload };
}
