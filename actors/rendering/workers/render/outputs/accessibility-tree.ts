/** Reads the accessibility tree of a page in the format of puppeteer. */

import { ActorError } from "../../../../../schemas/errors.ts";
import {
  AccessibilityNode,
  type AccessibilityTreeRequest,
} from "../../../../../schemas/rendering/http/page-calls.ts";
import { ACCESSIBILITY_NODES_MAX } from "../../../../../schemas/rendering/limits.ts";
import { checkSelector } from "../../../lib/browser/css-selector.ts";
import { ProtocolError } from "../../../lib/browser/driver-parts.ts";
import { hasNavigatedAway } from "../../../lib/browser/navigation-errors.ts";
import type { RenderContext } from "../../../lib/browser/render-context.ts";
import type { Output, ReadAnswer } from "./output.ts";
import { checkJson, tooLarge } from "./read-text.ts";

type Tree = AccessibilityNode | null;

const WHAT = "accessibility tree";

export const accessibilityTree: Output<
  AccessibilityTreeRequest,
  ReadAnswer<{ accessibilityTree: Tree }>
> = async ({ context }, asked) => {
  const tree = await readTree(context, asked);
  return async () => ({ result: { accessibilityTree: tree } });
};

/** Resolves to null if the root element does not exist or has no node in the tree. */
export async function readTree(
  context: RenderContext,
  {
    root: selector,
    interestingOnly = selector === undefined,
  }: Pick<AccessibilityTreeRequest, "root" | "interestingOnly">,
): Promise<Tree> {
  if (selector !== undefined) await checkSelector(context, selector, "/root");
  const nodes = await context.evaluate(`(${nodesIn})(${ACCESSIBILITY_NODES_MAX})`);
  if (Number(nodes) > ACCESSIBILITY_NODES_MAX) throw tooManyNodes();
  using root = selector === undefined ? null : await context.page.$(selector);
  if (selector !== undefined && root === null) return null;
  const options = { interestingOnly, ...(root && { root }) };
  try {
    const snapshot = await context.page.accessibility.snapshot(options);
    const tree = snapshot === null ? null : known(snapshot);
    checkJson(tree, WHAT);
    return tree;
  } catch (error) {
    // The tree is nested so deeply that the stack overflows. No real page is.
    if (error instanceof RangeError) throw tooLarge(WHAT);
    const isLeft = error instanceof Error && hasNavigatedAway(error);
    if (error instanceof ProtocolError && error.name === "ProtocolError" && !isLeft) {
      throw tooLarge(WHAT);
    }
    throw error;
  }
}

function tooManyNodes(): ActorError {
  const reason = `it has more than ${ACCESSIBILITY_NODES_MAX} elements and texts`;
  return new ActorError("page_not_printable", `Cannot read the page: ${reason}`);
}

/** Keeps only the fields of the contract, because puppeteer adds internal fields. */
function known(node: object): AccessibilityNode {
  const { children, ...fields } = AccessibilityNode.parse(node);
  return children === undefined
    ? fields
    : { ...fields, children: children.map((child) => known(child as object)) };
}

/** The DOM members that the function uses. */
interface PageNode {
  shadowRoot?: PageNode | null;
}
declare const document: PageNode & {
  createTreeWalker(root: PageNode, what: number): { nextNode(): PageNode | null };
};

/**
 * Runs in the page. Counts elements and text nodes, including those of open shadow roots. Stops when the limit is
 * exceeded by one.
 */
function nodesIn(nodesMax: number): number {
  const elementsAndTexts = 1 + 4;
  const roots: PageNode[] = [document];
  let count = 0;
  for (let root = roots.pop(); root !== undefined && count <= nodesMax; root = roots.pop()) {
    const walker = document.createTreeWalker(root, elementsAndTexts);
    for (let node = walker.nextNode(); node !== null && count <= nodesMax; ) {
      count += 1;
      if (node.shadowRoot) roots.push(node.shadowRoot);
      node = walker.nextNode();
    }
  }
  return count;
}
