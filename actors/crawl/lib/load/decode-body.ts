/** Decodes a page's bytes to text, whatever their charset is or claims to be. */
import { analyse } from "chardet";

/** Bytes in which a page may name its charset. HTML requires it in the first 1,024, and pages exceed that. */
export const CHARSET_PRESCAN_BYTES = 4_096;
/** Bytes from which a charset is guessed. */
export const CHARSET_SAMPLE_BYTES = 32 * 1024;

interface DecodedBody {
  text: string;
  /** Name of the encoding by the WHATWG Encoding standard, in lower case. */
  charset: string;
  /** The source of the encoding. */
  by: "bom" | "header" | "meta" | "detection";
}

/**
 * Decodes a body in the order of HTML (section 13.2.3.2): byte order mark, Content-Type, the page itself, then a
 * guess. Unknown labels are ignored, and invalid bytes become U+FFFD. Never throws.
 */
export function decodeBody(bytes: Uint8Array, contentType?: string): DecodedBody {
  for (const [by, claim] of CLAIMS) {
    const label = claim(bytes, contentType);
    const decoder = label === undefined ? undefined : decoderOf(label);
    if (decoder !== undefined)
      return { text: decoder.decode(bytes), charset: decoder.encoding, by };
  }
  const fallback = new TextDecoder();
  return { text: fallback.decode(bytes), charset: fallback.encoding, by: "detection" };
}

type Claim = (bytes: Uint8Array, contentType: string | undefined) => string | undefined;

/**
 * The sources of the charset, in the order in which they are tried. The guess is last, because it costs more than all
 * others.
 */
const CLAIMS: readonly [DecodedBody["by"], Claim][] = [
  ["bom", bomOf],
  ["header", (_, contentType) => /\bcharset\s*=\s*["']?([^"'\s;,]+)/i.exec(contentType ?? "")?.[1]],
  ["meta", claimedWithin],
  ["detection", guess],
];

function bomOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  return first === 0xff && second === 0xfe ? "utf-16le" : undefined;
}

function decoderOf(label: string): TextDecoder | undefined {
  try {
    return new TextDecoder(label);
  } catch (error) {
    // The label is unknown, or the standard forbids it because it hides text from filters.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Reads `<meta charset>`, `<meta http-equiv content="…; charset=…">`, or an XML declaration. */
function claimedWithin(bytes: Uint8Array): string | undefined {
  const head = asciiOf(bytes.subarray(0, CHARSET_PRESCAN_BYTES)).replace(/<!--.*?-->/gs, "");
  const declared = /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"']+)/i.exec(head)?.[1];
  const [, label = declared] =
    /<meta\b[^>]*?\bcharset\s*=\s*["']?\s*([^\s"'/>;]+)/i.exec(head) ?? [];
  // The declaration was found by reading the bytes as ASCII, so the page cannot be UTF-16, even if it says so.
  if (label !== undefined && /^utf-?16/i.test(label)) return "utf-8";
  return label;
}

function guess(bytes: Uint8Array): string | undefined {
  const sample = bytes.subarray(0, CHARSET_SAMPLE_BYTES);
  if (isUtf8(sample, sample.length < bytes.length)) return "utf-8";
  // UTF-8 and ASCII are excluded by now.
  const likely = analyse(sample).find(({ name }) => name !== "UTF-8" && name !== "ASCII");
  return likely?.name ?? "windows-1252";
}

/** With `stream`, the sample may end within a character. */
function isUtf8(sample: Uint8Array, stream: boolean): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(sample, { stream });
    return true;
  } catch (error) {
    if (error instanceof TypeError) return false;
    throw error;
  }
}

function asciiOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
}
