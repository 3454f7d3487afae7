/** Reads a message by its contract when it arrives, and its reply when it leaves. */
import type { Contract, MessageSchema } from "../../../schemas/contract.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { MESSAGE_BYTES_MAX } from "../../../schemas/limits.ts";
import { InvalidInput } from "../bus/refusal.ts";

/**
 * Reads a message. Throws ActorError if the contract has no such message, and InvalidInput if the schema refuses the
 * input.
 */
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

/**
 * Returns the reply as JSON text; `null` for a message without a reply. Drops fields that the contract does not name.
 */
export function encodeReply(schema: MessageSchema, message: string, reply: unknown): string {
  const text = JSON.stringify(schema.reply?.parse(reply) ?? null);
  if (Buffer.byteLength(text) > MESSAGE_BYTES_MAX) {
    throw new Error(
      `Cannot reply to ${message}: the reply is larger than ${MESSAGE_BYTES_MAX} bytes`,
    );
  }
  return text;
}
