/** The tree of a page, with the DOM members that Turndown and parse5 use. */
import type { Token } from "parse5";

export const TEXT = 3;
export const ELEMENT = 1;
const OTHER = 8;
const ROOT = 11;

type NodeKind = typeof TEXT | typeof ELEMENT | typeof OTHER | typeof ROOT;

/**
 * A node of the tree. Siblings form a linked list, so removing a node takes the same time with two or a hundred
 * thousand siblings. Turndown adds members to the nodes while it writes.
 */
export class PageNode {
  readonly nodeType: NodeKind;
  /** The name of the element as the parser delivers it: in lower case for HTML. */
  readonly tagName: string;
  /** Name that decides how the element is written. */
  nodeName: string;
  attributes: Token.Attribute[];
  data: string;
  namespaceURI = "";
  /** The content of a `template`. */
  content: PageNode | null = null;
  parentNode: PageNode | null = null;
  previousSibling: PageNode | null = null;
  nextSibling: PageNode | null = null;
  firstChild: PageNode | null = null;
  lastChild: PageNode | null = null;
  /**
   * Turndown sets these members. They are declared here, so that a page of a million nodes fits into the memory of
   * its thread.
   */
  isBlock = false;
  isCode = false;
  isBlank = false;
  flankingWhitespace: object | null = null;

  constructor(nodeType: NodeKind, tagName: string, nodeName: string, data: string) {
    this.nodeType = nodeType;
    this.tagName = tagName;
    this.nodeName = nodeName;
    this.data = data;
    this.attributes = NO_ATTRIBUTES;
  }

  static root(): PageNode {
    return new PageNode(ROOT, "#root", "#root", "");
  }

  static text(data: string): PageNode {
    return new PageNode(TEXT, "#text", "#text", data);
  }

  static comment(): PageNode {
    return new PageNode(OTHER, "#comment", "#comment", "");
  }

  static element(tagName: string, attributes: Token.Attribute[] = []): PageNode {
    const name = nameOf(tagName);
    const node = new PageNode(ELEMENT, name.own, name.upper, "");
    if (attributes.length > 0) node.attributes = attributes;
    return node;
  }

  get nodeValue(): string {
    return this.data;
  }

  get childNodes(): PageNode[] {
    const children: PageNode[] = [];
    for (let child = this.firstChild; child !== null; child = child.nextSibling)
      children.push(child);
    return children;
  }

  /**
   * Returns the beginning of the text up to its first word, and the end from its last word. That is much cheaper than
   * the whole text, and Turndown uses only whether there is text and the white space at its edges.
   */
  get textContent(): string {
    if (this.nodeType === TEXT) return this.data;
    const start = this.#edge("firstChild", "nextSibling");
    if (start.trim() === "") return start;
    return start + this.#edge("lastChild", "previousSibling");
  }

  /** The whole text. */
  get text(): string {
    if (this.nodeType === TEXT) return this.data;
    const parts: string[] = [];
    this.#read(parts);
    return parts.join("");
  }

  #read(parts: string[]): void {
    for (let child = this.firstChild; child !== null; child = child.nextSibling) {
      if (child.nodeType === TEXT) parts.push(child.data);
      else child.#read(parts);
    }
  }

  /** Returns the text from one end up to the first text node that is not blank. */
  #edge(first: "firstChild" | "lastChild", next: "nextSibling" | "previousSibling"): string {
    let text = "";
    for (let child = this[first]; child !== null; child = child[next]) {
      const part = child.nodeType === TEXT ? child.data : child.#edge(first, next);
      text = first === "firstChild" ? text + part : part + text;
      if (/\S/.test(part)) break;
    }
    return text;
  }

  getAttribute(name: string): string | null {
    return this.attributes.find((attribute) => attribute.name === name)?.value ?? null;
  }

  setAttribute(name: string, value: string): void {
    const attribute = this.attributes.find((one) => one.name === name);
    if (attribute !== undefined) attribute.value = value;
    else this.attributes = [...this.attributes, { name, value }];
  }

  hasAttribute(name: string): boolean {
    return this.attributes.some((attribute) => attribute.name === name);
  }

  /** Returns at most one element, because Turndown needs only whether there is any. */
  getElementsByTagName(nodeName: string): PageNode[] {
    const found = this.find((node) => node.nodeName === nodeName);
    return found === undefined ? [] : [found];
  }

  /** Returns the first descendant element that passes the test, in the order of the page. */
  find(test: (node: PageNode) => boolean): PageNode | undefined {
    for (let child = this.firstChild; child !== null; child = child.nextSibling) {
      if (child.nodeType !== ELEMENT) continue;
      const found = test(child) ? child : child.find(test);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /**
   * Returns the node itself. Turndown writes a copy of its node, but this tree is built only for Turndown, so no copy
   * is needed.
   */
  cloneNode(): PageNode {
    return this;
  }

  insertBefore(node: PageNode, next: PageNode | null): void {
    node.parentNode?.removeChild(node);
    const previous = next === null ? this.lastChild : next.previousSibling;
    node.parentNode = this;
    node.previousSibling = previous;
    node.nextSibling = next;
    if (previous === null) this.firstChild = node;
    else previous.nextSibling = node;
    if (next === null) this.lastChild = node;
    else next.previousSibling = node;
  }

  appendChild(node: PageNode): void {
    this.insertBefore(node, null);
  }

  removeChild(node: PageNode): void {
    const { previousSibling: previous, nextSibling: next } = node;
    if (previous === null) this.firstChild = next;
    else previous.nextSibling = next;
    if (next === null) this.lastChild = previous;
    else next.previousSibling = previous;
    node.parentNode = null;
    node.previousSibling = null;
    node.nextSibling = null;
  }

  /** Moves all children of another node to the end of this one. */
  takeChildren(from: PageNode): void {
    for (let child = from.firstChild; child !== null; child = from.firstChild)
      this.appendChild(child);
  }

  /** Removes all children. */
  clear(): void {
    this.firstChild = null;
    this.lastChild = null;
  }

  /** Replaces all children by this text. */
  replaceChildren(text: string): void {
    this.clear();
    this.appendChild(PageNode.text(text));
  }
}

const NO_ATTRIBUTES: Token.Attribute[] = [];

interface ElementName {
  own: string;
  upper: string;
}

/** Names that elements share, so that the many elements of a page need no copies. */
const names = new Map<string, ElementName>();
/**
 * Maximum number of element names in `names`: HTML, SVG and MathML have about 250, but a page may invent any number
 * of others.
 */
const NAMES_MAX = 1_000;

function nameOf(tagName: string): ElementName {
  const known = names.get(tagName);
  if (known !== undefined) return known;
  const name = { own: tagName, upper: tagName.toUpperCase() };
  if (names.size < NAMES_MAX) names.set(tagName, name);
  return name;
}
