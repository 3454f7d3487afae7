/** Tells a refusal, which its caller can act on, from a fault, which is ours; and carries refusals over the bus. */
import { headers, type MsgHdrs } from "@nats-io/transport-node";
import type { ZodError } from "zod";
import { ActorError, ERRORS, type ErrorCode, type ErrorDetails } from "../../schemas/errors.ts";

/** The refusal an error stands for, or undefined for a fault. A ZodError here is of a message's input. */
export function refusalOf(error: unknown): ActorError | undefined {
  if (error instanceof ActorError) return error;
  if (error instanceof InvalidInput) return error.refusal;
  return undefined;
}

/** A message's input that its schema refuses; other ZodErrors are of our own values, and faults. */
export class InvalidInput extends Error {
  readonly refusal: ActorError;

  constructor(message: string, error: ZodError) {
    super(`Cannot read ${message}`, { cause: error });
    const faults = error.issues.map((issue) => ({
      pointer: `/${issue.path.map(String).join("/")}`,
      message: issue.message,
    }));
    const first = faults[0] ? `: ${faults[0].pointer}: ${faults[0].message}` : "";
    this.refusal = new ActorError("invalid_request", `Cannot read ${message}${first}`, { faults });
  }
}

/** As an answer on the bus: headers of ADR-32, so that any NATS tool sees an error, and the whole as JSON. */
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
  // A newer host may know codes that this process does not.
  const known = Object.hasOwn(ERRORS, code) ? (code as ErrorCode) : "internal_error";
  return new ActorError(known, message, details);
}
