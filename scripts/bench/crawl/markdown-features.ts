/**
 * Extracts from a page's HTML the features that its Markdown should keep. Uses another HTML parser than the
 * conversion.
 */

import { parseDocument } from "htmlparser2";

type Document = ReturnType<typeof parseDocument>;
type Node = Document["children"][number];
type Element = Extract<Node, { attribs: object }>;

export const COLUMNS = [
  "words",
  "pre",
  "headings",
  "links",
  "lists",
  "cells",
  "code",
  "emphasis",
  "images",
  "languages",
] as const;
export type Column = (typeof COLUMNS)[number];

/** For each column (sort of feature), the number of occurrences of each text. */
export type Features = Record<Column, Map<string, number>>;

export function featuresOf(html: string): Features {
  const features = Object.fromEntries(COLUMNS.map((column) => [column, new Map()])) as Features;
  const document = parseDocument(html);
  for (const [word] of textOf(document).matchAll(/[\p{L}\p{N}]+/gu)) count(features.words, word);
  read(document, false);
  return features;

  function read(parent: Document | Element, inPre: boolean): void {
    for (const node of parent.children) {
      if (!isElement(node) || UNSEEN.has(node.name)) continue;
      if (!inPre) take(node);
      read(node, inPre || node.name === "pre");
    }
  }

  function take(node: Element): void {
    const { name, attribs } = node;
    // Removes the characters of permalinks (¶) and the mark of a definition (::), because they are not text of the
    // page.
    const text = textOf(node)
      .replace(/[\s¶]+(?:: )?/g, " ")
      .trim();
    if (name === "pre") {
      // A line break directly after the tag does not belong to the code. A line break at the end may be missing.
      const code = textOf(node).replace(/^\n/, "").replace(/\n*$/, "\n");
      count(features.pre, code);
      if (isMarked(node)) count(features.languages, code);
    } else if (name === "img") count(features.images, attribs.alt ?? "");
    else if (text === "") return;
    else if (/^h[1-6]$/.test(name)) count(features.headings, name + text);
    else if (name === "a" && attribs.href !== undefined) count(features.links, text);
    else if (name === "li") count(features.lists, text);
    else if ((name === "td" || name === "th") && isOfValues(node)) count(features.cells, text);
    else if (name === "code") count(features.code, text);
    else if (EMPHASIS.has(name)) count(features.emphasis, text);
  }
}

/**
 * Returns the share of a column's texts that the Markdown has kept. `read` are the features of the converted
 * Markdown.
 */
export function shareKept(column: Column, wanted: Features[], read: Features[]): number {
  let all = 0;
  let kept = 0;
  for (const [index, { [column]: texts }] of wanted.entries()) {
    for (const [text, times] of texts) {
      all += times;
      kept += Math.min(times, read[index]?.[column].get(text) ?? 0);
    }
  }
  return all === 0 ? 1 : kept / all;
}

const UNSEEN = new Set(["script", "style", "title", "template", "head"]);
const EMPHASIS = new Set(["em", "i", "strong", "b", "del", "s"]);

function textOf(node: Document | Element): string {
  return node.children
    .map((child) => {
      if ("data" in child && child.type === "text") return child.data;
      if (!isElement(child) || UNSEEN.has(child.name)) return "";
      const text = textOf(child);
      return /^(?:br|p|div|li|td|th|tr|dt|dd|h\d)$/.test(child.name) ? ` ${text} ` : text;
    })
    .join("");
}

/** Returns true if the cell's table has header cells. A table without them is only page layout. */
function isOfValues(cell: Element): boolean {
  const row = cell.parent;
  const group = row?.parent;
  const table = group != null && isElement(group) && group.name !== "table" ? group.parent : group;
  return table != null && hasHead(table);
}

function hasHead(node: Document | Node): boolean {
  return (
    "children" in node &&
    node.children.some((child) => isElement(child) && (child.name === "th" || hasHead(child)))
  );
}

/**
 * Returns true if a highlighter has marked the language of the code block: in a class of the block, of an element
 * around it, or of an element in it.
 */
function isMarked(pre: Element): boolean {
  const around = [pre, pre.parent, pre.parent?.parent, ...pre.children];
  return around.some(
    (node) =>
      node != null &&
      isElement(node) &&
      /(?:highlight|language|lang|brush)[-:]\s*(?!none|default|text)\w/.test(
        node.attribs.class ?? "",
      ),
  );
}

function isElement(node: Node | Document): node is Element {
  return "attribs" in node;
}

function count(texts: Map<string, number>, text: string): void {
  texts.set(text, (texts.get(text) ?? 0) + 1);
}
