/** Translates Chromium's errors about documents that do not load into our error codes and messages. */
import { ActorError, type ErrorCode } from "../../../../schemas/errors.ts";
import type { EgressFailure } from "../../../egress/egress-failures.ts";

// Rules for Chromium's error names (net_error_list.h). The first rule that matches counts.
const RULES: [RegExp, ErrorCode, string][] = [
  [
    /^ERR_CERT_|^ERR_BAD_SSL_CLIENT_AUTH/,
    "certificate_invalid",
    "its TLS certificate is not valid",
  ],
  [
    /^ERR_ADDRESS_UNREACHABLE$|^ERR_ADDRESS_INVALID$/,
    "address_unreachable",
    "its address cannot be reached",
  ],
  [
    /^ERR_ABORTED$/,
    "navigation_timed_out",
    "it was aborted; it may be a download or have no content",
  ],
  [/TIMED_OUT$/, "navigation_timed_out", "it did not answer in time"],
  [/^ERR_TOO_MANY_REDIRECTS$/, "too_many_redirects", "it redirects too often"],
  [/^ERR_HTTP2_/, "http2_failed", "it broke the HTTP/2 protocol"],
  [/^ERR_NAME_|^ERR_DNS_/, "name_not_resolved", "its name cannot be resolved"],
  [/^ERR_CONNECTION_REFUSED$/, "connection_refused", "it refused the connection"],
  [/^ERR_CONNECTION_|^ERR_TUNNEL_/, "connection_closed", "it closed the connection"],
  [/^ERR_HTTP_RESPONSE_CODE_FAILURE$/, "response_failed", "it answered an error without content"],
  [/^ERR_EMPTY_RESPONSE$/, "empty_response", "it answered nothing"],
  [
    /^ERR_BLOCKED_|^ERR_INVALID_URL$|^ERR_FILE_|^ERR_ACCESS_DENIED$|^ERR_UNSAFE_PORT$|^ERR_DISALLOWED_URL_SCHEME$|^ERR_UNKNOWN_URL_SCHEME$/,
    "address_refused",
    "its address is not one this service fetches",
  ],
];

/**
 * Returns the refusal for a document that did not load. The failure that the proxy recorded takes precedence over the
 * error of Chromium.
 */
export function navigationError(
  netError: string,
  address: string,
  egress: EgressFailure | undefined,
): ActorError {
  const what = `Cannot load ${hostOf(address)}`;
  if (egress !== undefined) return new ActorError(egress.code, `${what}: ${reasonOf(egress)}`);
  const [, code, reason] = RULES.find(([rule]) => rule.test(netError)) ?? [];
  if (code === undefined) return new ActorError("network_failed", `${what}: ${netError}`);
  return new ActorError(code, `${what}: ${reason} (${netError})`);
}

/** Returns the `ERR_…` code that puppeteer passes on; undefined if the error contains none. */
export function netErrorOf(error: unknown): string | undefined {
  return error instanceof Error ? /\bnet::(ERR_[A-Z0-9_]+)/.exec(error.message)?.[1] : undefined;
}

export function hostOf(address: string): string {
  return URL.parse(address)?.host || "the page";
}

/** Returns the reason without the host. Error messages of the proxy have the same form and name the same host. */
function reasonOf({ message }: EgressFailure): string {
  return message.slice(message.indexOf(": ") + 2);
}

/**
 * Matches the errors that puppeteer throws when a page navigates during a call. They have no class of their own, only
 * these texts.
 */
const NAVIGATED_AWAY =
  /Execution context (?:was destroyed|is not available)|detached|Cannot find context/i;

/** Whether the page has navigated away during an operation on it. */
export const hasNavigatedAway = ({ message }: Error) => NAVIGATED_AWAY.test(message);
