/** Reads the links of a page in the order of the page, resolved by the browser. */
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

/** Returns the host of a web address without "www.", because both names mean one site. */
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

/**
 * Runs in the page. Omits `javascript:` links and addresses that lead to no other resource, such as `data:` and
 * `about:`.
 */
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
    // In SVG drawings, the `href` of a link is an object, and its address is not resolved.
    const written = typeof href === "object" ? href.baseVal : href;
    const url = written ? URL.parse(written, document.baseURI) : null;
    if (url === null || /^(?:javascript|data|blob|about):$/.test(url.protocol)) return;
    if (isVisible && !isSeen(element)) return;
    // With quotes and a comma, as in JSON.
    chars += url.href.length + 3;
    hrefs.push(url.href);
  }

  /** Whether a link is visible. A link without an area of its own may contain an element that has one. */
  function isSeen(element: PageElement): boolean {
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return false;
    if (element.localName === "area") return true;
    return [element, ...element.querySelectorAll("*")].some((part) =>
      [...part.getClientRects()].some(({ width, height }) => width > 0 && height > 0),
    );
  }
}
