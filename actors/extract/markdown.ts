/** Makes Markdown of a page's HTML. It runs as long as the page makes it: call it through MarkdownPool. */
import { type ElementNode, htmlToMarkdown, type TextNode } from "@mdream/js";
import { MARKDOWN_HTML_CHARS_MAX } from "../../schemas/crawl-limits.ts";
import { codeLanguage } from "./code-language.ts";

export interface MarkdownPage {
  html: string;
  /** What relative addresses are relative to: the page's own, or its `<base href>`. */
  baseUrl: string;
  /** Goes into the front matter. */
  title?: string;
}

/** CommonMark with tables and strike-through, links absolute, and the title as YAML front matter. */
export function markdown({ html, baseUrl, title }: MarkdownPage): string {
  const body = htmlToMarkdown(html.slice(0, MARKDOWN_HTML_CHARS_MAX), {
    origin: baseUrl,
    plugins: { tagOverrides: TAGS, filter: { exclude: ["title", "[hidden]"] } },
    hooks: [{ processAttributes: (node) => prepare(node, baseUrl), processTextNode: escapeLast }],
  });
  const text = title === undefined ? body : `---\ntitle: ${yamlText(title)}\n---\n\n${body}`;
  return `${text.trimEnd()}\n`.toWellFormed();
}

/** Elements that Markdown has no form for read as plain blocks and plain text, not as tags. */
const TAGS = {
  address: "div",
  center: "div",
  details: "div",
  dir: "ul",
  fieldset: "div",
  form: "div",
  legend: "p",
  menu: "ul",
  summary: "p",
  dl: "div",
  dt: "p",
  dd: "p",
  abbr: "span",
  cite: "span",
  ins: "span",
  samp: "span",
  small: "span",
  sub: "span",
  sup: "span",
  u: "span",
};

function prepare(node: ElementNode, baseUrl: string): void {
  const { name, attributes, parent } = node;
  if (name === "a") {
    const href = linkTarget(attributes.href, baseUrl);
    const { href: _, ...others } = attributes;
    node.attributes = href === undefined ? others : { ...others, href };
  } else if (name === "pre" || (name === "code" && parent?.name === "pre")) {
    const language = codeLanguage(node);
    if (language !== undefined) node.attributes = { ...attributes, class: `language-${language}` };
  }
}

/** The last "<" of a text is left as it is, since no letter follows; in `<b>List</b>&lt;<i>T</i>` one comes after all. */
function escapeLast({ value, parent }: TextNode): { content: string; skip: boolean } | undefined {
  if (!value.endsWith("<")) return undefined;
  for (let node = parent; node != null; node = node.parent) {
    if (node.name === "pre" || node.name === "code") return undefined;
  }
  return { content: `${value.slice(0, -1)}&lt;`, skip: false };
}

/** Scripts are no links. What cannot be resolved is nobody's address, so its text is enough. */
function linkTarget(href: string | undefined, baseUrl: string): string | undefined {
  const url = href === undefined ? null : URL.parse(href, baseUrl);
  return url === null || url.protocol === "javascript:" ? undefined : url.href;
}

/** A double-quoted YAML scalar takes JSON's escapes, and wants some more characters escaped (YAML 1.2, section 5.1). */
function yamlText(text: string): string {
  const escaped = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text.toWellFormed()).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    escaped,
  );
}
