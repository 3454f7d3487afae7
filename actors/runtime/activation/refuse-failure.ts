/** Converts an error of a handler to the refusal of its message. */
import type { Logger } from "pino";
import { ActorError } from "../../../schemas/errors.ts";
import { refusalOf } from "../bus/refusal.ts";
import { inRequestOf } from "../lib/trace.ts";
import type { IncomingCall } from "../shards/incoming.ts";

/** Returns the refusal. Logs a fault with the request id of the message, but does not log a refusal. */
export function refuseFailure(
  error: unknown,
  { message, trace }: Pick<IncomingCall, "message" | "trace">,
  { logger, kind, key }: { logger: Logger; kind: string; key: string },
): ActorError {
  const refusal = refusalOf(error);
  if (refusal) return refusal;
  inRequestOf(trace, () => logger.error({ err: error, kind, key, message }, "handler failed"));
  return new ActorError("internal_error", `Cannot handle ${message}: see the log`);
}
