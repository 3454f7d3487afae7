/** The addresses from which repositories are imported. */

/** The text that follows the field's name when `importUrlOf` refuses an address. */
export const IMPORT_URL_RULE =
  'must be the HTTPS address of a git repository (e.g. "https://example.com/owner/repo.git"). Expected an ASCII host name without a final dot, or a complete IP address; no user, password, backslash, # or blanks';

/**
 * Parses an address that our own URL parser and git's HTTP library must read in the same way. Returns undefined for a
 * text in which they could find different hosts. The guard would then check one host, and git would connect to the
 * other. In `https://public.example\@127.0.0.1/`, for example, the parser ends the host at the backslash, and git
 * takes everything before `@` for a user. They also differ about numeric hosts such as `0x7f.1`, percent-encoded
 * hosts, hosts with a last dot, empty users and ports, and missing or additional slashes.
 */
export function importUrlOf(text: string): URL | undefined {
  const host = PLAIN.exec(text)?.[1];
  const url = host === undefined ? null : URL.parse(text);
  if (host === undefined || url === null) return undefined;
  // The parser normalises IPv4 addresses. An IPv6 address in brackets has no second reading.
  return host.startsWith("[") || host.toLowerCase() === url.hostname ? url : undefined;
}

/** The path and the query may have all printable characters of ASCII but backslash and `#`. */
const PLAIN =
  /^https:\/\/(\[[\d.:a-f]+\]|[a-z\d_](?:[\w.-]*[\w-])?)(?::\d{1,5})?(?:[/?][!"$-[\]-~]*)?$/i;
