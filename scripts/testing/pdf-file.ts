/** Reads a PDF that Chromium wrote: the text of each page, and faults of the cross-reference tables. */
import { inflateSync } from "node:zlib";

interface PdfObject {
  dictionary: string;
  /** The decompressed stream of the object. Empty if the object has no stream. */
  stream: string;
}

/**
 * Returns the text of each page in order, without blanks that exist only for the layout. Overlay text follows the
 * page's own text.
 */
export function pageTexts(bytes: Buffer): string[] {
  const objects = readObjects(bytes);
  const pages = Array.from(objects.values()).filter(({ dictionary }) =>
    /\/Type \/Page\b/.test(dictionary),
  );
  const streamOf = (id: string) => objects.get(Number(id))?.stream ?? "";
  const textOf = (dictionary: string, content: string) => {
    const fonts = Array.from(dictionary.matchAll(/\/(F\d+) (\d+) 0 R/g), ([, name = "", id]) => {
      const toUnicode = /\/ToUnicode (\d+) 0 R/.exec(objects.get(Number(id))?.dictionary ?? "");
      return [name, readCharacters(streamOf(toUnicode?.[1] ?? ""))] as const;
    });
    return readText(content, new Map(fonts));
  };
  return pages.map(({ dictionary }) => {
    const contents = /\/Contents (?:\[([^\]]*)\]|(\d+ 0 R))/.exec(dictionary);
    const ids = (contents?.[1] ?? contents?.[2] ?? "").matchAll(/(\d+) 0 R/g);
    const own = Array.from(ids, ([, id = ""]) => streamOf(id)).join("\n");
    const over = objects.get(Number(/\/TrunklineOverlay (\d+) 0 R/.exec(dictionary)?.[1]));
    return textOf(dictionary, own) + (over ? textOf(over.dictionary, over.stream) : "");
  });
}

/** Returns the faults of the cross-reference tables (ISO 32000-1, 7.5.4 and 7.5.6); empty if none. */
export function tableFaults(bytes: Buffer): string[] {
  const source = bytes.toString("latin1");
  const faults: string[] = [];
  let at = Number(/startxref\s+(\d+)\s+%%EOF\s*$/.exec(source)?.[1]);
  for (let updates = 0; updates < 3 && !Number.isNaN(at); updates++) {
    const table = readTable(source, at);
    if (table === undefined) return [...faults, `no table at ${at}`];
    for (const [id, entry] of table.entries) {
      const [, offset, kind] = /^(\d{10}) \d{5} ([nf])[ \r]\n$/.exec(entry) ?? [];
      if (offset === undefined) faults.push(`entry of object ${id} is "${entry}"`);
      else if (kind === "n" && !source.startsWith(`${id} 0 obj`, Number(offset)))
        faults.push(`object ${id} is not at ${offset}`);
    }
    if (!table.trailer.startsWith("trailer")) faults.push("no trailer behind the table");
    const highest = Math.max(...table.entries.keys());
    const size = Number(/\/Size (\d+)\b/.exec(table.trailer)?.[1]);
    if (!(size > highest)) faults.push(`the trailer has the size ${size}, and object ${highest}`);
    at = Number(
      /\/Prev (\d+)/.exec(table.trailer.slice(0, table.trailer.indexOf("startxref")))?.[1],
    );
  }
  return faults;
}

function readTable(source: string, at: number) {
  if (!source.startsWith("xref\n", at)) return undefined;
  const entries = new Map<number, string>();
  let next = at + "xref\n".length;
  for (;;) {
    const [head, first, count] = /^(\d+) (\d+)\n/.exec(source.slice(next, next + 24)) ?? [];
    if (head === undefined) return { entries, trailer: source.slice(next).trimStart() };
    next += head.length;
    for (let index = 0; index < Number(count); index++) {
      entries.set(Number(first) + index, source.slice(next, next + 20));
      next += 20;
    }
  }
}

function readObjects(bytes: Buffer): Map<number, PdfObject> {
  const source = bytes.toString("latin1");
  const begun = source.matchAll(/^(\d+) 0 obj\n/gm);
  return new Map(
    Array.from(begun, ({ 0: { length }, 1: id, index }) => {
      const object = source.slice(index, source.indexOf("\nendobj", index));
      const at = object.indexOf("stream\n");
      const dictionary = object.slice(length, at === -1 ? undefined : at);
      const packed = bytes.subarray(index + at + "stream\n".length, index + object.length);
      const isText = at !== -1 && dictionary.includes("/FlateDecode");
      return [Number(id), { dictionary, stream: isText ? inflated(packed) : "" }];
    }),
  );
}

/**
 * Returns the decompressed stream, or "" if decompression fails. The data is followed by "endstream". Data that
 * contains "\nendobj" was cut off there, and is not text.
 */
function inflated(packed: Buffer): string {
  try {
    return inflateSync(packed).toString("latin1");
  } catch {
    return "";
  }
}

/** Returns the characters of a font's codes (ISO 32000-1, 9.10.3). */
function readCharacters(map: string): Map<number, string> {
  const characters = new Map<number, string>();
  for (const [, first = "", last, to = ""] of map.matchAll(
    /^<(\w{4})> (?:<(\w{4})> )?<(\w{4})>$/gm,
  )) {
    const from = Number.parseInt(first, 16);
    for (let glyph = from; glyph <= Number.parseInt(last ?? first, 16); glyph++) {
      characters.set(glyph, String.fromCharCode(Number.parseInt(to, 16) + glyph - from));
    }
  }
  return characters;
}

function readText(content: string, fonts: Map<string, Map<number, string>>): string {
  let font: Map<number, string> | undefined;
  let text = "";
  for (const [, name, glyphs] of content.matchAll(/\/(F\d+) [\d.]+ Tf|<([0-9A-F]+)>/g)) {
    if (name !== undefined) font = fonts.get(name);
    for (const glyph of glyphs?.match(/.{4}/g) ?? [])
      text += font?.get(Number.parseInt(glyph, 16)) ?? "\ufffd";
  }
  return text;
}
