/** The normal form of a crawl's addresses, and the key by which two addresses are the same page. */
import { CRAWL_URL_CHARS_MAX, HOST_KEY_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { encodeKey } from "../../../../schemas/subjects.ts";

type CrawlUrl = { valid: true; url: string } | { valid: false; reason: string };

/**
 * Normalises an address by the WHATWG URL standard. Removes the fragment, which no server sees, the credentials, and
 * the last dot of the host.
 */
export function crawlUrl(text: string, base?: string): CrawlUrl {
  if (text.length > CRAWL_URL_CHARS_MAX) return invalid(TOO_LONG);
  const url = URL.parse(text, base);
  if (url === null) return invalid("the address cannot be parsed");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return invalid(`the scheme is ${url.protocol.slice(0, -1)}, not http or https`);
  }
  const name = url.hostname.replace(/\.+$/, "");
  if (name === "") return invalid("the address cannot be parsed");
  // The dot of the root does not make another host (RFC 1034, section 3.1).
  if (name !== url.hostname) url.hostname = name;
  url.hash = "";
  // Credentials belong in the `authenticate` parameter, not in records.
  url.username = "";
  url.password = "";
  // Encoding makes the text longer.
  if (url.href.length > CRAWL_URL_CHARS_MAX) return invalid(TOO_LONG);
  // The host is the key of a site, and keys have a maximum length. No name in DNS is near it.
  if (encodeKey(url.host).length > HOST_KEY_CHARS_MAX)
    return invalid("the host's name is too long");
  return { valid: true, url: url.href };
}

/**
 * Returns the key of a normalised address (see `crawlUrl`). Addresses have the same key if only the case of hex
 * digits or the encoding of letters, digits and `-._~` differs (RFC 3986, sections 6.2.2.1 and 6.2.2.2). An empty
 * query makes no difference either.
 */
export function crawlUrlKey(url: string): string {
  const key = url.replace(ENCODED, (found, digits: string) => {
    const character = String.fromCharCode(Number.parseInt(digits, 16));
    return UNRESERVED.test(character) ? character : found.toUpperCase();
  });
  return key.indexOf("?") === key.length - 1 ? key.slice(0, -1) : key;
}

const TOO_LONG = `the address is longer than ${CRAWL_URL_CHARS_MAX} characters`;
const ENCODED = /%([\da-fA-F]{2})/g;
const UNRESERVED = /^[\w.~-]$/;

function invalid(reason: string): CrawlUrl {
  return { valid: false, reason };
}
