/** TLS to the servers of the bus: options for `connect`, and error messages that name our settings. */

import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { AuthorizationError } from "@nats-io/transport-node";

/** Paths of PEM files. Each connection reads them again, so that it uses renewed files. */
export interface BusTls {
  /** Authorities that sign the certificates of the servers. Default: the system's authorities. */
  caFile?: string;
  /** The certificate and key of this client, for servers that request one. */
  certFile?: string;
  keyFile?: string;
}

/**
 * Returns options for `connect`, or undefined if the server decides about TLS. Accepts a server's certificate if it
 * is valid for any of the configured servers. For a server with an IP address, the library (3.4.0) would compare the
 * certificate with `localhost`.
 */
export function tlsOptions(tls: BusTls | undefined, servers: readonly string[]) {
  const hosts = servers.map((server) => new URL(server).hostname.replace(/^\[|\]$/g, ""));
  if (!tls && !servers.some((server) => server.startsWith("tls:"))) return undefined;
  return {
    ...tls,
    checkServerIdentity(_name: string, certificate: PeerCertificate): Error | undefined {
      const errors = hosts.map((host) => checkServerIdentity(host, certificate));
      return errors.includes(undefined) ? undefined : errors[0];
    },
  };
}

const UNTRUSTED = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "CERT_SIGNATURE_FAILURE",
]);

/** Returns one line about the error of a connection. */
export function connectProblem(error: unknown): string {
  const [code, message] = [codeOf(error), messageOf(error)];
  if (isLoginTimeout(error)) return "this process was too slow to log in";
  if (error instanceof AuthorizationError) {
    const expected =
      "expected a user and password in TRUNKLINE_NATS_URL, or TRUNKLINE_NATS_NKEYS, that they know";
    return `the servers refuse this user: ${expected}`;
  }
  if (code === "CERT_HAS_EXPIRED") return "the server's certificate has expired";
  if (code === "CERT_NOT_YET_VALID")
    return "the server's certificate is not valid yet; compare the clocks";
  if (UNTRUSTED.has(code)) {
    const expected = "expected TRUNKLINE_NATS_CA to hold the authority that signed it";
    return `the server's certificate is not trusted (${code}): ${expected}`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return "the server's certificate is for other names than TRUNKLINE_NATS_URL has";
  }
  if (message.includes("does not support 'tls'"))
    return "the server has no TLS, which the settings ask for";
  if (/ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA)|CERTIFICATE_REQUIRED/.test(code)) {
    return `the server refuses TRUNKLINE_NATS_CERT (${code})`;
  }
  return message;
}

/** True if a server closed the connection because this process did not log in in time. */
export const isLoginTimeout = (error: unknown): boolean =>
  error instanceof AuthorizationError && /^authentication timeout$/i.test(error.message);

/** Returns the code of the error, or of its nearest cause with a code. */
function codeOf(error: unknown): string {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return "";
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
