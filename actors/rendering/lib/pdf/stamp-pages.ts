/** Draws pages of one PDF over the pages of another: headers and footers that number the pages of all parts. */
import {
  PDFArray,
  type PDFContext,
  PDFDict,
  PDFName,
  PDFRawStream,
  type PDFRef,
} from "@cantoo/pdf-lib";
import { adoptPdf, type PdfPage } from "./adopt-pdf.ts";

/** Overlay pages, and the first page of the joined PDF that they cover. */
export interface PdfOverlay {
  pdf: Uint8Array;
  firstPage: number;
}

/** Name of the overlay among a page's resources. Chromium's own names are a letter and a number, so they differ. */
const OVERLAY = "TrunklineOverlay";
/** Marks header and footer as artifacts, which assistive technology does not read (ISO 32000-1, 14.8.2.2). */
const DRAW = `Q q\n/Artifact <</Type /Pagination>> BDC\n/${OVERLAY} Do\nEMC\nQ\n`;

export async function stampPages(
  context: PDFContext,
  pages: readonly PdfPage[],
  overlays: readonly PdfOverlay[],
): Promise<void> {
  if (overlays.length === 0) return;
  const save = context.register(context.stream("q\n"));
  const draw = context.register(context.stream(DRAW));
  for (const { pdf, firstPage } of overlays) {
    const { pages: drawn } = await adoptPdf(context, pdf);
    for (const [index, { page }] of drawn.entries()) {
      const target = pages[firstPage + index];
      if (target === undefined) throw new Error("an overlay has more pages than its document");
      stamp(target.page, { save, draw, form: formOf(context, page) });
      moveLinks(page, target);
    }
  }
}

function stamp(page: PDFDict, { save, draw, form }: Record<"save" | "draw" | "form", PDFRef>) {
  const { context } = page;
  const contents = page.get(PDFName.of("Contents"));
  const own = context.lookup(contents) instanceof PDFArray ? arrayOf(page, "Contents") : [contents];
  const all = [save, ...own.filter((stream) => stream !== undefined), draw];
  page.set(PDFName.of("Contents"), context.obj(all));
  const resources = page.lookup(PDFName.of("Resources"), PDFDict);
  const drawn = resources.lookupMaybe(PDFName.of("XObject"), PDFDict) ?? context.obj({});
  drawn.set(PDFName.of(OVERLAY), form);
  resources.set(PDFName.of("XObject"), drawn);
}

/** Converts a page to a form that other pages can draw. */
function formOf(context: PDFContext, page: PDFDict): PDFRef {
  const contents = page.lookup(PDFName.of("Contents"));
  if (!(contents instanceof PDFRawStream)) throw new Error("an overlay has no single content");
  const form = context.obj({ Type: "XObject", Subtype: "Form", FormType: 1 });
  for (const [key, value] of contents.dict.entries()) form.set(key, value);
  for (const [to, from] of [
    ["BBox", "MediaBox"],
    ["Resources", "Resources"],
  ] as const) {
    const value = page.get(PDFName.of(from));
    if (value !== undefined) form.set(PDFName.of(to), value);
  }
  return context.register(PDFRawStream.of(form, contents.contents));
}

function moveLinks(from: PDFDict, { page, ref }: PdfPage): void {
  const links = arrayOf(from, "Annots");
  if (links.length === 0) return;
  for (const link of links) from.context.lookup(link, PDFDict).set(PDFName.of("P"), ref);
  page.set(PDFName.of("Annots"), page.context.obj([...arrayOf(page, "Annots"), ...links]));
}

function arrayOf(page: PDFDict, key: string) {
  return page.lookupMaybe(PDFName.of(key), PDFArray)?.asArray() ?? [];
}
