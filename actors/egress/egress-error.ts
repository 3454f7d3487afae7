/** Describes why a target could not be reached: a message for the client, and exact details for the log. */
import { ActorError, type ErrorCode } from "../../schemas/errors.ts";

export type EgressCode = Extract<
  ErrorCode,
  | "address_refused"
  | "name_not_resolved"
  | "connection_refused"
  | "address_unreachable"
  | "connection_closed"
  | "navigation_timed_out"
  | "certificate_invalid"
  | "too_many_redirects"
  | "transfer_too_large"
  | "network_failed"
>;

/** The message is for the client. `detail` may name internal addresses, so it is only for the log. */
export class EgressError extends ActorError {
  declare readonly code: EgressCode;
  readonly detail: string;

  constructor(code: EgressCode, message: string, detail: string, options: ErrorOptions = {}) {
    super(code, message);
    this.name = "EgressError";
    this.detail = detail;
    if (options.cause !== undefined) this.cause = options.cause;
  }
}

/**
 * The name was not looked up, because unfinished lookups of other names held the slots until the timeout. The target
 * is not the cause.
 */
export class NoLookupSlotError extends EgressError {
  constructor(host: string, detail: string, options: ErrorOptions) {
    const message = `Cannot fetch from ${host}: too many other names did not resolve in time`;
    super("navigation_timed_out", message, detail, options);
    this.name = "NoLookupSlotError";
  }
}

/** Converts an error of a socket, a lookup or a parser to an `EgressError` about `host`. */
export function toEgressError(error: unknown, host: string): EgressError {
  if (error instanceof EgressError) return error;
  const systemCode = systemCodeOf(error);
  const code = codeOf(systemCode);
  const detail = error instanceof Error ? `${systemCode} ${error.message}` : String(error);
  return new EgressError(code, `Cannot fetch from ${host}: ${WHAT_IS_SO[code]}`, detail, {
    cause: error,
  });
}

/** Creates an error in the form of Node's system errors. */
export function systemError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

const WHAT_IS_SO: Record<EgressCode, string> = {
  address_refused: "its address is not one this service fetches",
  name_not_resolved: "its name cannot be resolved",
  connection_refused: "it refused the connection",
  address_unreachable: "its address cannot be reached",
  connection_closed: "it closed the connection",
  navigation_timed_out: "it did not answer in time",
  certificate_invalid: "its TLS certificate is not valid",
  too_many_redirects: "it redirects too often",
  transfer_too_large: "more bytes came than one task may move",
  network_failed: "it broke the protocol",
};

function systemCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if (error.name === "TimeoutError") return "ETIMEDOUT";
  return "code" in error ? String(error.code) : "";
}

function codeOf(systemCode: string): EgressCode {
  switch (systemCode) {
    case "ENOTFOUND":
    case "ENODATA":
    case "EAI_AGAIN":
    case "EAI_FAIL":
    case "EAI_NODATA":
    case "EAI_NONAME":
      return "name_not_resolved";
    case "ECONNREFUSED":
      return "connection_refused";
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
    case "EACCES":
    case "EINVAL":
      return "address_unreachable";
    case "ECONNRESET":
    case "ECONNABORTED":
    case "EPIPE":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return "connection_closed";
    case "ETIMEDOUT":
      return "navigation_timed_out";
    default:
      return isCertificateCode(systemCode) ? "certificate_invalid" : "network_failed";
  }
}

/** Whether the code is a verification result of OpenSSL, or Node's own code for a certificate with another name. */
function isCertificateCode(systemCode: string): boolean {
  return (
    systemCode.includes("CERT") ||
    systemCode === "UNABLE_TO_VERIFY_LEAF_SIGNATURE" ||
    systemCode === "HOSTNAME_MISMATCH" ||
    systemCode === "INVALID_CA"
  );
}
