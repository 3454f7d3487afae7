/** How a call and its answer look on the bus. Any NATS tool can make one: `{"message":"get","input":{}}`. */
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { ActorError } from "../../schemas/errors.ts";
import { CALL_DEADLINE_MS, MESSAGE_NAME_CHARS_MAX } from "../../schemas/limits.ts";
import type { Answer, IncomingCall } from "./incoming.ts";
import { encodeRefusal } from "./refusal.ts";
import { traceOf } from "./trace.ts";

/** `client`, `number` and `settled` name the call among those of its client (RememberedReplies). */
const CallMessage = z.object({
  message: z.string().max(MESSAGE_NAME_CHARS_MAX),
  input: z.unknown().default({}),
  client: z.string().optional(),
  number: z.number().optional(),
  settled: z.number().optional(),
  deadlineAt: z.number().optional(),
});
export type CallMessage = z.input<typeof CallMessage>;

/** HTTP's "Misdirected Request", in the error code header of an answer. */
export const MISDIRECTED_CODE = "421";
/** The answer of a host that does not own the key: the caller asks again. */
const MISDIRECTED = encodeMisdirected();

/** Reads a call; `undefined` when it cannot be read, and then it has been answered. */
export function readCall(msg: Msg, now: number): IncomingCall | undefined {
  const respond = (answer: Answer) => answerCall(msg, answer);
  let read: z.infer<typeof CallMessage>;
  try {
    const parsed: unknown = JSON.parse(msg.string());
    // Our own clients send this shape at tens of thousands a second: a full parse is for the others.
    read = isOwnCall(parsed) ? parsed : CallMessage.parse(parsed);
  } catch {
    const expected = 'expected JSON like {"message":"<name>","input":{}}';
    respond({ refusal: new ActorError("invalid_request", `Cannot read call: ${expected}`) });
    return undefined;
  }
  const { message, input, client, number, settled = 0, deadlineAt } = read;
  return {
    message,
    input,
    ...(client !== undefined && number !== undefined && { id: { client, number, settled } }),
    deadlineAt: deadlineAt ?? now + CALL_DEADLINE_MS,
    trace: traceOf(msg.headers),
    respond,
  };
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

function answerCall(msg: Msg, answer: Answer): void {
  if ("dropped" in answer) return;
  if ("reply" in answer) return void msg.respond(answer.reply);
  const { headers, payload } = "refusal" in answer ? encodeRefusal(answer.refusal) : MISDIRECTED;
  msg.respond(payload, { headers });
}

function encodeMisdirected() {
  const refusal = new ActorError("unavailable", "Cannot answer: the key lives on another host");
  const { headers, payload } = encodeRefusal(refusal);
  headers.set("Nats-Service-Error-Code", MISDIRECTED_CODE);
  return { headers, payload };
}
