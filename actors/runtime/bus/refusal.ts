/**
 * Distinguishes refusals, to which a caller can react, from faults of the platform, and encodes refusals for the bus.
 */
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import type { ZodError } from "zod";
import { ActorError, ERRORS, type ErrorCode, type ErrorDetails } from "../../../schemas/errors.ts";
import { FAULT_CHARS_MAX, FAULTS_MAX } from "../../../schemas/limits.ts";

/** Returns the refusal that an error stands for, or undefined if the error is a fault. */
export function refusalOf(error: unknown): ActorError | undefined {
  if (error instanceof ActorError) return error;
  if (error instanceof InvalidInput) return error.refusal;
  return undefined;
}

/**
 * An error for the input of a message that its schema refuses. Any other ZodError concerns the platform's own values
 * and is a fault.
 */
export class InvalidInput extends Error {
  readonly refusal: ActorError;

  constructor(message: string, error: ZodError) {
    super(`Cannot read ${message}`, { cause: error });
    const faults = error.issues.slice(0, FAULTS_MAX).map((issue) => ({
      pointer: shortened(issue.path.map(pointerToken).join("")),
      message: shortened(issue.message),
    }));
    const first = faults[0] ? `: ${faults[0].pointer}: ${faults[0].message}` : "";
    this.refusal = new ActorError("invalid_request", `Cannot read ${message}${first}`, { faults });
  }
}

/** Escapes `~` and `/`, which have a special meaning in a JSON pointer (RFC 6901 section 3). */
const pointerToken = (name: PropertyKey) =>
  `/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;

// Pointers and messages of faults can contain parts of the caller's input, which may be as long as a message.
const shortened = (text: string) =>
  text.length > FAULT_CHARS_MAX ? `${text.slice(0, FAULT_CHARS_MAX)}…` : text;

/**
 * Encodes a refusal as an answer on the bus: headers of ADR-32, so that any NATS tool shows an error, and the
 * complete refusal as JSON.
 */
export function encodeRefusal(error: ActorError): { headers: MsgHdrs; payload: string } {
  const { code, message, details } = error;
  const built = headers();
  // Header values end at a line break.
  built.set("Nats-Service-Error", message.replace(/[\r\n]+/g, " "));
  built.set("Nats-Service-Error-Code", String(ERRORS[code].status));
  return { headers: built, payload: JSON.stringify({ code, message, details }) };
}

export function decodeRefusal(payload: string): ActorError {
  const { code, message, details } = JSON.parse(payload) as {
    code: string;
    message: string;
    details?: ErrorDetails;
  };
  // A newer host may use codes that this process does not know.
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : "internal_error";
  return new ActorError(known, message, details);
}
