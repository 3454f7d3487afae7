/** Copies all objects of a PDF into another PDF, under numbers that follow the existing ones. */
import {
  PDFArray,
  type PDFContext,
  PDFDict,
  PDFName,
  type PDFObject,
  PDFParser,
  PDFRawStream,
  PDFRef,
} from "@cantoo/pdf-lib";

/** One page of a PDF. */
export interface PdfPage {
  ref: PDFRef;
  page: PDFDict;
}

/** One part, after its objects were copied into the joined PDF. */
export interface JoinedPart {
  catalog: PDFDict;
  pages: readonly PdfPage[];
  /** Address of its page, if other parts may link to it. */
  address: string | undefined;
}

/**
 * Copies the PDF into the context. Resolves to its catalog and its pages in order, both as objects of the context.
 */
export async function adoptPdf(
  context: PDFContext,
  pdf: Uint8Array,
): Promise<{ catalog: PDFDict; pages: PdfPage[] }> {
  const source = await PDFParser.forBytesWithOptions(pdf, Number.POSITIVE_INFINITY).parseDocument();
  const offset = context.largestObjectNumber;
  // Copies objects one by one. A recursive copy of a long list of bookmarks would exceed the stack.
  for (const [{ objectNumber }, object] of source.enumerateIndirectObjects()) {
    const ref = PDFRef.of(objectNumber + offset);
    context.assign(ref, adopted(object, { context, offset }));
  }
  const { Root } = source.trailerInfo;
  if (!(Root instanceof PDFRef)) throw new Error("Cannot adopt a PDF: it has no catalog");
  const catalog = context.lookup(PDFRef.of(Root.objectNumber + offset), PDFDict);
  return { catalog, pages: pagesOf(context, catalog.get(PDFName.of("Pages"))) };
}

interface Into {
  context: PDFContext;
  offset: number;
}

function adopted<T extends PDFObject>(object: T, into: Into): T;
function adopted(object: PDFObject, into: Into): PDFObject {
  const { context, offset } = into;
  if (object instanceof PDFRef) return PDFRef.of(object.objectNumber + offset);
  if (object instanceof PDFArray) {
    const array = PDFArray.withContext(context);
    for (const entry of object.asArray()) array.push(adopted(entry, into));
    return array;
  }
  if (object instanceof PDFDict) {
    const entries = object.entries().map(([key, value]) => [key, adopted(value, into)] as const);
    return PDFDict.fromMapWithContext(new Map(entries), context);
  }
  if (object instanceof PDFRawStream) {
    return PDFRawStream.of(adopted(object.dict, into), object.contents);
  }
  return object;
}

function pagesOf(context: PDFContext, tree: PDFObject | undefined): PdfPage[] {
  const pages: PdfPage[] = [];
  const left = [tree];
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    if (!(node instanceof PDFRef))
      throw new Error("Cannot adopt a PDF: its page tree has no references");
    const page = context.lookup(node, PDFDict);
    const kids = page.lookupMaybe(PDFName.of("Kids"), PDFArray);
    if (kids === undefined) pages.push({ ref: node, page });
    else left.push(...kids.asArray().toReversed());
  }
  return pages;
}
