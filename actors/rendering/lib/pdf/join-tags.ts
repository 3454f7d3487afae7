/**
 * Joins the tags of PDFs: their structure trees, and the numbers and names by which pages refer to structure elements.
 */
import {
  PDFArray,
  type PDFContext,
  PDFDict,
  PDFHexString,
  PDFName,
  PDFNumber,
  type PDFObject,
  type PDFRef,
  PDFString,
} from "@cantoo/pdf-lib";
import type { JoinedPart, PdfPage } from "./adopt-pdf.ts";

const DOCUMENT = PDFName.of("Document");

type Root = { tree: PDFDict; index: number; pages: readonly PdfPage[] };

/** Gives the catalog one structure tree that contains the tree of each part. Parts without tags stay untagged. */
export function joinTags(
  context: PDFContext,
  parts: readonly JoinedPart[],
  catalog: PDFDict,
): void {
  const roots = parts.flatMap(({ catalog: own, pages }, index): Root[] => {
    const tree = own.lookupMaybe(PDFName.of("StructTreeRoot"), PDFDict);
    return tree === undefined ? [] : [{ tree, index, pages }];
  });
  if (roots.length === 0) return;
  const joined = context.obj({ Type: "StructTreeRoot" });
  const ref = context.register(joined);
  const whole = context.obj({ Type: "StructElem", S: "Document", P: ref });
  const wholeRef = context.register(whole);
  whole.set(PDFName.of("K"), context.obj(roots.flatMap(({ tree }) => kidsOf(tree, wholeRef))));
  joined.set(PDFName.of("K"), wholeRef);
  const numbers = joinNumbers(context, roots);
  joined.set(PDFName.of("ParentTree"), context.register(context.obj({ Nums: numbers.nums })));
  joined.set(PDFName.of("ParentTreeNextKey"), PDFNumber.of(numbers.next));
  const ids = joinIds(roots);
  if (ids.length > 0) {
    joined.set(PDFName.of("IDTree"), context.register(context.obj({ Names: ids })));
  }
  for (const key of ["RoleMap", "ClassMap"]) {
    const maps = roots.flatMap(({ tree }) => tree.lookupMaybe(PDFName.of(key), PDFDict) ?? []);
    const entries = maps.flatMap((map) => map.entries());
    if (entries.length === 0) continue;
    const map = context.obj({});
    for (const [name, value] of entries) map.set(name, value);
    joined.set(PDFName.of(key), map);
  }
  catalog.set(PDFName.of("StructTreeRoot"), ref);
  catalog.set(PDFName.of("MarkInfo"), context.obj({ Marked: true }));
}

/**
 * Returns the topmost elements of a tree. Each `Document` among them becomes a `Part`, because PDF 1.7 allows only
 * one `Document`.
 */
function kidsOf(tree: PDFDict, parent: PDFRef): PDFObject[] {
  const kids = tree.get(PDFName.of("K"));
  const all = kids instanceof PDFArray ? kids.asArray() : kids === undefined ? [] : [kids];
  for (const kid of all) {
    const element = tree.context.lookup(kid);
    if (!(element instanceof PDFDict)) continue;
    element.set(PDFName.of("P"), parent);
    if (element.get(PDFName.of("S")) === DOCUMENT) element.set(PDFName.of("S"), PDFName.of("Part"));
  }
  return all;
}

/**
 * Joins the parent tables, which map pages and links to structure elements. Each part's numbers follow those of the
 * part before.
 */
function joinNumbers(context: PDFContext, roots: readonly Root[]) {
  const nums: PDFObject[] = [];
  let next = 0;
  for (const { tree, pages } of roots) {
    const offset = next;
    const pairs = leafEntries(tree.lookupMaybe(PDFName.of("ParentTree"), PDFDict), "Nums");
    for (const [key, value] of pairs) {
      const number = offset + context.lookup(key, PDFNumber).asNumber();
      next = Math.max(next, number + 1);
      nums.push(PDFNumber.of(number), value);
    }
    for (const { page } of pages) {
      shift(page, "StructParents", offset);
      const links = page.lookupMaybe(PDFName.of("Annots"), PDFArray)?.asArray() ?? [];
      for (const link of links) shift(context.lookup(link, PDFDict), "StructParent", offset);
    }
  }
  return { nums, next };
}

function shift(dictionary: PDFDict, key: string, by: number): void {
  const number = dictionary.lookupMaybe(PDFName.of(key), PDFNumber);
  if (number) dictionary.set(PDFName.of(key), PDFNumber.of(number.asNumber() + by));
}

/** Joins the ids of elements. Table cells refer to their headers by id, and two parts may use the same ids. */
function joinIds(roots: readonly Root[]): PDFObject[] {
  const named: [string, PDFObject][] = [];
  for (const { tree, index } of roots) {
    const renamed = (id: PDFObject | undefined) =>
      `${String(index).padStart(4, "0")}.${idText(id)}`;
    for (const [id, element] of leafEntries(
      tree.lookupMaybe(PDFName.of("IDTree"), PDFDict),
      "Names",
    )) {
      named.push([renamed(id), element]);
    }
    for (const element of elementsOf(tree)) {
      const id = element.get(PDFName.of("ID"));
      if (id !== undefined) element.set(PDFName.of("ID"), PDFString.of(renamed(id)));
      for (const attributes of attributesOf(element)) {
        const headers = attributes.lookupMaybe(PDFName.of("Headers"), PDFArray);
        for (const [at, header] of headers?.asArray().entries() ?? []) {
          headers?.set(at, PDFString.of(renamed(header)));
        }
      }
    }
  }
  named.sort(([one], [other]) => (one < other ? -1 : 1));
  return named.flatMap(([id, element]) => [PDFString.of(id), element]);
}

function attributesOf(element: PDFDict): PDFDict[] {
  const attributes = element.lookup(PDFName.of("A"));
  const all = attributes instanceof PDFArray ? attributes.asArray() : [attributes];
  return all.flatMap((one) => {
    const attribute = element.context.lookup(one);
    return attribute instanceof PDFDict ? [attribute] : [];
  });
}

/** Returns every element below the root once. */
function elementsOf(tree: PDFDict): Set<PDFDict> {
  const elements = new Set<PDFDict>();
  const left: (PDFObject | undefined)[] = [tree.get(PDFName.of("K"))];
  while (left.length > 0) {
    const value = tree.context.lookup(left.pop());
    if (value instanceof PDFArray) left.push(...value.asArray());
    else if (value instanceof PDFDict && !elements.has(value)) {
      elements.add(value);
      left.push(value.get(PDFName.of("K")));
    }
  }
  return elements;
}

/** Returns the entries of a number tree or name tree (ISO 32000-1, 7.9.6). */
function leafEntries(tree: PDFDict | undefined, key: "Nums" | "Names"): [PDFObject, PDFObject][] {
  if (tree === undefined) return [];
  const flat = tree.lookupMaybe(PDFName.of(key), PDFArray)?.asArray() ?? [];
  const own = flat.flatMap((entry, index): [PDFObject, PDFObject][] => {
    const value = flat[index + 1];
    return index % 2 === 0 && value !== undefined ? [[entry, value]] : [];
  });
  const kids = tree.lookupMaybe(PDFName.of("Kids"), PDFArray)?.asArray() ?? [];
  return [...own, ...kids.flatMap((kid) => leafEntries(tree.context.lookup(kid, PDFDict), key))];
}

function idText(id: PDFObject | undefined): string {
  return id instanceof PDFString || id instanceof PDFHexString ? id.decodeText() : "";
}
