/** Parses untrusted HTML into a tree of harmless elements. Creates no document that could load or run anything. */
import { Parser } from "htmlparser2";

export interface MarkupElement {
  name: string;
  attributes: Readonly<Record<string, string>>;
  children: MarkupNode[];
}
export type MarkupNode = string | MarkupElement;

/** Elements that are kept because they give meaning to their text, with the attributes that are kept. */
const KEPT: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    "p br hr h1 h2 h3 h4 h5 h6 ul ol li dl dt dd blockquote pre code kbd samp var b strong i em u s del ins sub sup mark small q cite abbr figure figcaption table caption thead tbody tfoot tr th td details summary"
      .split(" ")
      .map((name) => [name, []]),
  ),
  // markdown-tree.ts stores the language of a code block in this attribute.
  pre: ["language"],
  a: ["href"],
  img: ["src", "alt"],
  th: ["colspan", "rowspan"],
  td: ["colspan", "rowspan"],
};
/** Elements that are removed together with their content, because the content is not readable text. */
const DROPPED = new Set(
  "script style template noscript iframe object embed svg math title textarea select canvas audio video map".split(
    " ",
  ),
);
/**
 * Maximum depth. Deeper elements are replaced by their text, because a page may nest tens of thousands of elements.
 */
const DEPTH_MAX = 60;
/**
 * Maximum number of open elements; the rest of the page is omitted. The parser's time grows with the square of this
 * number.
 */
const OPEN_MAX = 10_000;
/** Maximum number of elements and texts in a tree. The rest of the page is omitted. */
const NODES_MAX = 30_000;

export const isDropped = (name: string) => DROPPED.has(name.toLowerCase());

/** Returns the tree of a page or of a part of one. */
export function parseHtml(html: string, nodesMax = NODES_MAX): MarkupNode[] {
  const root: MarkupNode[] = [];
  /** The open elements, each with the list of its children. */
  const open: { name: string; children: MarkupNode[] }[] = [];
  let dropped = 0;
  let nodes = 0;
  const place = () => open.at(-1)?.children ?? root;
  const parser = new Parser({
    onopentag(name, given) {
      if (open.length >= OPEN_MAX) parser.pause();
      if (DROPPED.has(name)) dropped += 1;
      const kept = KEPT[name];
      if (!kept || dropped > 0 || open.length >= DEPTH_MAX || nodes++ >= nodesMax) {
        open.push({ name, children: place() });
        return;
      }
      const attributes = Object.fromEntries(
        kept.flatMap((key) => (given[key] === undefined ? [] : [[key, given[key]]])),
      );
      const element: MarkupElement = { name, attributes, children: [] };
      place().push(element);
      open.push({ name, children: element.children });
    },
    onclosetag(name) {
      if (DROPPED.has(name)) dropped -= 1;
      open.pop();
    },
    ontext(text) {
      if (dropped === 0 && nodes++ < nodesMax) place().push(text);
    },
  });
  parser.end(html);
  return root;
}

/**
 * Converts a tree to HTML. Replaces links and pictures by their text, because the frame that shows the HTML may load
 * nothing.
 */
export function writeHtml(nodes: readonly MarkupNode[]): string {
  return nodes.map(writeNode).join("");
}

function writeNode(node: MarkupNode): string {
  if (typeof node === "string") return escaped(node);
  const { name, attributes, children } = node;
  if (name === "img") return attributes.alt ? `<i>[${escaped(attributes.alt)}]</i>` : "";
  if (name === "br" || name === "hr") return `<${name}>`;
  if (name === "a") return `<u>${writeHtml(children)}</u>`;
  const spans = ["colspan", "rowspan"]
    .filter((key) => /^\d{1,3}$/.test(attributes[key] ?? ""))
    .map((key) => ` ${key}="${attributes[key]}"`);
  return `<${name}${spans.join("")}>${writeHtml(children)}</${name}>`;
}

export const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
