/** The links of a page in its own order, as its browser resolves them. */
import type { LinksRequest } from "../../../../../schemas/rendering/http/page-calls.ts";
import type { Output, ReadAnswer } from "./output.ts";
import { checkJson, readValue } from "./read-text.ts";

const WHAT = "list of links";

export const links: Output<LinksRequest, ReadAnswer<string[]>> = async ({ context }, asked) => {
  const { visibleLinksOnly: isVisible = false, excludeExternalLinks } = asked;
  const parameters = { isVisible };
  const { base, hrefs } = await readValue(context, hrefsIn, { parameters, what: WHAT });
  const own = siteOf(base);
  const result = excludeExternalLinks
    ? hrefs.filter((href) => own !== undefined && siteOf(href) === own)
    : hrefs;
  checkJson(result, WHAT);
  return async () => ({ result });
};

/** The host of a web address. A host and its www are one site. */
function siteOf(address: string): string | undefined {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  return url.host.replace(/^www\./, "");
}

/** The DOM members that the function uses. */
interface PageElement {
  localName: string;
  href?: string | { baseVal: string };
  shadowRoot: PageRoot | null;
  hasAttribute(name: string): boolean;
  checkVisibility(options: object): boolean;
  getClientRects(): Iterable<{ width: number; height: number }>;
  querySelectorAll(selector: string): Iterable<PageElement>;
}
interface PageRoot {
  querySelectorAll(selector: string): Iterable<PageElement>;
}
declare const document: PageRoot & { baseURI: string };

/** Runs in the page. Leaves out scripts and what leads to nothing outside of the page. */
function hrefsIn({ isVisible }: { isVisible: boolean }, charsMax: number) {
  const hrefs: string[] = [];
  let chars = 0;
  collect(document);
  return chars > charsMax ? "large" : { base: document.baseURI, hrefs };

  function collect(root: PageRoot): void {
    for (const element of root.querySelectorAll("*")) {
      if (chars > charsMax) return;
      if (element.localName === "a" || element.localName === "area") add(element);
      if (element.shadowRoot !== null) collect(element.shadowRoot);
    }
  }

  function add(element: PageElement): void {
    const { href } = element;
    // Links in drawings have an object, and are not resolved.
    const written = typeof href === "object" ? href.baseVal : href;
    const url = written ? URL.parse(written, document.baseURI) : null;
    if (url === null || /^(?:javascript|data|blob|about):$/.test(url.protocol)) return;
    if (isVisible && !isSeen(element)) return;
    // With quotes and a comma, as in JSON.
    chars += url.href.length + 3;
    hrefs.push(url.href);
  }

  /** A link without room of its own may hold something that has. */
  function isSeen(element: PageElement): boolean {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    if (element.localName === "area") return true;
    return [element, ...element.querySelectorAll("*")].some((part) =>
      [...part.getClientRects()].some(({ width, height }) => width > 0 && height > 0),
    );
  }
}
