/** Decides which documents a crawl can keep: text documents. */

const TEXT =
  /^(?:text\/|application\/(?:.*\+)?(?:xml|json|javascript|ecmascript|x-javascript|yaml|x-yaml)$)/;
const HTML = new Set(["text/html", "application/xhtml+xml"]);

export type DocumentForm = "html" | "text" | "other";

/**
 * Returns the form of a document. A document without a type counts as HTML, because browsers mostly find HTML in it;
 * `looksBinary` checks its bytes.
 */
export function documentForm(contentType: string | null | undefined): DocumentForm {
  const [type = ""] = (contentType ?? "").toLowerCase().split(";");
  const essence = type.trim();
  if (essence === "" || HTML.has(essence)) return "html";
  return TEXT.test(essence) ? "text" : "other";
}

const SNIFFED_BYTES = 512;
/** Bytes that occur in no text of an ASCII-compatible charset (MIME Sniffing, section 3: binary data byte). */
const isBinary = (byte: number) =>
  byte <= 0x08 || byte === 0x0b || (byte >= 0x0e && byte <= 0x1a) || (byte >= 0x1c && byte <= 0x1f);

/** Whether the first bytes of an untyped document are binary. */
export function looksBinary(bytes: Uint8Array): boolean {
  const [first, second] = bytes;
  const wide = (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe);
  return !wide && bytes.subarray(0, SNIFFED_BYTES).some(isBinary);
}
