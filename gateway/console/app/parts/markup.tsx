/** Shows untrusted Markdown or HTML as harmless elements, which are created one by one. */
import { type ComponentChildren, createElement } from "preact";
import { useMemo } from "preact/hooks";
import type { MarkupElement, MarkupNode } from "./html-tree.ts";
import { parseMarkdown } from "./markdown-tree.ts";
import { Scroll } from "./note.tsx";
import { SourceText } from "./source.tsx";

/** Longer documents are shown as plain text, because parsing them would block the page. */
export const MARKDOWN_CHARS_MAX = 400_000;

interface MarkupLinks {
  /** Renders a link, or only the link's text. */
  link?: (target: string, children: ComponentChildren) => ComponentChildren;
  /** Renders a picture. Without this function, only the picture's text is shown. */
  image?: (source: string, text: string) => ComponentChildren;
}

interface MarkdownProps extends MarkupLinks {
  text: string;
  /** The heading level of the document's first heading. It must be below the headings of the page. */
  level?: number;
}

export function Markdown({ text, level = 3, ...links }: MarkdownProps) {
  const nodes = useMemo(() => treeOf(text), [text]);
  if (!nodes) return <SourceText text={text} label="Document" />;
  return <div class="markup">{childrenOf(nodes, { links, outline: new Outline(level) })}</div>;
}

function treeOf(text: string): MarkupNode[] | undefined {
  if (text.length > MARKDOWN_CHARS_MAX) return undefined;
  try {
    return parseMarkdown(text);
  } catch {
    // The document is nested too deeply or too slow to parse, so its source text is shown.
    return undefined;
  }
}

interface Showing {
  links: MarkupLinks;
  outline: Outline;
}

/** Assigns heading levels without gaps, even if the document skips levels. */
class Outline {
  readonly #level: number;
  readonly #open: number[] = [];

  constructor(level: number) {
    this.#level = level;
  }

  nameOf(depth: number): string {
    while ((this.#open.at(-1) ?? 0) >= depth) this.#open.pop();
    this.#open.push(depth);
    return `h${Math.min(6, this.#level + this.#open.length - 1)}`;
  }
}

const childrenOf = (nodes: readonly MarkupNode[], showing: Showing) =>
  nodes.map((node) => (typeof node === "string" ? node : shown(node, showing)));

function shown(node: MarkupElement, showing: Showing): ComponentChildren {
  const { name, attributes, children } = node;
  const { links, outline } = showing;
  const depth = /^h([1-6])$/.exec(name)?.[1];
  if (depth !== undefined) {
    const heading = outline.nameOf(Number(depth));
    return createElement(heading, { class: `size-${depth}` }, childrenOf(children, showing));
  }
  if (name === "a") {
    const inner = childrenOf(children, showing);
    return attributes.href === undefined ? inner : linked(attributes.href, inner, links);
  }
  if (name === "img") {
    const text = attributes.alt ?? "";
    return links.image?.(attributes.src ?? "", text) ?? <span class="quiet">{text}</span>;
  }
  if (name === "pre") {
    const text = textOf(children).replace(/\n$/, "");
    return <SourceText text={text} language={attributes.language} label="Code" />;
  }
  if (name === "table") {
    const inner = <table>{childrenOf(children, showing)}</table>;
    return <Scroll label="Table">{inner}</Scroll>;
  }
  return createElement(name, spansOf(attributes), ...childrenOf(children, showing));
}

/** Links only to web and mail addresses. Other link targets stay text. */
function linked(target: string, inner: ComponentChildren, { link }: MarkupLinks) {
  if (/^(https?:\/\/|mailto:)/i.test(target)) {
    return (
      <a href={target} rel="noreferrer noopener nofollow" target="_blank">
        {inner}
      </a>
    );
  }
  return link?.(target, inner) ?? inner;
}

function spansOf({ colspan, rowspan }: MarkupElement["attributes"]) {
  const number = (text: string | undefined) =>
    /^\d{1,2}$/.test(text ?? "") ? Number(text) : undefined;
  return { colSpan: number(colspan), rowSpan: number(rowspan) };
}

const textOf = (nodes: readonly MarkupNode[]): string =>
  nodes.map((node) => (typeof node === "string" ? node : textOf(node.children))).join("");
