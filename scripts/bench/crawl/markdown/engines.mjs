/** Engines in JavaScript that Markdown is measured against, and the reader of what all of them write. */
import MarkdownIt from "markdown-it";
import { NodeHtmlMarkdown } from "node-html-markdown";
import TurndownService from "turndown";
import { gfm } from "turndown-plugin-gfm";

const turndown = new TurndownService({ headingStyle: "atx", codeBlockStyle: "fenced" });
turndown.use(gfm);
turndown.remove(["script", "style", "title"]);

export const engines = {
  "turndown + gfm": (html) => turndown.turndown(html),
  "node-html-markdown": (html) => NodeHtmlMarkdown.translate(html),
};

const reader = new MarkdownIt({ html: true });

export const toHtml = (markdown) => reader.render(markdown);
