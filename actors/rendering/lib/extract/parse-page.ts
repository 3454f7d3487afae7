/** Parses a page's HTML to a tree as browsers do, but with limited depth. */
import {
  html as htmlNames,
  Parser,
  type Token,
  type TreeAdapter,
  type TreeAdapterTypeMap,
} from "parse5";
import { ELEMENT, PageNode, TEXT } from "./page-node.ts";

/**
 * Maximum nested elements. Browsers allow 512 levels; real pages have fewer than 100. Deeper tags are ignored, but
 * their text is kept.
 */
export const MARKDOWN_DEPTH_MAX = 512;

/** `isScripted` says that scripts ran on the page: then `noscript` is not shown. */
export function parsePage(html: string, { isScripted }: { isScripted: boolean }): PageNode {
  // Without scripting the content of `noscript` is markup. With scripting it is text, which the caller drops.
  const parser = new BoundedParser({ treeAdapter: ADAPTER, scriptingEnabled: isScripted });
  parser.tokenizer.write(html, true);
  return parser.document;
}

interface NodeTypes extends TreeAdapterTypeMap {
  node: PageNode;
  parentNode: PageNode;
  childNode: PageNode;
  document: PageNode;
  documentFragment: PageNode;
  element: PageNode;
  commentNode: PageNode;
  textNode: PageNode;
  template: PageNode;
  documentType: PageNode;
}

/** Elements whose content is only text up to their end tag, so they cannot be nested. */
const HOLDS_TEXT = new Set(
  "script style title textarea xmp iframe noembed noframes noscript plaintext".split(" "),
);
const VOID = new Set(
  "area base br col embed hr img input link meta param source track wbr".split(" "),
);

/**
 * A parser that ignores the tags of elements below the maximum depth and keeps their text. Otherwise some markup
 * would take time quadratic in its length.
 */
class BoundedParser extends Parser<NodeTypes> {
  /** Number of ignored start tags, by name. Their end tags must not close an outer element. */
  readonly #ignored = new Map<string, number>();

  override onStartTag(token: Token.TagToken): void {
    const name = token.tagName;
    if (this.openElements.stackTop < MARKDOWN_DEPTH_MAX || HOLDS_TEXT.has(name) || VOID.has(name)) {
      super.onStartTag(token);
    } else {
      this.#ignored.set(name, (this.#ignored.get(name) ?? 0) + 1);
    }
  }

  override onEndTag(token: Token.TagToken): void {
    const ignored = this.#ignored.get(token.tagName) ?? 0;
    if (ignored === 0) super.onEndTag(token);
    else this.#ignored.set(token.tagName, ignored - 1);
  }
}

const ADAPTER: TreeAdapter<NodeTypes> = {
  createDocument: () => PageNode.root(),
  createDocumentFragment: () => PageNode.root(),
  createElement(tagName, namespaceURI, attributes) {
    const node = PageNode.element(tagName, attributes);
    node.namespaceURI = namespaceURI;
    return node;
  },
  createCommentNode: () => PageNode.comment(),
  createTextNode: (text) => PageNode.text(text),
  setDocumentType: () => {},
  setDocumentMode: () => {},
  getDocumentMode: () => htmlNames.DOCUMENT_MODE.NO_QUIRKS,
  setTemplateContent(template, content) {
    template.content = content;
  },
  getTemplateContent: (template) => template.content ?? template,
  appendChild: (parent, node) => parent.appendChild(node),
  insertBefore: (parent, node, next) => parent.insertBefore(node, next),
  detachNode: (node) => node.parentNode?.removeChild(node),
  insertText: (parent, text) => insertText(parent, text, null),
  insertTextBefore: insertText,
  adoptAttributes(node, attributes) {
    const own = new Set(node.attributes.map(({ name }) => name));
    node.attributes = [...node.attributes, ...attributes.filter(({ name }) => !own.has(name))];
  },
  getFirstChild: (node) => node.firstChild,
  getChildNodes: (node) => node.childNodes,
  getParentNode: (node) => node.parentNode,
  getAttrList: (node) => node.attributes,
  getTagName: (node) => node.tagName,
  getNamespaceURI: (node) => node.namespaceURI as htmlNames.NS,
  getTextNodeContent: (node) => node.data,
  getCommentNodeContent: () => "",
  getDocumentTypeNodeName: () => "",
  getDocumentTypeNodePublicId: () => "",
  getDocumentTypeNodeSystemId: () => "",
  isTextNode: (node): node is PageNode => node.nodeType === TEXT,
  isCommentNode: (node): node is PageNode => node.nodeName === "#comment",
  isDocumentTypeNode: (_node): _node is PageNode => false,
  isElementNode: (node): node is PageNode => node.nodeType === ELEMENT,
  setNodeSourceCodeLocation: () => {},
  getNodeSourceCodeLocation: () => null,
  updateNodeSourceCodeLocation: () => {},
};

function insertText(parent: PageNode, text: string, next: PageNode | null): void {
  const previous = next === null ? parent.lastChild : next.previousSibling;
  if (previous?.nodeType === TEXT) previous.data += text;
  else parent.insertBefore(PageNode.text(text), next);
}
