/** Parses Markdown into the same tree of harmless elements as HTML (html-tree.ts). */
import { Lexer, Parser, Renderer, type Token, type Tokens, type TokensList } from "marked";
import { escaped, isDropped, type MarkupNode, parseHtml, writeHtml } from "./html-tree.ts";

/**
 * Maximum number of markup characters, such as * and [, in a paragraph. A paragraph with more is shown as plain text,
 * because the lexer's time grows with the square of this number or faster.
 */
const SIGNS_MAX = 300;
/** Maximum depth of nested quotes and lists. */
const DEPTH_MAX = 50;
/** Maximum time to parse one document, because parsing blocks the page. */
const PARSE_MS_MAX = 2_000;

/** A Markdown lexer with limits. Throws if a document exceeds the maximum depth or time. */
class BoundedLexer extends Lexer {
  readonly #deadline = performance.now() + PARSE_MS_MAX;
  #depth = 0;

  override blockTokens(text: string, tokens?: Token[], isCut?: boolean): Token[];
  override blockTokens(text: string, tokens?: TokensList, isCut?: boolean): TokensList;
  override blockTokens(text: string, tokens?: Token[] | TokensList, isCut?: boolean) {
    this.#check();
    this.#depth += 1;
    const found = super.blockTokens(text, tokens as Token[], isCut);
    this.#depth -= 1;
    return found as TokensList;
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    this.#check();
    if ((text.match(/[*_~`[<]/g)?.length ?? 0) <= SIGNS_MAX) {
      return super.inlineTokens(text, tokens);
    }
    tokens.push({ type: "text", raw: text, text });
    return tokens;
  }

  #check(): void {
    if (this.#depth > DEPTH_MAX || performance.now() > this.#deadline) {
      throw new Error("Cannot parse document: it is nested too deeply or takes too long");
    }
  }
}

/** YAML front matter, with which crawled pages and many READMEs begin. */
const FRONT_MATTER = /^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)/;

/**
 * Renders the checkbox of a task as a character, and stores the language of a code block in an attribute that the
 * tree keeps.
 */
class TreeRenderer extends Renderer {
  override code({ text, lang = "" }: Tokens.Code): string {
    const [language] = /^[\w+#.-]*/.exec(lang) ?? [];
    return `<pre language="${language}">${escaped(text)}</pre>`;
  }

  override checkbox({ checked }: Tokens.Checkbox): string {
    return checked ? "☑ " : "☐ ";
  }

  /**
   * Sanitizes HTML with a dropped element separately. Otherwise an unclosed element of this kind would also remove
   * the rest of the document.
   */
  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    const names = [...text.matchAll(/<\/?([a-z][\w-]*)/gi)].map(([, name = ""]) => name);
    return names.some(isDropped) ? writeHtml(parseHtml(text)) : text;
  }
}

/**
 * Returns the tree of a Markdown document. Throws if the document is nested too deeply or takes too long to parse.
 */
export function parseMarkdown(text: string): MarkupNode[] {
  const [front = "", yaml] = FRONT_MATTER.exec(text) ?? [];
  const tokens = new BoundedLexer({ gfm: true }).lex(text.slice(front.length));
  const nodes = parseHtml(Parser.parse(tokens, { renderer: new TreeRenderer() }), Infinity);
  if (!yaml) return nodes;
  return [{ name: "pre", attributes: { language: "yaml" }, children: [yaml] }, ...nodes];
}
