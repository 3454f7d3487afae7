/** Runs one handler as a pure function: reads the message by its schema, and checks what the handler returns. */
import { strict as assert } from "node:assert";
import { LIVE_BYTES_MAX } from "../../../schemas/limits.ts";
import type { AnyActorDefinition, HandlerContext } from "./define-actor.ts";
import { encodeReply, readMessage } from "./read-message.ts";
import { type Effects, readTransition } from "./transition.ts";

export interface Ran {
  /** JSON text; `null` for a message without a reply. */
  reply: string;
  /** The same object as the given state if nothing changed. */
  state: unknown;
  effects: Effects | undefined;
  /** JSON text for subscribers; empty if the update is too large. */
  live: string | undefined;
}

/**
 * Runs one message. Throws ActorError if the handler refuses, InvalidInput if the schema refuses the input, and any
 * other error for a fault.
 */
export function runMessage(
  definition: AnyActorDefinition,
  address: string,
  run: { message: string; input: unknown; state: unknown; context: HandlerContext<unknown> },
): Ran {
  const { contract, handlers } = definition;
  const { message } = run;
  const { schema, input } = readMessage(contract, message, run.input);
  const handler = handlers[message];
  assert(handler, `${contract.kind} has no handler for ${message}`);
  const transition = handler(run.state, input, run.context);
  const reply = encodeReply(schema, message, transition.reply);
  return {
    reply,
    state: transition.forget ? definition.initial : transition.state,
    effects: readTransition(definition, address, transition),
    live: readLive(definition, transition.live),
  };
}

function readLive({ contract }: AnyActorDefinition, live: unknown): string | undefined {
  if (live === undefined) return undefined;
  assert(contract.live, `${contract.kind} has nothing live`);
  const text = JSON.stringify(contract.live.parse(live));
  return Buffer.byteLength(text) > LIVE_BYTES_MAX ? "" : text;
}
