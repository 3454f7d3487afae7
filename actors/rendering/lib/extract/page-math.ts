/** Finds formulas and writes them as the TeX source that formula renderers include in the page. */
import { CODE_CLASS_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { PageNode } from "./page-node.ts";

/**
 * Replaces a formula by its TeX, or removes a second form of it. Returns whether the node was replaced or removed.
 */
export function shapeMath(node: PageNode): boolean {
  if (node.tagName === "script") return shapeScript(node);
  // KaTeX puts the formula into the page twice, and Wikipedia adds a picture for browsers without MathML. The second
  // form is removed.
  if (hasClass(node, /(?:^|\s)(?:katex-html|mwe-math-fallback-image-(?:inline|display))(?:\s|$)/)) {
    node.parentNode?.removeChild(node);
    return true;
  }
  if (node.tagName !== "math") return false;
  const annotation = node.find(
    ({ tagName, attributes }) =>
      tagName === "annotation" &&
      attributes.some(({ value }) => /^application\/x-tex$/i.test(value)),
  );
  const tex = annotation?.text ?? node.getAttribute("alttext");
  if (tex == null || tex.trim() === "") {
    spaceTokens(node);
    return false;
  }
  replace(node, tex, node.getAttribute("display") === "block" || isDisplay(node));
  return true;
}

/** Puts spaces between numbers, names and operators of a formula without TeX, so that they do not become one word. */
function spaceTokens(node: PageNode): void {
  for (const child of node.childNodes) {
    if (/^m(?:i|n|o|s|text)$/.test(child.tagName)) node.insertBefore(PageNode.text(" "), child);
    spaceTokens(child);
  }
}

/** Replaces a formula of MathJax 2, which stores it in a script of a type that browsers ignore. */
function shapeScript(node: PageNode): boolean {
  const type = /^\s*math\/tex\s*(;\s*mode\s*=\s*display)?/i.exec(node.getAttribute("type") ?? "");
  if (type === null) return false;
  replace(node, node.text, type[1] !== undefined);
  return true;
}

function replace(node: PageNode, tex: string, isDisplay: boolean): void {
  const text = tex.trim().replace(/\s+/g, " ");
  const formula = PageNode.element("x-raw");
  formula.data = isDisplay ? `$$${text}$$` : `$${text}$`;
  formula.replaceChildren("raw");
  node.parentNode?.insertBefore(formula, node);
  node.parentNode?.removeChild(node);
}

function isDisplay(node: PageNode): boolean {
  let outer = node.parentNode;
  for (let level = 0; level < 3 && outer !== null; level += 1) {
    if (hasClass(outer, /(?:^|\s)katex-display(?:\s|$)/)) return true;
    outer = outer.parentNode;
  }
  return false;
}

function hasClass(node: PageNode, pattern: RegExp): boolean {
  return pattern.test(node.getAttribute("class")?.slice(0, CODE_CLASS_CHARS_MAX) ?? "");
}
