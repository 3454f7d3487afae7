/**
 * Adds properties to a PDF, from the request and from the page's meta tags; of these, Chromium itself writes only the
 * title. They are appended to the bytes of Chromium as an incremental update (ISO 32000-1, 7.5.6). So a large PDF is
 * still streamed in pieces, and its tags, links and outline stay unchanged.
 */
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import { KEYWORDS_MAX, METADATA_CHARS_MAX } from "../../../../schemas/rendering/limits.ts";
import { MADE_BY_US } from "./pdf-metadata.ts";

/** Keys of the information dictionary (ISO 32000-1, 14.3.3). */
const KEYS = {
  title: "Title",
  author: "Author",
  subject: "Subject",
  keywords: "Keywords",
} as const;
const NAMES = Object.keys(KEYS) as (keyof typeof KEYS)[];
const INFORMATION_ID = 1;
/** Maximum bytes from the last trailer of Chromium to the end of its PDF. */
export const PDF_END_BYTES = 256;
const PDF_END =
  /trailer\n<<\/Size (\d+)\n\/Root (\d+) 0 R\n\/Info 1 0 R>>\nstartxref\n(\d+)\n%%EOF\s*$/;

/** Merges the properties from META_TAGS and from the request. The request takes precedence. */
export function propertiesOf(found: unknown, given: PdfMetadata = {}): PdfMetadata {
  // Our own script returns this value.
  const ofPage = found as Record<string, string>;
  const all = NAMES.map((name) => [name, given[name] ?? (ofPage[name] || undefined)] as const);
  return Object.fromEntries(all.filter(([, value]) => value !== undefined));
}

/**
 * Returns the bytes that add these properties to a PDF of Chromium; no bytes if there are no properties. `end` holds
 * the last bytes of the PDF, `length` is its length, and `title` its encoded title.
 */
export function propertiesUpdate(
  properties: PdfMetadata,
  { end, length, title }: { end: string; length: number; title: string },
): Buffer {
  const written = NAMES.flatMap((name) => {
    const text = properties[name];
    return text === undefined ? [] : [`/${KEYS[name]} ${pdfText(text)}\n`];
  });
  if (written.length === 0) return Buffer.alloc(0);
  const [, size, root, tableAt] = PDF_END.exec(end) ?? [];
  if (size === undefined) throw new Error("Cannot add properties: the PDF has no known end");
  const kept = properties.title === undefined ? title : "";
  const object = `${INFORMATION_ID} 0 obj\n<<${kept}${written.join("")}${MADE_BY_US}>>\nendobj\n`;
  const offset = String(length).padStart(10, "0");
  const table = `xref\n${INFORMATION_ID} 1\n${offset} 00000 n \n`;
  const references = `/Root ${root} 0 R\n/Info ${INFORMATION_ID} 0 R\n/Prev ${tableAt}`;
  const trailer = `trailer\n<</Size ${size}\n${references}>>\n`;
  const startsAt = length + object.length;
  return Buffer.from(`${object}${table}${trailer}startxref\n${startsAt}\n%%EOF\n`, "latin1");
}

/** Encodes a text string: ASCII unchanged, other text in UTF-16 (ISO 32000-1, 7.9.2.2). */
function pdfText(text: string): string {
  if (/^[ -~]*$/.test(text)) return `(${text.replace(/[\\()]/g, "\\$&")})`;
  const bytes = Buffer.from(`\uFEFF${text}`, "utf16le").swap16();
  return `<${bytes.toString("hex").toUpperCase()}>`;
}

// An expression for the page that reads properties from meta tags. Few pages have `subject`, but most have
// `description` for search engines, so it is the fallback.
export const META_TAGS = `(() => {
  const read = (name) => [...document.querySelectorAll('meta[name="' + name + '" i][content]')]
    .slice(0, ${KEYWORDS_MAX})
    .map(({ content }) => content.trim())
    .filter((content) => content !== "")
    .join(", ")
    .slice(0, ${METADATA_CHARS_MAX})
    .toWellFormed();
  return {
    author: read("author"),
    subject: read("subject") || read("description"),
    keywords: read("keywords"),
  };
})()`;
