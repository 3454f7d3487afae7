/** The messages that come to an actor: calls, which are answered, and deliveries of mail and reminders. */
import type { CallId } from "../../../schemas/call-id.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { MAIL_RETRY_MS, MAIL_RETRY_MS_MAX } from "../../../schemas/limits.ts";
import type { TraceCarrier } from "../lib/trace.ts";
import type { DirectSend } from "./shard.ts";

/**
 * Mail to an app's code that meets only temporary errors is given up after this time. An app may never start, and a
 * shard's mail is removed in its order. The time is shorter than DELIVERY_ANSWER_MS_MAX, so that the log of an agent's
 * events shows the error.
 */
export const HOSTED_MAIL_MS_MAX = 240_000;

/**
 * `reply` is JSON text. `misdirected`: this host has no answer, send the call again; `isLate`: it has not run the
 * call, whose deadline has passed. `dropped`: the caller has an answer already; send no reply.
 */
export type Answer =
  | { reply: string }
  | { refusal: ActorError }
  | { misdirected: true; isLate?: true }
  | { dropped: true };

export interface IncomingCall {
  message: string;
  input: unknown;
  /** Absent in a call by an operator's tool, which never repeats it. */
  id?: CallId;
  deadlineAt: number;
  trace?: TraceCarrier | undefined;
  respond(answer: Answer): void;
}

/** Mail, or a reminder that came due. The host delivers it until its effect is durable, and then calls `done`. */
export interface Delivery {
  message: string;
  input: unknown;
  /** The sequence of mail that was read from its stream. A reminder has `dueAt` instead, and mail within the host `direct`. */
  sequence?: number;
  dueAt?: number;
  direct?: DirectSend;
  trace?: TraceCarrier | undefined;
  tries: number;
  /** Monotonic time of the first temporary error. Only hosted kinds use it. */
  failingSince?: number;
  done(): void;
}

/** Returns the pause before mail that has failed this many times is delivered again. */
export const mailPauseMs = (failures: number) =>
  Math.min(MAIL_RETRY_MS * 2 ** (failures - 1), MAIL_RETRY_MS_MAX);

/** Notes a temporary error of mail to a hosted kind. Returns true if there have been such errors for too long. */
export function isOverdue(delivery: Delivery, now: number): boolean {
  delivery.failingSince ??= now;
  return now - delivery.failingSince >= HOSTED_MAIL_MS_MAX;
}

/** The messages that an ended activation leaves to the next one. `careful`: see `Activation.doubt`. */
export interface Waiting {
  deliveries: Delivery[];
  calls: IncomingCall[];
  careful: boolean;
}

/** The answer of an actor whose limit of waiting work is reached. */
export function busy(address: string, reason: string): Answer {
  const message = `Cannot call ${address}: ${reason}`;
  return { refusal: new ActorError("busy", message, { retryAfterS: 1 }) };
}

/** The answer to a call whose deadline has passed. */
export const LATE: Answer = { misdirected: true, isLate: true };

/**
 * The answer to a call that must not be repeated and whose outcome is unknown. The code is not `unavailable`, because
 * callers repeat a call after that code.
 */
export const GIVEN_UP: Answer = {
  refusal: new ActorError(
    "deadline_exceeded",
    "Cannot finish: the host stopped waiting for the call, which may or may not have had its effect",
  ),
};
