/**
 * Selects the headers that a proxy forwards: all except those that belong to one connection (RFC 9110, section
 * 7.6.1).
 */
import { MARK_HEADER } from "./marked-requests.ts";

/** Names and values alternate, as in Node's `rawHeaders`, so that order, case and repetition survive. */
type RawHeaders = string[];

/** Marks responses that the proxy itself made. The proxy removes this header from an origin's responses. */
export const EGRESS_FIELD = "X-Trunkline-Egress";

const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  // These two are never forwarded. In a response, the first would look like a label of this proxy. The second is only
  // for the browser and this proxy.
  EGRESS_FIELD.toLowerCase(),
  MARK_HEADER,
]);

/**
 * Returns the headers without hop-by-hop headers, headers that `Connection` names, all `Proxy-…` headers, and those
 * in `without`.
 */
export function endToEndHeaders(headers: RawHeaders, without: readonly string[] = []): RawHeaders {
  const dropped = new Set([...without, ...namedByConnection(headers)]);
  return pairsOf(headers)
    .filter(([name]) => {
      const lowerCase = name.toLowerCase();
      return !(
        HOP_BY_HOP.has(lowerCase) ||
        dropped.has(lowerCase) ||
        lowerCase.startsWith("proxy-")
      );
    })
    .flat();
}

export function hasHeader(headers: RawHeaders, wanted: string): boolean {
  return pairsOf(headers).some(([name]) => name.toLowerCase() === wanted);
}

function namedByConnection(headers: RawHeaders): string[] {
  return pairsOf(headers)
    .filter(([name]) => name.toLowerCase() === "connection")
    .flatMap(([, value]) => value.split(","))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !FRAMING.has(name));
}

/** These headers are forwarded even if the sender names them in `Connection`. */
const FRAMING = new Set(["content-length", "host", "content-encoding", "content-type"]);

function pairsOf(headers: RawHeaders): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    pairs.push([headers[index] ?? "", headers[index + 1] ?? ""]);
  }
  return pairs;
}
