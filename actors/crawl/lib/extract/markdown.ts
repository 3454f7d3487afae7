/** Makes Markdown of a page's HTML. It runs as long as the page makes it: call it through MarkdownPool. */
import type TurndownService from "turndown";
import { markdownWriter } from "./markdown-rules.ts";
import { parsePage } from "./parse-page.ts";
import { shapePage } from "./shape-page.ts";

/** HTML that is made into Markdown: the bytes kept of a page, each at most one character. */
export const MARKDOWN_HTML_CHARS_MAX = 10 * 1024 * 1024;

export interface MarkdownPage {
  html: string;
  /** What relative addresses are relative to: the page's own, or its `<base href>`. */
  baseUrl: string;
  /** Goes into the front matter. */
  title?: string;
  /** Scripts ran on the page, as in a browser: what it holds for readers without scripts is not shown. */
  isScripted?: boolean;
}

const WRITER = markdownWriter();

/** CommonMark with tables and strike-through, links absolute, and the title as YAML front matter. */
export function markdown({ html, baseUrl, title, isScripted = false }: MarkdownPage): string {
  const root = parsePage(html.slice(0, MARKDOWN_HTML_CHARS_MAX), { isScripted });
  shapePage(root, { baseUrl, isScripted });
  // Turndown reads no more of the DOM than PageNode has.
  const body = WRITER.turndown(root as unknown as TurndownService.Node);
  const text = title === undefined ? body : `---\ntitle: ${yamlText(title)}\n---\n\n${body}`;
  return `${text.trimEnd()}\n`.toWellFormed();
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
