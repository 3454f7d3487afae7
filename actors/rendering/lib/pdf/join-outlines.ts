/** Joins the outlines of PDFs: the bookmarks of each part follow those of the part before. */
import { type PDFContext, PDFDict, PDFName, PDFNumber, PDFRef } from "@cantoo/pdf-lib";
import type { JoinedPart } from "./adopt-pdf.ts";

export function joinOutlines(
  context: PDFContext,
  parts: readonly JoinedPart[],
  catalog: PDFDict,
): void {
  const outlines = parts.flatMap(
    ({ catalog: own }) => own.lookupMaybe(PDFName.of("Outlines"), PDFDict) ?? [],
  );
  const items = outlines.flatMap((outline) => itemsOf(context, outline));
  const [first, last] = [items.at(0), items.at(-1)];
  if (first === undefined || last === undefined) return;
  const counts = outlines.map((outline) => outline.lookupMaybe(PDFName.of("Count"), PDFNumber));
  const Count = counts.reduce((sum, count) => sum + Math.abs(count?.asNumber() ?? 0), 0);
  const root = context.obj({ Type: "Outlines", First: first, Last: last, Count });
  const rootRef = context.register(root);
  for (const [index, ref] of items.entries()) {
    const item = context.lookup(ref, PDFDict);
    item.set(PDFName.of("Parent"), rootRef);
    setOrDelete(item, "Prev", items[index - 1]);
    setOrDelete(item, "Next", items[index + 1]);
  }
  catalog.set(PDFName.of("Outlines"), rootRef);
}

/** The topmost bookmarks. */
function itemsOf(context: PDFContext, outline: PDFDict): PDFRef[] {
  const items: PDFRef[] = [];
  let next = outline.get(PDFName.of("First"));
  while (next instanceof PDFRef && !items.includes(next)) {
    items.push(next);
    next = context.lookup(next, PDFDict).get(PDFName.of("Next"));
  }
  return items;
}

function setOrDelete(item: PDFDict, key: string, value: PDFRef | undefined): void {
  if (value === undefined) item.delete(PDFName.of(key));
  else item.set(PDFName.of(key), value);
}
