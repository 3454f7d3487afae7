/** Reads sitemaps of every form while they arrive, within limits, and as far as they are readable. */
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { SITEMAP_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import type { SitemapEntry, SitemapForm, SitemapParser } from "./sitemap-entry.ts";
import { SitemapText } from "./sitemap-text.ts";
import { SitemapXml } from "./sitemap-xml.ts";

/** Addresses of one sitemap, as sitemaps.org limits them. */
export const SITEMAP_URLS_MAX = 50_000;

/** Bytes that are read at a time. The entries of one piece are passed on together. */
const SITEMAP_CHUNK_BYTES = 64 * 1024;

export interface SitemapSummary {
  form: SitemapForm;
  entries: number;
  /** Entries with an address that cannot be fetched. */
  invalid: number;
  /** Why reading ended: complete, a limit, or broken or missing bytes. */
  end: "complete" | "urls_max" | "bytes_max" | "broken";
}

interface SitemapReader {
  /** Address of the sitemap after redirects. */
  url: string;
  /** Receives the entries of each piece. Reading continues when the returned promise resolves. */
  onEntries(entries: SitemapEntry[], form: SitemapForm): void | Promise<void>;
}

/**
 * Reads a sitemap. Gzip is recognised by its first bytes, whatever the name. Throws only errors of `body` and
 * `onEntries`.
 */
export async function readSitemap(
  body: AsyncIterable<Uint8Array>,
  { url, onEntries }: SitemapReader,
): Promise<SitemapSummary> {
  const decoder = new PieceDecoder();
  let parser: SitemapParser | undefined;
  let entries = 0;
  let bytes = 0;
  let broken = false;

  for await (const piece of inflated(pieces(body))) {
    if (piece === "broken") {
      broken = true;
      break;
    }
    const rest = SITEMAP_BYTES_MAX - bytes;
    bytes += piece.length;
    const text = decoder.decode(piece.subarray(0, rest));
    parser ??= parserFor(text, url);
    parser?.write(text);
    if (await hand()) return summary("urls_max");
    if (parser?.broken === true) return summary("broken");
    if (bytes > SITEMAP_BYTES_MAX) return summary("bytes_max");
  }
  parser?.write(decoder.end());
  parser?.end();
  if (await hand()) return summary("urls_max");
  return summary(broken || parser?.broken === true ? "broken" : "complete");

  /** Passes the new entries to `onEntries`, up to SITEMAP_URLS_MAX in total. Returns true if there are more. */
  async function hand(): Promise<boolean> {
    const found = parser?.take() ?? [];
    const taken = found.slice(0, SITEMAP_URLS_MAX - entries);
    entries += taken.length;
    if (taken.length > 0) await onEntries(taken, parser?.form ?? "unknown");
    return taken.length < found.length;
  }

  function summary(end: SitemapSummary["end"]): SitemapSummary {
    return { form: parser?.form ?? "unknown", entries, invalid: parser?.invalid ?? 0, end };
  }
}

/**
 * Returns a parser for the form of the file. Returns undefined while the text so far is only white space, because the
 * form is unknown.
 */
function parserFor(text: string, url: string): SitemapParser | undefined {
  const [first] = text.trimStart();
  if (first === undefined) return undefined;
  return first === "<" ? new SitemapXml(url) : new SitemapText(url);
}

/** Splits the body into small pieces, so that little is in memory. */
async function* pieces(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    for (let start = 0; start < chunk.length; start += SITEMAP_CHUNK_BYTES) {
      yield chunk.subarray(start, start + SITEMAP_CHUNK_BYTES);
    }
  }
}

/** Decompresses gzip, also if it was applied twice. A cut stream yields its content, then "broken". */
async function* inflated(
  body: AsyncIterator<Uint8Array>,
  depth = 2,
): AsyncGenerator<Uint8Array | "broken"> {
  const first = await body.next();
  if (first.done === true) return;
  const whole = Readable.from(startingWith(first.value, body));
  const packed = first.value[0] === 0x1f && (first.value.length < 2 || first.value[1] === 0x8b);
  if (!packed || depth === 0) {
    yield* whole;
    return;
  }
  const gunzip = createGunzip({ chunkSize: SITEMAP_CHUNK_BYTES });
  // Errors of the source are rethrown. Errors of the compression end the file.
  whole.once("error", (error) => gunzip.destroy(new SourceError(error)));
  try {
    yield* inflated(whole.pipe(gunzip)[Symbol.asyncIterator](), depth - 1);
  } catch (error) {
    if (error instanceof SourceError) throw error.cause;
    yield "broken";
  } finally {
    whole.destroy();
  }
}

class SourceError extends Error {
  constructor(cause: Error) {
    super("Cannot read sitemap: its source failed", { cause });
  }
}

async function* startingWith(
  first: Uint8Array,
  rest: AsyncIterator<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  try {
    yield first;
    for (let next = await rest.next(); next.done !== true; next = await rest.next()) {
      yield next.value;
    }
  } finally {
    // If the consumer stops early, this releases the source.
    await rest.return?.();
  }
}

/** Decodes by byte order mark, else by the XML declaration, else as UTF-8. */
class PieceDecoder {
  #decoder: TextDecoder | undefined;

  decode(piece: Uint8Array): string {
    this.#decoder ??= decoderFor(piece);
    return this.#decoder.decode(piece, { stream: true });
  }

  end(): string {
    return this.#decoder?.decode() ?? "";
  }
}

function decoderFor(piece: Uint8Array): TextDecoder {
  const [first, second] = piece;
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be");
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le");
  const head = Buffer.from(piece.subarray(0, 200)).toString("latin1");
  const [, label = "utf-8"] = /^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"']+)/i.exec(head) ?? [];
  try {
    return new TextDecoder(/^utf-?16/i.test(label) ? "utf-8" : label);
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder();
    throw error;
  }
}
