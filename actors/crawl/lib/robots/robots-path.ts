/** Brings the paths of addresses and of robots.txt rules into one normal form, so that they can be compared. */

/**
 * Path and query of an address. Taken from the text, not from a parsed URL: it must be the bytes that will be asked
 * for, and may be an address no parser takes.
 */
export function robotsPathOf(url: string): string {
  const start = url.startsWith("//") ? 2 : 0;
  const scheme = url.indexOf("://", start);
  const early = indexOfAny(url, start);
  const authority = scheme < 0 || early < scheme ? start : scheme + 3;
  const path = indexOfAny(url, authority);
  const hash = url.indexOf("#", start);
  const end = hash < 0 ? url.length : hash;
  if (path >= end) return "/";
  const found = url.slice(path, end);
  return normalOf(found.startsWith("/") ? found : `/${found}`).replace(/[$*]/g, encoded);
}

/**
 * A rule's path or pattern; each character of `value` is one byte of the file. Only `*` and a `$` at the end are
 * special (RFC 9309, section 2.2.3). A pattern that has its normal form already keeps it.
 */
export function robotsPatternOf(value: string): string {
  return normalOf(value)
    .replace(NOT_ASCII, encoded)
    .replace(/\$(?!$)/g, encoded);
}

/**
 * RFC 9309, section 2.2.2: octets that no URL carries bare are percent-encoded, hex digits are upper case, and an
 * encoded octet of an unreserved character is that character: `%7E` is `~`, and `%62` is `b`. Google's parser and its
 * published test vectors keep `%62`; the RFC decides. An address with bare characters past 7 bits is none.
 */
function normalOf(text: string): string {
  return text.replace(NOT_NORMAL, (found) => {
    if (found.length === 1) return encoded(found);
    const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
    return UNRESERVED.test(character) ? character : found.toUpperCase();
  });
}

/** RFC 3986, section 2.3. */
const UNRESERVED = /[A-Za-z0-9._~-]/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
const NOT_NORMAL = /%[\da-fA-F]{2}|[\u0000- "<>\\\u007f]/g;
const NOT_ASCII = /[\u0080-\u00ff]/g;

function encoded(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
}

function indexOfAny(url: string, from: number): number {
  for (let index = from; index < url.length; index += 1) {
    const character = url[index];
    if (character === "/" || character === "?" || character === ";") return index;
  }
  return url.length;
}
