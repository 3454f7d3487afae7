/** Reads the text of code without losing a character. */
import { absoluteLink, isBlock, type Place } from "./page-addresses.ts";
import { ELEMENT, PageNode, TEXT } from "./page-node.ts";

/**
 * Returns the text of a `pre`. If a line is a separate element, a line break is added after it, as browsers show it.
 */
export function preText(pre: PageNode): string {
  const parts: string[] = [];
  let endsLine = true;
  // A block begins and ends a line. Its line break is written only if more text follows.
  let breaksNext = false;
  read(pre);
  return parts.join("").replace(/\r\n?/g, "\n");

  function read(node: PageNode): void {
    for (let child = node.firstChild; child !== null; child = child.nextSibling) {
      if (child.nodeType === TEXT) write(child.data);
      else if (child.nodeType !== ELEMENT || UNREAD.has(child.tagName)) continue;
      else if (child.tagName === "br") write("\n");
      else if (isLine(child)) {
        if (!endsLine) breaksNext = true;
        read(child);
        if (!endsLine) breaksNext = true;
      } else read(child);
    }
  }

  function write(text: string): void {
    if (text === "") return;
    if (breaksNext && !text.startsWith("\n")) parts.push("\n");
    breaksNext = false;
    parts.push(text);
    endsLine = text.endsWith("\n");
  }
}

const UNREAD = new Set(["script", "style", "template", "button"]);

function isLine(node: PageNode): boolean {
  return (
    isBlock(node) ||
    node.tagName === "tr" ||
    /(?:^|;)\s*display\s*:\s*block/i.test(node.getAttribute("style") ?? "")
  );
}

/**
 * Converts inline code to text only, as Markdown requires. If the code contains links, each one becomes a link around
 * its part of the code.
 */
export function splitCode(code: PageNode, { baseUrl }: Place): void {
  const isLink = (node: PageNode) =>
    node.tagName === "a" && absoluteLink(node.getAttribute("href"), baseUrl) !== undefined;
  if (code.find(isLink) === undefined) {
    code.replaceChildren(codeText(code));
    return;
  }
  const parts = PageNode.root();
  split(code);
  code.nodeName = "SPAN";
  code.clear();
  code.takeChildren(parts);

  function split(node: PageNode): void {
    for (const child of node.childNodes) {
      if (child.nodeType === TEXT) add(parts, child.data);
      else if (isLink(child)) {
        child.setAttribute("href", absoluteLink(child.getAttribute("href"), baseUrl) ?? "");
        const text = codeText(child);
        child.replaceChildren("");
        add(child, text);
        parts.appendChild(child);
      } else if (child.nodeType === ELEMENT) split(child);
    }
  }
}

function add(parent: PageNode, text: string): void {
  const last = parent.lastChild;
  if (last?.nodeName === "CODE") {
    last.replaceChildren(last.text + text);
    return;
  }
  const code = PageNode.element("code");
  code.replaceChildren(text);
  parent.appendChild(code);
}

function codeText(node: PageNode): string {
  if (node.nodeType === TEXT) return node.data;
  if (UNREAD.has(node.tagName)) return "";
  if (node.tagName === "br") return " ";
  return node.childNodes.map(codeText).join("");
}
