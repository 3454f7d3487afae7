/** Parses Markdown into the same tree of harmless elements as HTML. */
import { Lexer, type Token, type Tokens, type TokensList } from "marked";
import { decodeEntities, type MarkupElement, type MarkupNode, parseHtml } from "./html-tree.ts";

/** Signs of emphasis in one paragraph. With more it stays plain: the lexer's time grows with their square or worse. */
const SIGNS_MAX = 300;
/** Quotes and lists inside each other. */
const DEPTH_MAX = 50;
/** Time for one document, in milliseconds: it is parsed in the thread that draws the page. */
const PARSE_MS_MAX = 2_000;

/** The lexer of Markdown with bounds. Throws where a document goes past depth or time. */
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

/** YAML before the document, as crawled pages and many READMEs begin. */
const FRONT_MATTER = /^---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)/;

/** Returns the tree of a document. Throws for one that is nested too deeply or takes too long. */
export function parseMarkdown(text: string): MarkupNode[] {
  const [front = "", yaml] = FRONT_MATTER.exec(text) ?? [];
  const nodes = nodesOf(new BoundedLexer({ gfm: true }).lex(text.slice(front.length)));
  return yaml ? [element("pre", [yaml], { language: "yaml" }), ...nodes] : nodes;
}

const nodesOf = (tokens: readonly Token[] | undefined): MarkupNode[] =>
  (tokens ?? []).flatMap((token) => nodeOf(token as Tokens.Generic));

const element = (
  name: string,
  children: MarkupNode[] = [],
  attributes: MarkupElement["attributes"] = {},
): MarkupElement => ({ name, children, attributes });

const SIMPLE: Readonly<Record<string, string>> = {
  paragraph: "p",
  blockquote: "blockquote",
  strong: "strong",
  em: "em",
  del: "del",
  br: "br",
  hr: "hr",
};

function nodeOf(token: Tokens.Generic): MarkupNode | MarkupNode[] {
  const { type } = token;
  const simple = SIMPLE[type];
  if (simple !== undefined) return element(simple, nodesOf(token.tokens));
  switch (type) {
    case "heading":
      return element(`h${token.depth}`, nodesOf(token.tokens));
    case "code":
      return element("pre", [token.text], {
        language: String(token.lang ?? "").split(" ")[0] ?? "",
      });
    case "codespan":
      return element("code", [token.text]);
    case "list":
      return listOf(token as Tokens.List);
    case "table":
      return tableOf(token as Tokens.Table);
    case "link":
      return element("a", nodesOf(token.tokens), { href: token.href });
    case "image":
      return element("img", [], { src: token.href, alt: token.text });
    case "html":
      return htmlOf(token.text, token.block === true);
    case "checkbox":
      return token.checked ? "☑ " : "☐ ";
    case "escape":
      return decodeEntities(token.text);
    case "text":
      return token.tokens ? nodesOf(token.tokens) : decodeEntities(token.text);
    default:
      return [];
  }
}

/** Tags among text come one by one: those that stand alone are kept, and of others their text. */
function htmlOf(html: string, isBlock: boolean): MarkupNode[] {
  const nodes = parseHtml(html);
  if (isBlock) return nodes;
  return nodes.filter(
    (node) => typeof node !== "string" && ["br", "img", "hr"].includes(node.name),
  );
}

function listOf({ ordered, items }: Tokens.List): MarkupElement {
  const children = items.map((item) => {
    const content = nodesOf(item.tokens);
    const hasBox = item.tokens.some(({ type }) => type === "checkbox");
    const box = item.task && !hasBox ? [item.checked ? "☑ " : "☐ "] : [];
    return element("li", [...box, ...content]);
  });
  return element(ordered ? "ol" : "ul", children);
}

function tableOf({ header, rows }: Tokens.Table): MarkupElement {
  const row = (cells: readonly Tokens.TableCell[], name: string) =>
    element(
      "tr",
      cells.map(({ tokens }) => element(name, nodesOf(tokens))),
    );
  return element("table", [
    element("thead", [row(header, "th")]),
    element(
      "tbody",
      rows.map((cells) => row(cells, "td")),
    ),
  ]);
}
