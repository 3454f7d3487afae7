/**
 * Splits a robots.txt into records (RFC 9309, section 2.2), including the mistakes that the RFC asks parsers to
 * accept.
 */
import { ROBOTS_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";

/** Bytes of one line that are read: eight times the longest address of browsers. */
export const ROBOTS_LINE_BYTES_MAX = 2_083 * 8;

/** A record of the file. Each character of `value` is one byte. */
export interface RobotsRecord {
  line: number;
  name: RobotsField;
  value: string;
}

type RobotsField =
  | "user-agent"
  | "allow"
  | "disallow"
  | "sitemap"
  | "crawl-delay"
  | "content-signal";

/** Published parsers accept these misspellings. Obeying the intended rule harms nobody. */
const FIELDS = new Map<string, RobotsField>([
  ["user-agent", "user-agent"],
  ["useragent", "user-agent"],
  ["user agent", "user-agent"],
  ["allow", "allow"],
  ["disallow", "disallow"],
  ["dissallow", "disallow"],
  ["dissalow", "disallow"],
  ["disalow", "disallow"],
  ["diasllow", "disallow"],
  ["disallaw", "disallow"],
  ["sitemap", "sitemap"],
  ["site-map", "sitemap"],
  ["crawl-delay", "crawl-delay"],
  ["crawldelay", "crawl-delay"],
  ["content-signal", "content-signal"],
]);

const UTF8_BOM = [0xef, 0xbb, 0xbf];

/** Yields the records of the first ROBOTS_BYTES_MAX bytes. Lines count from 1, whatever ends them. */
export function* robotsRecords(bytes: Uint8Array): Generator<RobotsRecord> {
  const text = textOf(bytes);
  const lineEnd = /\r\n|\r|\n/g;
  let start = 0;
  for (let line = 1; start <= text.length; line += 1) {
    const end = lineEnd.exec(text);
    const record = recordOf(text.slice(start, end?.index ?? text.length), line);
    if (record !== undefined) yield record;
    if (end === null) return;
    start = lineEnd.lastIndex;
  }
}

/** Decodes one byte to one character: patterns are compared by bytes, and a file may be invalid UTF-8. */
function textOf(bytes: Uint8Array): string {
  const read = bytes.subarray(0, ROBOTS_BYTES_MAX);
  const utf16 = utf16Of(read);
  const utf8 = utf16 === undefined ? read : new TextEncoder().encode(utf16);
  // A cut byte order mark is skipped too.
  let start = 0;
  while (start < UTF8_BOM.length && utf8[start] === UTF8_BOM[start]) start += 1;
  return Buffer.from(utf8.buffer, utf8.byteOffset, utf8.byteLength).toString("latin1", start);
}

function utf16Of(bytes: Uint8Array): string | undefined {
  const littleEndian = bytes[0] === 0xff && bytes[1] === 0xfe;
  const bigEndian = bytes[0] === 0xfe && bytes[1] === 0xff;
  if (!littleEndian && !bigEndian) return undefined;
  return new TextDecoder(littleEndian ? "utf-16le" : "utf-16be").decode(bytes);
}

function recordOf(whole: string, line: number): RobotsRecord | undefined {
  const [text = ""] = whole.slice(0, ROBOTS_LINE_BYTES_MAX).split("#", 1);
  const separator = text.indexOf(":");
  // If the text before the first colon is no field name, the line is split at its space: in `Sitemap https://…` the
  // colon belongs to the address.
  const readings = [separator >= 0 ? splitAt(text, separator) : undefined, splitAtSpace(text)];
  for (const reading of readings) {
    if (reading === undefined) continue;
    const name = FIELDS.get(trimAscii(reading[0]).toLowerCase());
    if (name !== undefined) return { line, name, value: trimAscii(reading[1]) };
  }
  return undefined;
}

function splitAt(text: string, separator: number): [string, string] {
  return [text.slice(0, separator), text.slice(separator + 1)];
}

/** Accepts a missing colon in a line of two words: `disallow /`. */
function splitAtSpace(text: string): [string, string] {
  const [key = "", value = "", third] = trimAscii(text).split(/[ \t]+/, 3);
  return third === undefined ? [key, value] : ["", ""];
}

/** Trims ASCII white space. String.prototype.trim would also remove byte A0, which is half of a character. */
function trimAscii(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}
