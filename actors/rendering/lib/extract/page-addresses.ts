/** Resolves the addresses of a page's links and images, and decides which part of the page each link surrounds. */
import { PageNode, TEXT } from "./page-node.ts";

/** The properties of a page that shape its output: the base of its links, and whether its scripts ran. */
export interface Shaping {
  baseUrl: string;
  isScripted: boolean;
}

/** The surroundings of an element. */
export interface Place extends Shaping {
  /** Whether the element is in a cell of a Markdown table. Such a cell is a single line. */
  inCell: boolean;
  /** Whether the element is in a heading, a caption or the term of a definition, where permalinks occur. */
  inHeading: boolean;
}

/**
 * Returns the absolute address of a link; undefined for `javascript:`, `data:` and `blob:` addresses and for those
 * that cannot be resolved. Only the text of such links is written.
 */
export function absoluteLink(href: string | null, baseUrl: string): string | undefined {
  const url = href === null ? null : URL.parse(href, baseUrl);
  return url === null || /^(?:javascript|data|blob):$/.test(url.protocol) ? undefined : url.href;
}

const BLOCKS = new Set(
  `ADDRESS ARTICLE ASIDE BLOCKQUOTE CENTER DD DIV DL DT FIELDSET FIGCAPTION FIGURE FOOTER FORM H1 H2 H3 H4 H5 H6
   HEADER HR LI MAIN NAV OL P PRE SECTION TABLE TD TH UL`.split(/\s+/),
);
export const isBlock = (node: PageNode) => BLOCKS.has(node.nodeName);
const isHeading = (node: PageNode) => /^H[1-6]$/.test(node.nodeName);

export function shapeLink(node: PageNode, { baseUrl, inHeading }: Place): void {
  const written = node.getAttribute("href");
  const href = absoluteLink(written, baseUrl);
  if (href === undefined) {
    node.nodeName = node.find(isBlock) === undefined ? "SPAN" : "DIV";
    return;
  }
  if (isPermalink(node, written ?? "", inHeading)) {
    node.replaceChildren("");
    node.nodeName = "SPAN";
    return;
  }
  node.setAttribute("href", href);
  escapeMarkBefore(node);
  if (node.find(isBlock) !== undefined) linkWithin(node);
}

/** Whether the link is a permalink: an address of its own position, shown only as a mark such as ¶. */
function isPermalink(node: PageNode, href: string, inHeading: boolean): boolean {
  if (!href.includes("#") || node.find((inner) => inner.tagName === "img") !== undefined)
    return false;
  const text = node.text;
  return inHeading
    ? /^[\s\u200b¶§#🔗]*$/u.test(text)
    : /^[\s\u200b]*[¶§🔗][\s\u200b]*$/u.test(text);
}

/**
 * Moves a link that contains blocks, because a Markdown link cannot contain blocks. Its first heading becomes the
 * link, or else the first block that has text.
 */
function linkWithin(node: PageNode): void {
  const isLeaf = (inner: PageNode) =>
    isBlock(inner) &&
    inner.find(isBlock) === undefined &&
    inner.nodeName !== "PRE" &&
    isShown(inner);
  const target = node.find((inner) => isHeading(inner) && isLeaf(inner)) ?? node.find(isLeaf);
  node.nodeName = "DIV";
  if (target === undefined) return;
  const link = PageNode.element("a", node.attributes);
  link.takeChildren(target);
  target.appendChild(link);
}

const isShown = (node: PageNode) =>
  node.textContent.trim() !== "" || node.find((inner) => inner.tagName === "img") !== undefined;

/** Escapes "!" before a link, which would otherwise become an image. */
function escapeMarkBefore(node: PageNode): void {
  const before = node.previousSibling;
  if (before?.nodeType !== TEXT || !before.data.endsWith("!")) return;
  before.data = before.data.slice(0, -1);
  const mark = PageNode.element("x-raw");
  mark.data = "\\!";
  mark.replaceChildren("!");
  node.parentNode?.insertBefore(mark, node);
}

/**
 * Sets the address of an image. If `src` is missing or only a placeholder, uses the address that a script would load
 * later.
 */
export function shapeImage(node: PageNode, { baseUrl }: Place): void {
  const found = imageSources(node)
    .map((source) => absoluteLink(source, baseUrl))
    .find((source) => source !== undefined);
  node.setAttribute("src", found ?? "");
}

function imageSources(node: PageNode): string[] {
  const lazy = ["data-src", "data-original", "data-lazy-src", "data-lazy"];
  const later = lazy.map((name) => node.getAttribute(name)).filter((value) => value !== null);
  const setsOf = (...names: string[]) =>
    [node, ...pictureSources(node)].flatMap((source) =>
      names.map((name) => largestOf(source.getAttribute(name))),
    );
  const own = node.getAttribute("src");
  // If an image has addresses for a script, its `src` is a placeholder, so the addresses for the script come first.
  const lazySets = setsOf("data-srcset", "data-lazy-srcset");
  const all = [...later, ...lazySets, ...(own === null ? [] : [own]), ...setsOf("srcset")];
  return all.filter((source) => source !== undefined && source.trim() !== "") as string[];
}

function pictureSources(node: PageNode): PageNode[] {
  const picture = node.parentNode;
  if (picture?.tagName !== "picture") return [];
  return picture.childNodes.filter(({ tagName }) => tagName === "source");
}

/** Returns the candidate of a `srcset` with the largest width or density. */
function largestOf(set: string | null): string | undefined {
  let largest: { address: string; size: number } | undefined;
  for (const [, address = "", size] of (set ?? "").matchAll(
    /([^\s,]\S*[^\s,])(?:\s+([\d.]+)[wx])?\s*(?:,|$)/g,
  )) {
    const candidate = { address, size: Number(size ?? 1) };
    if (largest === undefined || candidate.size > largest.size) largest = candidate;
  }
  return largest?.address;
}
