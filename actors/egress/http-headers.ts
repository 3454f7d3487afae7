/** Headers that a proxy forwards: all but those of one connection (RFC 9110, section 7.6.1). */
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
  // Never passed on: the one would be read as if we had said it, the other is between a browser and us.
  EGRESS_FIELD.toLowerCase(),
  MARK_HEADER,
]);

/** The headers without hop-by-hop ones, those `Connection` names, any `Proxy-…`, and those in `without`. */
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

/** A sender may not talk us out of these by naming them in `Connection`. */
const FRAMING = new Set(["content-length", "host", "content-encoding", "content-type"]);

function pairsOf(headers: RawHeaders): [string, string][] {
  const pairs: [string, string][] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    pairs.push([headers[index] ?? "", headers[index + 1] ?? ""]);
  }
  return pairs;
}
