/** Reads the HTML of a page in an isolated world, where scripts of the page cannot have replaced functions. */
import type { Protocol } from "puppeteer-core";
import { CRAWL_BODY_BYTES_MAX, LARGE_BODY_BYTES } from "../../../../schemas/crawl/limits.ts";
import type { ContextPage } from "./context-page.ts";

export interface PageHtml {
  /** The document's own address. */
  url: string;
  html: string;
  truncated: boolean;
}

const WORLD = "trunkline";

/** Reads the HTML of the page. A large document stays in the browser until the caller calls `rest`. */
export async function readHtml({
  session,
  frameId,
}: Pick<ContextPage, "session" | "frameId">): Promise<
  Omit<PageHtml, "html"> & ({ html: string } | { html?: never; rest(): Promise<string> })
> {
  const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", {
    frameId,
    worldName: WORLD,
  });
  const taken = await evaluate(`(${serialize})(${CRAWL_BODY_BYTES_MAX}, ${LARGE_BODY_BYTES})`);
  return taken.html === undefined ? { ...taken, rest: () => evaluate("globalThis.taken") } : taken;

  async function evaluate(expression: string) {
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
      expression,
      contextId,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(said(exceptionDetails));
    return result.value;
  }
}

/** The DOM members that the script uses. */
interface PageElement {
  outerHTML: string;
  shadowRoot: PageRoot | null;
  cloneNode(deep: boolean): PageElement;
  getHTML?(options: { shadowRoots: PageRoot[] }): string;
}
interface PageRoot {
  querySelectorAll(selector: string): Iterable<PageElement>;
}
declare const document: PageRoot & {
  URL: string;
  doctype: object | null;
  documentElement: PageElement | null;
};
declare const XMLSerializer: new () => { serializeToString(node: object): string };

/** Runs in the page. A document above the limit is cut between two characters. */
function serialize(bytesMax: number, bytesAtOnce: number) {
  const whole = markup();
  const text = bounded(whole);
  const taken = { url: document.URL, truncated: text.length < whole.length };
  // A character takes at most three bytes, so this text is small enough for one message.
  if (text.length * 3 <= bytesAtOnce) return { ...taken, html: text };
  Object.assign(globalThis, { taken: text });
  return taken;

  function markup(): string {
    const { doctype, documentElement } = document;
    const type = doctype === null ? "" : `${new XMLSerializer().serializeToString(doctype)}\n`;
    return type + (documentElement === null ? "" : elementMarkup(documentElement));
  }

  /** Serialises open shadow roots as declarative shadow DOM. Scripts cannot read closed shadow roots. */
  function elementMarkup(element: PageElement): string {
    const shadowRoots = shadowRootsIn(document);
    if (shadowRoots.length === 0 || element.getHTML === undefined) return element.outerHTML;
    const shell = element.cloneNode(false).outerHTML;
    const end = shell.lastIndexOf("</");
    return shell.slice(0, end) + element.getHTML({ shadowRoots }) + shell.slice(end);
  }

  function shadowRootsIn(root: PageRoot): PageRoot[] {
    const found: PageRoot[] = [];
    const roots = [root];
    for (let next = roots.pop(); next !== undefined; next = roots.pop()) {
      for (const { shadowRoot } of next.querySelectorAll("*")) {
        if (shadowRoot === null) continue;
        found.push(shadowRoot);
        roots.push(shadowRoot);
      }
    }
    return found;
  }

  function bounded(html: string): string {
    if (html.length * 3 <= bytesMax) return html;
    const { read } = new TextEncoder().encodeInto(html, new Uint8Array(bytesMax));
    return read < html.length ? html.slice(0, read) : html;
  }
}

function said({ text, exception }: Protocol.Runtime.ExceptionDetails): string {
  return `Cannot read the page: ${exception?.description ?? text}`;
}
