/** What comes to an actor: calls, which are answered, and deliveries of mail and reminders. */
import type { CallId } from "../../../schemas/call-id.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { MAIL_RETRY_MS, MAIL_RETRY_MS_MAX } from "../../../schemas/limits.ts";
import type { TraceCarrier } from "../lib/trace.ts";
import type { DirectSend } from "./shard.ts";

/** `reply` is JSON text. `misdirected`: not here any more, ask again. `dropped`: nobody waits for an answer. */
export type Answer =
  | { reply: string }
  | { refusal: ActorError }
  | { misdirected: true }
  | { dropped: true };

export interface IncomingCall {
  message: string;
  input: unknown;
  /** Absent in a call by hand, which nobody repeats. */
  id?: CallId;
  deadlineAt: number;
  trace?: TraceCarrier | undefined;
  respond(answer: Answer): void;
}

/** Mail, or a reminder that came due: it is delivered until its effect is durable, and then `done`. */
export interface Delivery {
  message: string;
  input: unknown;
  /** Position in the stream of mail; a reminder has the time it was set for instead, and mail of this host is named itself. */
  sequence?: number;
  dueAt?: number;
  direct?: DirectSend;
  trace?: TraceCarrier | undefined;
  tries: number;
  done(): void;
}

/** Before mail that failed so often is tried again. */
export const mailPauseMs = (failures: number) =>
  Math.min(MAIL_RETRY_MS * 2 ** (failures - 1), MAIL_RETRY_MS_MAX);

/** What an activation that ended leaves to the next. `careful`: see `Activation.doubt`. */
export interface Waiting {
  deliveries: Delivery[];
  calls: IncomingCall[];
  careful: boolean;
}

/** The answer of an actor that has as much before it as it takes. */
export function busy(address: string, reason: string): Answer {
  const message = `Cannot call ${address}: ${reason}`;
  return { refusal: new ActorError("busy", message, { retryAfterS: 1 }) };
}

/** Not `unavailable`: callers take that for something that may pass, and ask again. */
export const GIVEN_UP: Answer = {
  refusal: new ActorError(
    "deadline_exceeded",
    "Cannot finish: its host gave it up, and whether it had its effect is not known",
  ),
};
