/** The header fields that a caller may add to the requests of a page. */
import { z } from "zod";
import { HEADER_NAME_CHARS_MAX, HEADER_VALUE_CHARS_MAX, HEADERS_MAX } from "../limits.ts";

// RFC 9110 sections 5.6.2 (token) and 5.5 (value): a value has visible characters, and blanks and tabs only between
// them. Characters above U+00FF are refused, because a header field cannot contain them as single bytes.
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

// Fields that concern a single connection or the framing of the message (RFC 9110 section 7.6.1, RFC 9112), or that
// name the receiver of the message. The browser and the proxy set these fields.
const REFUSED = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const FieldName = z
  .string()
  .max(HEADER_NAME_CHARS_MAX)
  .regex(TOKEN, { error: "Expected a field name of RFC 9110: letters, digits and !#$%&'*+-.^_`|~" })
  .refine((name) => !isRefused(name.toLowerCase()), {
    error: "Expected another header: hop-by-hop headers, Proxy-* and Host are reserved",
  });

export const ExtraHeaders = z
  .record(FieldName, fieldValue(HEADER_VALUE_CHARS_MAX), {
    // Returns the message of the rule that a field name broke, instead of "invalid key".
    error: (issue) => (issue.code === "invalid_key" ? issue.issues[0]?.message : undefined),
  })
  .refine((headers) => Object.keys(headers).length <= HEADERS_MAX, {
    error: `Expected at most ${HEADERS_MAX} fields`,
  })
  .describe(
    "Header fields added to every request of the page, whichever host it goes to. User-Agent names the browser; Accept, Origin and Sec-Fetch-* are the browser's own where it writes them",
  )
  .meta({ secret: true });

/** Returns the schema of a field value with this limit of characters. */
export function fieldValue(charsMax: number) {
  return z.string().max(charsMax).regex(VALUE, {
    error: "Expected a field value of RFC 9110: no control characters, no blanks at its ends",
  });
}

function isRefused(name: string): boolean {
  return REFUSED.has(name) || name.startsWith("proxy-");
}
