/** The forward proxy's own messages on the wire: parses a CONNECT target, and responds in place of an origin. */
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { EgressError } from "./egress-error.ts";
import type { EgressTarget } from "./egress-guard.ts";
import { EGRESS_FIELD } from "./http-headers.ts";

export const CHALLENGE = 'Basic realm="trunkline-egress"';

/** The value of `Proxy-Authorization` (RFC 7617). */
export function basicAuthorization(credentials: { username: string; password: string }): string {
  const { username, password } = credentials;
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** Parses `host:port` of a CONNECT request (RFC 9110, section 9.3.6) and normalises the host as in a URL. */
export function parseAuthority(authority: string): EgressTarget | undefined {
  const parts = /^(\[[0-9A-Fa-f:.]+\]|[^\s:/?#@[\]\\]+):(\d{1,5})$/.exec(authority);
  if (parts?.[1] === undefined || Number(parts[2]) > 65_535) return undefined;
  const url = URL.parse(`http://${parts[1]}/`);
  return url === null ? undefined : { host: url.hostname, port: Number(parts[2]) };
}

export function answerFailure(response: ServerResponse, failure: EgressError): void {
  if (response.headersSent) {
    // A partial response must not look complete, so the connection is closed.
    response.destroy();
    return;
  }
  const status = statusOf(failure);
  const type = { "Content-Type": "text/plain; charset=utf-8", Connection: "close" };
  // The status text is set explicitly. Otherwise Node would use the text of the origin, set by an earlier attempt
  // that failed.
  response.writeHead(status, STATUS_CODES[status] ?? "", { ...type, ...labelsOf(failure) });
  response.end(`${failure.message}\n`);
}

export function refuseTunnel(client: Socket, status: number, headers: Record<string, string> = {}) {
  const fields = { ...headers, "Content-Length": "0", Connection: "close" };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  client.end(`HTTP/1.1 ${status} Refused\r\n${lines.join("")}\r\n`, () => client.destroy());
}

export function statusOf({ code }: EgressError): number {
  if (code === "address_refused") return 403;
  return code === "navigation_timed_out" ? 504 : 502;
}

/** Returns the header that distinguishes responses of the proxy from responses of an origin with the same status. */
export function labelsOf({ code }: EgressError): Record<string, string> {
  return { [EGRESS_FIELD]: code === "address_refused" ? "refused" : code };
}

export function tooLarge(detail: string): EgressError {
  const message = "Cannot fetch: more bytes came than one task may move";
  return new EgressError("transfer_too_large", message, detail);
}

/** Returns the error for a request whose client has left or whose permission to be sent has expired. */
export function notWanted(): EgressError {
  const message = "Cannot fetch: the request was cancelled";
  return new EgressError("connection_closed", message, "it was taken back");
}
