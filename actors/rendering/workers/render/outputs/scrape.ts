/** Reads text, HTML, attributes and positions of the elements that match selectors. */
import { ActorError } from "../../../../../schemas/errors.ts";
import type {
  ScrapeRequest,
  ScrapeResult,
} from "../../../../../schemas/rendering/http/page-calls.ts";
import { fontsReady } from "../page-ready.ts";
import type { Output, ReadAnswer } from "./output.ts";
import { checkJson, readValue } from "./read-text.ts";

export const scrape: Output<ScrapeRequest, ReadAnswer<ScrapeResult>> = async (
  page,
  { elements },
) => {
  const { context, limits } = page;
  // Fonts decide where everything is.
  await fontsReady(context, limits);
  const parameters = elements.map(({ selector }) => selector);
  const what = "list of elements";
  const found = await readValue(context, elementsIn, { parameters, what });
  if (typeof found === "number") throw noSelector(found);
  checkJson(found, what);
  return async () => ({ result: found });
};

function noSelector(index: number): ActorError {
  const fault = { pointer: `/elements/${index}/selector`, message: "Expected a CSS selector" };
  const text = "Cannot select elements: the selector is not valid CSS";
  return new ActorError("invalid_request", text, { faults: [fault] });
}

/** The DOM members that the function uses. */
interface PageElement {
  innerText?: string;
  textContent: string;
  innerHTML: string;
  attributes: Iterable<{ name: string; value: string }>;
  getBoundingClientRect(): { top: number; left: number; width: number; height: number };
}
declare const document: { querySelectorAll(selector: string): Iterable<PageElement> };
declare const scrollX: number;
declare const scrollY: number;

/** Runs in the page. If a selector is invalid, returns its index. */
function elementsIn(
  selectors: readonly string[],
  charsMax: number,
): ScrapeResult | number | "large" {
  const entries: ScrapeResult = [];
  let chars = 0;
  for (const [index, selector] of selectors.entries()) {
    let found: Iterable<PageElement>;
    try {
      found = document.querySelectorAll(selector);
    } catch {
      return index;
    }
    const results: ScrapeResult[number]["results"] = [];
    for (const element of found) {
      const result = read(element);
      // The numbers and names of an element take about a hundred characters of JSON.
      chars += result.text.length + result.html.length + 100;
      for (const { name, value } of result.attributes) chars += name.length + value.length;
      if (chars > charsMax) return "large";
      results.push(result);
    }
    entries.push({ selector, results });
  }
  return entries;

  function read(element: PageElement) {
    const { top, left, width, height } = element.getBoundingClientRect();
    return {
      // SVG elements have no `innerText`.
      text: element.innerText ?? element.textContent,
      html: element.innerHTML,
      attributes: [...element.attributes].map(({ name, value }) => ({ name, value })),
      top: top + scrollY,
      left: left + scrollX,
      width,
      height,
    };
  }
}
