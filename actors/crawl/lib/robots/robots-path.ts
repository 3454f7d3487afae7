/** Normalises the paths of addresses and of robots.txt rules, so that they can be compared. */

/**
 * Returns the path and query of an address. The text is not parsed as a URL, because the bytes of the request are
 * needed and a parser may reject the address.
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
 * Returns the normal form of a rule's pattern, each of whose characters is one byte of the file. Only `*` and a final
 * `$` are special (RFC 9309, section 2.2.3). A normalised pattern stays as it is.
 */
export function robotsPatternOf(value: string): string {
  return normalOf(value)
    .replace(NOT_ASCII, encoded)
    .replace(/\$(?!$)/g, encoded);
}

/**
 * Normalises a path or pattern by RFC 9309, section 2.2.2. Octets that must be encoded in a URL are percent-encoded,
 * with upper-case hex digits. An encoded unreserved character is decoded: `%7E` becomes `~`, and `%62` becomes `b`.
 * Google's parser and its test vectors keep `%62`; here the RFC decides. Addresses have no unencoded characters above
 * 7 bits.
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
