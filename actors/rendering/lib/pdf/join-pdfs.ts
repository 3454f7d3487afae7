/**
 * Joins several PDFs of Chromium to one. It keeps their pages, tags, outlines and named destinations, but renames and
 * renumbers what would collide. The root objects are created anew, so no part loses content.
 */
import {
  PDFArray,
  PDFContext,
  PDFDict,
  PDFHexString,
  PDFName,
  PDFNumber,
  PDFRef,
  PDFString,
  PDFWriter,
} from "@cantoo/pdf-lib";
import type { PdfMetadata } from "../../../../schemas/rendering/http/pdf-metadata.ts";
import { adoptPdf, type JoinedPart } from "./adopt-pdf.ts";
import { joinOutlines } from "./join-outlines.ts";
import { joinTags } from "./join-tags.ts";
import { type PdfOverlay, stampPages } from "./stamp-pages.ts";

export interface PdfPart {
  pdf: Uint8Array;
  /** Address of its page. Links of other parts to this address lead to the first page of this part. */
  address: string | undefined;
}

/** The date in all PDFs. It is a constant, because the same input must give the same bytes. */
const MADE_AT = "D:20000101000000+00'00'";
const MADE_BY = "Trunkline";

export class PdfJoin {
  readonly #context = PDFContext.create();
  readonly #parts: JoinedPart[] = [];

  /** Adds a part. Returns the width and height of its pages in points. */
  async add({ pdf, address }: PdfPart): Promise<[number, number][]> {
    const { catalog, pages } = await adoptPdf(this.#context, pdf);
    this.#parts.push({ catalog, pages, address });
    return pages.map(({ page }) => sizeOf(this.#context, page));
  }

  /** Returns the joined PDF. */
  async finish(properties: PdfMetadata, overlays: readonly PdfOverlay[]): Promise<Uint8Array> {
    const context = this.#context;
    const parts = this.#parts;
    joinPlaces(context, parts);
    linkParts(context, parts);
    const catalog = context.obj({ Type: "Catalog" });
    const pagesRef = joinPages(context, parts);
    catalog.set(PDFName.of("Pages"), pagesRef);
    joinTags(context, parts, catalog);
    joinOutlines(context, parts, catalog);
    const places = joinedPlaces(context, parts);
    if (places.keys().length > 0) catalog.set(PDFName.of("Dests"), context.register(places));
    const languages = parts.map((part) => part.catalog.get(PDFName.of("Lang")));
    const [language] = languages;
    const isOne = languages.every((other) => String(other) === String(language));
    if (language !== undefined && isOne) catalog.set(PDFName.of("Lang"), language);
    catalog.set(PDFName.of("ViewerPreferences"), context.obj({ DisplayDocTitle: true }));
    await stampPages(
      context,
      parts.flatMap(({ pages }) => pages),
      overlays,
    );
    context.trailerInfo.Root = context.register(catalog);
    context.trailerInfo.Info = context.register(informationOf(context, properties));
    dropUnreached(context);
    return await PDFWriter.forContext(context, 1_000).serializeToBuffer();
  }
}

function informationOf(context: PDFContext, properties: PdfMetadata): PDFDict {
  const information = context.obj({});
  const named = { Title: "title", Author: "author", Subject: "subject", Keywords: "keywords" };
  for (const [key, name] of Object.entries(named)) {
    const text = properties[name as keyof PdfMetadata];
    if (text !== undefined) information.set(PDFName.of(key), PDFHexString.fromText(text));
  }
  for (const key of ["Creator", "Producer"]) {
    information.set(PDFName.of(key), PDFString.of(MADE_BY));
  }
  for (const key of ["CreationDate", "ModDate"]) {
    information.set(PDFName.of(key), PDFString.of(MADE_AT));
  }
  return information;
}

function sizeOf(context: PDFContext, page: PDFDict): [number, number] {
  const box = context.lookup(page.get(PDFName.of("MediaBox")), PDFArray);
  const [left = 0, bottom = 0, right = 0, top = 0] = box
    .asArray()
    .map((side) => context.lookup(side, PDFNumber).asNumber());
  return [right - left, top - bottom];
}

/** Puts the page trees of the parts under one root. */
function joinPages(context: PDFContext, parts: readonly JoinedPart[]): PDFRef {
  const trees = parts.map(({ catalog }) => catalog.get(PDFName.of("Pages")) as PDFRef);
  const Count = parts.reduce((sum, { pages }) => sum + pages.length, 0);
  const root = context.register(context.obj({ Type: "Pages", Count, Kids: trees }));
  for (const tree of trees) context.lookup(tree, PDFDict).set(PDFName.of("Parent"), root);
  return root;
}

/** Returns a unique name for a destination of a part, because two parts may use the same name. */
const placeOf = (part: number, name: PDFName) => PDFName.of(`${part}.${name.decodeText()}`);

/** Renames the targets of links within each part to the destination names in the joined PDF. */
function joinPlaces(context: PDFContext, parts: readonly JoinedPart[]): void {
  for (const [index, part] of parts.entries()) {
    for (const link of linksOf(context, part)) {
      const place = link.get(PDFName.of("Dest"));
      if (place instanceof PDFName) link.set(PDFName.of("Dest"), placeOf(index, place));
    }
  }
}

function joinedPlaces(context: PDFContext, parts: readonly JoinedPart[]): PDFDict {
  const joined = context.obj({});
  for (const [index, { catalog }] of parts.entries()) {
    const places = catalog.lookupMaybe(PDFName.of("Dests"), PDFDict);
    for (const [name, place] of places?.entries() ?? []) joined.set(placeOf(index, name), place);
  }
  return joined;
}

/** Turns links to the address of a part into links to its first page. */
function linkParts(context: PDFContext, parts: readonly JoinedPart[]): void {
  const firstPages = new Map<string, PDFRef>();
  for (const { address, pages } of parts) {
    const [first] = pages;
    const known = address === undefined || firstPages.has(withoutHash(address));
    if (!known && first) firstPages.set(withoutHash(address), first.ref);
  }
  for (const link of parts.flatMap((part) => linksOf(context, part))) {
    const uri = link.lookupMaybe(PDFName.of("A"), PDFDict)?.lookup(PDFName.of("URI"));
    if (!(uri instanceof PDFString)) continue;
    const page = firstPages.get(withoutHash(uri.decodeText()));
    if (page === undefined) continue;
    link.delete(PDFName.of("A"));
    link.set(PDFName.of("Dest"), context.obj([page, "XYZ", null, null, null]));
  }
}

const withoutHash = (address: string) => address.split("#")[0] ?? "";

function linksOf(context: PDFContext, { pages }: JoinedPart): PDFDict[] {
  return pages.flatMap(({ page }) => {
    const links = page.lookupMaybe(PDFName.of("Annots"), PDFArray)?.asArray() ?? [];
    return links.map((link) => context.lookup(link, PDFDict));
  });
}

/** Removes all objects to which no other object refers any more, for example the parts' own roots. */
function dropUnreached(context: PDFContext): void {
  const reached = new Set<unknown>();
  const left: unknown[] = [context.trailerInfo.Root, context.trailerInfo.Info];
  while (left.length > 0) {
    const value = left.pop();
    if (value instanceof PDFRef) {
      if (!reached.has(value)) left.push(context.lookup(value));
      reached.add(value);
    } else if (value instanceof PDFDict) left.push(...value.values());
    else if (value instanceof PDFArray) left.push(...value.asArray());
    else if (typeof value === "object" && value !== null && "dict" in value) left.push(value.dict);
  }
  for (const [ref] of context.enumerateIndirectObjects()) {
    if (!reached.has(ref)) context.delete(ref);
  }
}
