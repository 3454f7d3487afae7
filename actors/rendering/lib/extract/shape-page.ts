/**
 * Prepares the tree of a page for Turndown: removes invisible elements, resolves addresses, and renames elements by
 * how they are written.
 */
import { codeLanguage } from "./code-language.ts";
import { isBlock, type Place, type Shaping, shapeImage, shapeLink } from "./page-addresses.ts";
import { preText, splitCode } from "./page-code.ts";
import { shapeMath } from "./page-math.ts";
import { ELEMENT, PageNode, TEXT } from "./page-node.ts";
import { shapeTable } from "./page-tables.ts";
import { composeShadow } from "./shadow-roots.ts";

export function shapePage(root: PageNode, shaping: Shaping): void {
  shapeChildren(root, { ...shaping, inCell: false, inHeading: false });
}

/** Elements that a browser does not show, or shows without their text content. */
const UNSEEN = new Set(
  `head title style template textarea iframe audio video canvas object noembed noframes datalist desc metadata
   script annotation annotation-xml`.split(/\s+/),
);

/** Elements that Turndown does not know, with the name of a known element as which they are written. */
const WRITTEN = new Map(
  Object.entries({
    b: "STRONG",
    i: "EM",
    cite: "EM",
    s: "DEL",
    strike: "DEL",
    kbd: "CODE",
    tt: "CODE",
    samp: "CODE",
    xmp: "PRE",
    listing: "PRE",
    plaintext: "PRE",
    details: "DIV",
    dialog: "DIV",
    search: "DIV",
    option: "DIV",
    optgroup: "DIV",
    summary: "P",
    legend: "P",
    caption: "P",
    dir: "UL",
    menu: "UL",
    noscript: "SPAN",
  }),
);

function shapeChildren(parent: PageNode, place: Place): void {
  let next: PageNode | null;
  for (let child = parent.firstChild; child !== null; child = next) {
    next = child.nextSibling;
    if (child.nodeType === ELEMENT) shapeElement(child, place);
    else if (child.nodeType !== TEXT) parent.removeChild(child);
  }
}

function shapeElement(node: PageNode, place: Place): void {
  if (shapeMath(node)) return;
  if (isUnseen(node, place)) {
    node.parentNode?.removeChild(node);
    return;
  }
  composeShadow(node);
  node.nodeName = WRITTEN.get(node.tagName) ?? node.nodeName;
  switch (node.nodeName) {
    case "PRE":
      node.setAttribute("language", codeLanguage(node) ?? "");
      shapePre(node, place);
      return;
    case "CODE":
      splitCode(node, place);
      return;
    case "IMG":
      shapeImage(node, place);
      return;
    case "INPUT":
      shapeInput(node);
      return;
    case "A":
      shapeLink(node, place);
      break;
    case "BLOCKQUOTE":
    case "Q":
      break;
    default:
      if (node.tagName === "table") shapeTable(node, place);
  }
  shapeChildren(node, placeWithin(node, place));
  if (/^H[1-6]$/.test(node.nodeName) && place.inCell) node.nodeName = "STRONG";
  if (EMPHASIS.has(node.nodeName)) joinEmphasis(node);
}

/**
 * Prepares preformatted text. Turndown moves white space at the edges of inline elements, so inline elements around
 * preformatted text become blocks.
 */
function shapePre(node: PageNode, { inCell }: Place): void {
  const text = preText(node);
  if (inCell) {
    node.nodeName = "X-CELL-CODE";
    node.data = text;
    node.replaceChildren("code");
    return;
  }
  node.replaceChildren(text);
  for (let outer = node.parentNode; outer?.nodeType === ELEMENT; outer = outer.parentNode) {
    if (isBlock(outer) || outer.tagName === "body") return;
    outer.nodeName = "DIV";
  }
}

function isUnseen(node: PageNode, { isScripted }: Place): boolean {
  if (node.tagName === "template" && node.hasAttribute("shadowrootmode")) return false;
  return (
    UNSEEN.has(node.tagName) ||
    node.hasAttribute("hidden") ||
    (isScripted && node.tagName === "noscript")
  );
}

function placeWithin(node: PageNode, place: Place): Place {
  const isHeading = /^(?:h[1-6]|dt|caption|figcaption)$/.test(node.tagName);
  const isCell = node.nodeName === "TD" || node.nodeName === "TH";
  if (!isHeading && !isCell) return place;
  return {
    ...place,
    inCell: place.inCell || isCell,
    inHeading: place.inHeading || isHeading,
  };
}

const EMPHASIS = new Set(["STRONG", "EM", "DEL"]);

/**
 * Joins adjacent or nested emphasis such as `<b>a</b><b>b</b>`. Written separately, the marks would touch and be read
 * as other marks.
 */
function joinEmphasis(node: PageNode): void {
  const previous = node.previousSibling;
  for (let outer = node.parentNode; outer !== null; outer = outer.parentNode) {
    if (outer.nodeName === node.nodeName) node.nodeName = "SPAN";
    if (!INLINE.has(outer.nodeName)) break;
  }
  if (node.nodeName === "SPAN" || previous?.nodeName !== node.nodeName) return;
  if (/\s$/.test(previous.textContent) || /^\s/.test(node.textContent)) return;
  previous.takeChildren(node);
  node.parentNode?.removeChild(node);
}

const INLINE = new Set(["SPAN", "A", "STRONG", "EM", "DEL", "FONT", "SMALL", "U", "INS"]);

/**
 * Converts a list item that begins with a checkbox to a task. Other input fields are removed, because they have no
 * text.
 */
function shapeInput(node: PageNode): void {
  if (node.getAttribute("type")?.toLowerCase() !== "checkbox") {
    node.parentNode?.removeChild(node);
    return;
  }
  let inner = node;
  for (let outer = node.parentNode; outer !== null; outer = outer.parentNode) {
    for (let before = inner.previousSibling; before !== null; before = before.previousSibling)
      if (before.textContent.trim() !== "") return;
    if (outer.nodeName === "LI") {
      const mark = rawText(node.hasAttribute("checked") ? "[x]" : "[ ]");
      node.parentNode?.insertBefore(mark, node);
      node.parentNode?.insertBefore(PageNode.text(" "), node);
      node.parentNode?.removeChild(node);
      return;
    }
    if (!INLINE.has(outer.nodeName) && outer.nodeName !== "P" && outer.nodeName !== "LABEL") return;
    inner = outer;
  }
}

/** Returns a node of raw Markdown. */
function rawText(markdown: string): PageNode {
  const node = PageNode.element("x-raw");
  node.data = markdown;
  node.replaceChildren("raw");
  return node;
}
