/** Reads a message by its contract on its way in, and its reply on its way out. */
import type { Contract, MessageSchema } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { InvalidInput } from "../bus/refusal.ts";

/** Throws ActorError where the contract has no such message, and InvalidInput where its schema refuses the input. */
export function readMessage(
  { kind, messages }: Contract,
  message: string,
  input: unknown,
): { schema: MessageSchema; input: unknown } {
  const schema = Object.hasOwn(messages, message) && messages[message];
  if (!schema) {
    const known = Object.keys(messages).join(", ");
    const text = `Cannot handle "${message}": ${kind} knows ${known}`;
    throw new ActorError("invalid_request", text);
  }
  const read = schema.input.safeParse(input);
  if (!read.success) throw new InvalidInput(message, read.error);
  return { schema, input: read.data };
}

/** JSON text; `null` for a message that is not answered. What the contract does not name does not leave. */
export function encodeReply(schema: MessageSchema, message: string, reply: unknown): string {
  const text = JSON.stringify(schema.reply?.parse(reply) ?? null);
  if (Buffer.byteLength(text) > MESSAGE_BYTES_MAX) {
    throw new Error(`Cannot reply to ${message}: past ${MESSAGE_BYTES_MAX} bytes`);
  }
  return text;
}
