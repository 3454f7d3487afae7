/** Moves the content of a declarative shadow root to the place where a browser shows it. */
import { ELEMENT, type PageNode } from "./page-node.ts";

/**
 * Replaces the children of the host by the content of its shadow root. The former children are shown only in the
 * slots of the shadow root.
 */
export function composeShadow(host: PageNode): void {
  let template = host.firstChild;
  while (template !== null && !isShadowRoot(template)) template = template.nextSibling;
  if (template === null || template.content === null) return;
  host.removeChild(template);
  const slotted = host.childNodes;
  for (const child of slotted) host.removeChild(child);
  const { content } = template;
  const slots: PageNode[] = [];
  collectSlots(content, slots);
  for (const slot of slots) fill(slot, slotted);
  host.takeChildren(content);
}

const isShadowRoot = (node: PageNode) =>
  node.tagName === "template" && node.hasAttribute("shadowrootmode");

function collectSlots(node: PageNode, slots: PageNode[]): void {
  for (const child of node.childNodes) {
    if (child.tagName === "slot") slots.push(child);
    else if (child.nodeType === ELEMENT) collectSlots(child, slots);
  }
}

/** Fills a slot with the nodes assigned to it. A slot without assigned nodes keeps its own content. */
function fill(slot: PageNode, slotted: PageNode[]): void {
  const name = slot.getAttribute("name") ?? "";
  const assigned = slotted.filter(
    (node) => node.parentNode === null && (node.getAttribute("slot") ?? "") === name,
  );
  if (assigned.length === 0) return;
  slot.replaceChildren("");
  for (const node of assigned) slot.appendChild(node);
}
