/**
 * Replaces Chromium's values for the producer and the dates of a PDF by constants, so that the same input gives the
 * same bytes. Chromium writes the information dictionary (ISO 32000-1, 14.3.3) as the first object, uncompressed. The
 * dictionary keeps its length, so every offset in the cross-reference table stays correct. Chromium writes no /ID.
 */
import { strict as assert } from "node:assert";

/** The date in all PDFs. It is a constant, because the same input must give the same bytes. */
const MADE_AT = "D:20000101000000+00'00'";
const MADE_BY = "Trunkline";

const TEXT = String.raw`\((?:\\.|[^\\()\n])*\)`;
const CHROMIUMS = new RegExp(
  String.raw`/Creator ${TEXT}\n/Producer ${TEXT}\n/CreationDate ${TEXT}\n/ModDate ${TEXT}>>$`,
  "s",
);
/** The end of the information dictionary of every PDF. */
export const MADE_BY_US = `/Creator (${MADE_BY})\n/Producer (${MADE_BY})\n/CreationDate (${MADE_AT})\n/ModDate (${MADE_AT})`;
const INFORMATION_STARTS = "1 0 obj\n<<";
const OBJECT_ENDS = "\nendobj\n";

const PAGE_TREE = "/Type /Pages\n/Count ";
/** Maximum characters of a page count, including the end of the line. */
const COUNT_CHARS = 10;
const SEAM_CHARS = PAGE_TREE.length + COUNT_CHARS - 1;

/** Whether these first bytes contain the complete information dictionary. */
export function hasInformation(head: Uint8Array): boolean {
  return Buffer.from(head.buffer, head.byteOffset, head.byteLength).includes(OBJECT_ENDS);
}

/**
 * Returns the title entry of the information dictionary in its encoded form, including its key; empty if there is no
 * title.
 */
export function titleOf(head: Uint8Array): string {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const start = bytes.indexOf(INFORMATION_STARTS);
  const dictionary = bytes.toString("latin1", start, bytes.indexOf(OBJECT_ENDS, start));
  const at = dictionary.lastIndexOf("/Creator ");
  return dictionary.slice(INFORMATION_STARTS.length, at);
}

/** Rewrites the information dictionary in place and returns the same bytes. */
export function neutralize(head: Uint8Array): Uint8Array {
  const bytes = Buffer.from(head.buffer, head.byteOffset, head.byteLength);
  const start = bytes.indexOf(INFORMATION_STARTS);
  const end = bytes.indexOf(OBJECT_ENDS, start);
  const dictionary = bytes.toString("latin1", start, end);
  const fields = CHROMIUMS.exec(dictionary);
  assert(start >= 0 && fields !== null, "the PDF does not begin with its information dictionary");
  const room = fields[0].length - ">>".length;
  assert(MADE_BY_US.length <= room, "the PDF has no room for its information");
  bytes.write(`${MADE_BY_US.padEnd(room)}>>`, start + fields.index, "latin1");
  return bytes;
}

/**
 * Counts the pages of a PDF while its bytes are streamed. The result is the largest count in the page tree, which is
 * the count of its root.
 */
export class PageCounter {
  pages = 0;
  #tail = "";

  read(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const seam = this.#tail + bytes.toString("latin1", 0, PAGE_TREE.length + COUNT_CHARS);
    this.#count(seam);
    for (let at = bytes.indexOf(PAGE_TREE); at >= 0; at = bytes.indexOf(PAGE_TREE, at + 1)) {
      this.#count(bytes.toString("latin1", at, at + PAGE_TREE.length + COUNT_CHARS));
    }
    const kept = this.#tail + bytes.toString("latin1", Math.max(0, bytes.length - SEAM_CHARS));
    this.#tail = kept.slice(-SEAM_CHARS);
  }

  #count(text: string): void {
    const at = text.indexOf(PAGE_TREE);
    if (at < 0) return;
    const [digits] = /^\d+(?=\n)/.exec(text.slice(at + PAGE_TREE.length)) ?? [];
    if (digits !== undefined) this.pages = Math.max(this.pages, Number(digits));
  }
}
