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
  return normalOf(found.startsWith("/") ? found : `/${found}`);
}

/** A rule's path or pattern; each character of `value` is one byte of the file. */
export function robotsPatternOf(value: string): string {
  return normalOf(value).replace(NOT_ASCII, encoded);
}

/**
 * RFC 9309, section 2.2.2: octets that no URL carries bare are percent-encoded, and hex digits are upper case. What is
 * encoded stays so (`%62` is not `b`), and an address with bare characters past 7 bits is none, as the published test
 * vectors have it.
 */
function normalOf(text: string): string {
  return text.replace(NOT_NORMAL, (found) =>
    found.length === 3 ? found.toUpperCase() : encoded(found),
  );
}

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
