/**
 * Converts a page's HTML to Markdown. The content of the page decides how long that takes, so use it only through
 * MarkdownPool.
 */
import type TurndownService from "turndown";
import { markdownWriter } from "./markdown-rules.ts";
import { parsePage } from "./parse-page.ts";
import { shapePage } from "./shape-page.ts";

/**
 * Maximum characters of the HTML. It equals the byte limit of a stored page, because a byte is at most one character.
 */
export const MARKDOWN_HTML_CHARS_MAX = 10 * 1024 * 1024;

export interface MarkdownPage {
  html: string;
  /** Base of relative addresses: the page's own address, or its `<base href>`. */
  baseUrl: string;
  /** Title for the front matter. */
  title?: string;
  /** Scripts ran on the page, so its `noscript` elements are not shown. */
  isScripted?: boolean;
}

const WRITER = markdownWriter();

/** Returns CommonMark with tables and strike-through, absolute links, and the title as YAML front matter. */
export function markdown({ html, baseUrl, title, isScripted = false }: MarkdownPage): string {
  const root = parsePage(html.slice(0, MARKDOWN_HTML_CHARS_MAX), { isScripted });
  shapePage(root, { baseUrl, isScripted });
  // Safe: Turndown uses only DOM members that PageNode has.
  const body = WRITER.turndown(root as unknown as TurndownService.Node);
  const text = title === undefined ? body : `---\ntitle: ${yamlText(title)}\n---\n\n${body}`;
  return `${text.trimEnd()}\n`.toWellFormed();
}

/**
 * Quotes a text as a YAML scalar. YAML accepts the escapes of JSON, but requires some more characters to be escaped
 * (YAML 1.2, section 5.1).
 */
function yamlText(text: string): string {
  const escaped = (character: string) =>
    `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(text.toWellFormed()).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    escaped,
  );
}
