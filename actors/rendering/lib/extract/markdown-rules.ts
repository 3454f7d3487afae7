/** The rules by which Turndown writes the tree of a prepared page as Markdown. */
import TurndownService from "turndown";
import { codeBlock, codeSpan, escapeText, indent, linkTarget, wrap } from "./markdown-text.ts";
import type { PageNode } from "./page-node.ts";
import { cellText, writeTable } from "./page-tables.ts";

type Write = (content: string, node: PageNode) => string;

export function markdownWriter(): TurndownService {
  const service = new TurndownService({ headingStyle: "atx", emDelimiter: "*", hr: "---" });
  service.escape = escapeText;
  for (const [names, replacement] of RULES) {
    const filter = names.split(" ") as TurndownService.TagName[];
    service.addRule(names, {
      filter,
      replacement: replacement as TurndownService.ReplacementFunction,
    });
  }
  return service;
}

const block = (text: string) => `\n\n${text}\n\n`;

const RULES: [names: string, write: Write][] = [
  ["p", writeParagraph],
  ["pre", (_, node) => codeBlock(node.text, node.getAttribute("language") ?? "")],
  ["code", (_, node) => codeSpan(node.text.trim())],
  ["x-cell-code", (_, node) => codeLines(node.data)],
  ["x-raw", (_, node) => node.data],
  ["h1 h2 h3 h4 h5 h6", writeHeading],
  ["a", writeLink],
  ["img", writeImage],
  ["strong", (content, node) => writeEmphasis(content, node, "**")],
  ["em", (content, node) => writeEmphasis(content, node, "*")],
  ["del", (content, node) => writeEmphasis(content, node, "~~")],
  ["sub", (content) => wrap(content, "<sub>", "</sub>")],
  ["sup", (content) => wrap(content, "<sup>", "</sup>")],
  ["br", (_, node) => (endsBlock(node) ? "\n" : "  \n")],
  ["blockquote", writeQuotation],
  ["ul ol", writeList],
  ["li", writeItem],
  ["dd", writeDefinition],
  ["td th", writeCell],
  ["tr tbody thead tfoot colgroup", (content) => content],
  ["table", (content, node) => block(content.trim() + block(writeTable(node)))],
];

/** Writes a paragraph and drops its children, so that writing a page of 10 MB needs no more memory than its tree. */
function writeParagraph(content: string, node: PageNode): string {
  node.clear();
  return block(content);
}

function writeHeading(content: string, { nodeName }: PageNode): string {
  const text = content.trim().replace(/\s*\n\s*/g, " ");
  if (text === "") return "";
  // Escapes `#` at the end, which Markdown would read as the closing mark of the heading.
  return block(`${"#".repeat(Number(nodeName[1]))} ${text.replace(/(^|\s)(#+)$/, "$1\\$2")}`);
}

function writeLink(content: string, node: PageNode): string {
  const href = node.getAttribute("href");
  if (href === null) return content;
  const target = linkTarget(href, node.getAttribute("title"));
  if (content.trim() !== "") return wrap(content.replace(/\n{2,}/g, "\n"), "[", `]${target}`);
  // A link without visible text may have a label for screen readers.
  const label = node.getAttribute("aria-label") ?? node.getAttribute("title") ?? "";
  return `[${escapeText(label.trim())}]${target}`;
}

function writeImage(_: string, node: PageNode): string {
  const alt = escapeText((node.getAttribute("alt") ?? "").replace(/\s+/g, " ").trim());
  const src = node.getAttribute("src") ?? "";
  return src === "" ? alt : `![${alt}]${linkTarget(src, node.getAttribute("title"))}`;
}

const TAGS: Record<string, string> = { "**": "strong", "*": "em", "~~": "del" };

/**
 * Writes emphasis. Markdown recognises its marks only at the edge of a word. In other places the HTML element itself
 * is written, which is valid Markdown.
 */
function writeEmphasis(content: string, node: PageNode, mark: string): string {
  const text = content.trim();
  const whole = node.textContent;
  const opens = /^\s/.test(whole) ? " " : before(node);
  const closes = /\s$/.test(whole) ? " " : after(node);
  const isPlain =
    !(isWord(opens) && !isWord(text[0])) &&
    !(isWord(closes) && !isWord(text.at(-1))) &&
    opens !== MARKED;
  const tag = TAGS[mark];
  return isPlain ? wrap(content, mark) : wrap(content, `<${tag}>`, `</${tag}>`);
}

const isWord = (character = "") => /[\p{L}\p{N}]/u.test(character);
const MARKED = "*";
const isMarked = ({ nodeName }: PageNode) => nodeName in { STRONG: 0, EM: 0, DEL: 0 };

/**
 * Returns the character before an element: a space if it is the first child, MARKED if emphasis ends directly before
 * it.
 */
function before(node: PageNode): string {
  const { previousSibling: sibling } = node;
  if (sibling === null) return " ";
  const last = sibling.textContent.at(-1) ?? " ";
  return isMarked(sibling) && /\S/.test(last) ? MARKED : last;
}

function after(node: PageNode): string {
  return node.nextSibling?.textContent[0] ?? " ";
}

function endsBlock(node: PageNode): boolean {
  return node.nextSibling === null && node.parentNode?.isBlock === true;
}

function writeQuotation(content: string): string {
  const lines = trimLines(content).split("\n");
  return block(lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n"));
}

/** Writes a list. A list at the end of an item follows the text of the item without an empty line. */
function writeList(content: string, node: PageNode): string {
  const isLast = node.parentNode?.nodeName === "LI" && node.nextSibling === null;
  return isLast ? `\n${trimLines(content)}` : block(trimLines(content));
}

/** The numbers of the items that are already written, by item. */
const numbers = new WeakMap<PageNode, number>();

function writeItem(content: string, node: PageNode): string {
  const list = node.parentNode;
  const prefix = list?.nodeName === "OL" ? `${numberOf(node, list)}. ` : "- ";
  // An item that begins with an empty line would end there, so white space at its beginning is removed.
  const text = trimLines(content).trimStart();
  const end = content.endsWith("\n") ? "\n\n" : "\n";
  return `${prefix}${indent(text, prefix.length)}${end}`;
}

function numberOf(item: PageNode, list: PageNode): number {
  let before = item.previousSibling;
  while (before !== null && before.nodeName !== "LI") before = before.previousSibling;
  const own = wholeOf(item.getAttribute("value"));
  const following =
    before === null ? wholeOf(list.getAttribute("start")) : (numbers.get(before) ?? 0) + 1;
  const number = own ?? following ?? 1;
  numbers.set(item, number);
  return number;
}

/** Parses a whole number. Markdown allows numbers of up to nine digits. */
function wholeOf(text: string | null): number | undefined {
  return text !== null && /^\s*\d{1,9}\s*$/.test(text) ? Number(text) : undefined;
}

/** Writes a definition with `: ` as in Markdown Extra, but only if the definition begins with text. */
function writeDefinition(content: string): string {
  const text = trimLines(content);
  return block(/^(?:`{3}|#{1,6} |- |\d+[.)] |[|>:]|---)/.test(text) ? text : `: ${text}`);
}

function writeCell(content: string, node: PageNode): string {
  node.data = cellText(content);
  return "";
}

function codeLines(text: string): string {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return block(lines.map(codeSpan).join("\n"));
}

function trimLines(text: string): string {
  let start = 0;
  let end = text.length;
  while (text[start] === "\n") start += 1;
  while (end > start && text[end - 1] === "\n") end -= 1;
  return text.slice(start, end);
}
