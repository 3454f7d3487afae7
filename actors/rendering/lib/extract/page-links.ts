/** Reads the title, the links and the crawler directives of a page's HTML. */
import { Tokenizer, type TokenizerCallbacks } from "htmlparser2";
import {
  CRAWL_URL_CHARS_MAX,
  PAGE_LINKS_MAX,
  PAGE_TITLE_CHARS_MAX,
} from "../../../../schemas/crawl/limits.ts";

export interface PageLinks {
  title?: string;
  /** Base of relative addresses: the page's own address, or its `<base href>`. */
  base: string;
  /**
   * Absolute http and https addresses without fragments and duplicates, in the order of the page; at most
   * PAGE_LINKS_MAX.
   */
  links: string[];
  /** The page has more links. */
  truncated: boolean;
  /** Whether `<meta name=robots>`, or the meta element for our crawler, says nofollow. */
  nofollow: boolean;
  /** Set if the robots meta element, or the one for our crawler, says noindex. */
  noindex?: true;
  /** The content of the first `<meta http-equiv=refresh>`. */
  refresh?: string;
}

interface PageReader {
  /** Address of the page after redirects. */
  url: string;
  /** Our product token. A meta element of that name counts like `robots`. */
  productToken: string;
}

/**
 * Reads a page in one pass over its tokens. It builds no tree and does not track open elements, so its time is linear
 * for any markup. Links with rel=nofollow are omitted; the caller must obey the nofollow of the page.
 */
export function pageLinks(html: string, reader: PageReader): PageLinks {
  const collector = new LinkCollector(html, reader);
  const tokenizer = new Tokenizer({ xmlMode: false, decodeEntities: true }, collector);
  tokenizer.write(html);
  tokenizer.end();
  return collector.result();
}

/** Elements whose attributes are read. */
const ELEMENTS = new Set(["a", "area", "base", "meta"]);
const ATTRIBUTES = new Set(["href", "rel", "name", "content", "http-equiv"]);
const LONGEST_NAME = 10;
/**
 * First letters of the element names that are read, including `title` and `svg`. They exclude most elements quickly.
 */
const INITIALS = new Set(Array.from("abmnst", (letter) => letter.charCodeAt(0)));
const LOWER_CASE = 0x20;
/** The lengths of the names of elements whose end tags are read. */
const CLOSED_LENGTHS = new Set(["svg", "title", "noscript"].map(({ length }) => length));

class LinkCollector implements TokenizerCallbacks {
  readonly #html: string;
  readonly #reader: PageReader;
  readonly #hrefs = new Set<string>();
  #element = "";
  #attributes = new Map<string, string>();
  #attribute = "";
  #value = "";
  #title: string | undefined;
  #inTitle = false;
  #svgs = 0;
  #base: string | undefined;
  #truncated = false;
  #nofollow = false;
  #noindex = false;
  #refresh: string | undefined;
  #isForScriptless = false;

  constructor(html: string, reader: PageReader) {
    this.#html = html;
    this.#reader = reader;
  }

  result(): PageLinks {
    const base = this.#absolute(this.#base, this.#reader.url) ?? this.#reader.url;
    const links = new Set<string>();
    for (const href of this.#hrefs) {
      const link = this.#absolute(href, base);
      if (link !== undefined) links.add(link);
    }
    const title = this.#title?.replace(/[\t\n\f\r ]+/g, " ").trim();
    return {
      ...(title === undefined || title === "" ? {} : { title }),
      base,
      links: [...links],
      truncated: this.#truncated,
      nofollow: this.#nofollow,
      ...(this.#noindex && { noindex: true }),
      ...(this.#refresh !== undefined && { refresh: this.#refresh }),
    };
  }

  onopentagname(start: number, end: number): void {
    this.#element = "";
    if (!INITIALS.has(this.#html.charCodeAt(start) | LOWER_CASE)) return;
    const name = end - start > LONGEST_NAME ? "" : this.#html.slice(start, end).toLowerCase();
    if (ELEMENTS.has(name)) this.#element = name;
    if (name === "svg") {
      this.#svgs += 1;
      this.#element = "svg";
    }
    if (name === "noscript") this.#isForScriptless = true;
    // SVG drawings have `title` elements too, which do not name the page.
    if (name === "title" && this.#svgs === 0 && this.#title === undefined) {
      this.#inTitle = true;
      this.#title = "";
    }
  }

  onattribname(start: number, end: number): void {
    this.#attribute = "";
    this.#value = "";
    if (this.#element === "" || end - start > LONGEST_NAME) return;
    const name = this.#html.slice(start, end).toLowerCase();
    if (ATTRIBUTES.has(name)) this.#attribute = name;
  }

  onattribdata(start: number, end: number): void {
    if (this.#attribute === "" || this.#value.length > CRAWL_URL_CHARS_MAX) return;
    this.#value += this.#html.slice(start, Math.min(end, start + CRAWL_URL_CHARS_MAX + 1));
  }

  onattribentity(codepoint: number): void {
    if (this.#attribute === "" || this.#value.length > CRAWL_URL_CHARS_MAX) return;
    this.#value += String.fromCodePoint(codepoint);
  }

  onattribend(): void {
    // If an attribute is repeated, the first one counts.
    if (this.#attribute === "" || this.#attributes.has(this.#attribute)) return;
    this.#attributes.set(this.#attribute, this.#value);
  }

  onopentagend(): void {
    if (this.#element === "") return;
    this.#take(this.#element, this.#attributes);
    this.#element = "";
    this.#attributes = new Map();
  }

  onselfclosingtag(): void {
    if (this.#element === "svg") this.#svgs -= 1;
    this.onopentagend();
  }

  onclosetag(start: number, end: number): void {
    if (!CLOSED_LENGTHS.has(end - start)) return;
    const name = this.#html.slice(start, end).toLowerCase();
    if (name === "noscript") this.#isForScriptless = false;
    if (name === "title") this.#inTitle = false;
    if (name === "svg" && this.#svgs > 0) this.#svgs -= 1;
  }

  ontext(start: number, end: number): void {
    if (this.#inTitle) this.#addTitle(this.#html.slice(start, end));
  }

  ontextentity(codepoint: number): void {
    if (this.#inTitle) this.#addTitle(String.fromCodePoint(codepoint));
  }

  oncdata(): void {}
  oncomment(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}
  onend(): void {}

  #addTitle(text: string): void {
    this.#title = `${this.#title ?? ""}${text}`.slice(0, PAGE_TITLE_CHARS_MAX);
  }

  #take(element: string, attributes: ReadonlyMap<string, string>): void {
    if (element === "meta") {
      this.#takeMeta(attributes);
      return;
    }
    const href = attributes.get("href")?.trim();
    if (href === undefined || element === "svg") return;
    const rel = wordsOf(attributes.get("rel"));
    if (element === "base") this.#base ??= href;
    else if (!rel.has("nofollow")) this.#takeHref(href);
  }

  #takeHref(href: string): void {
    // A fragment leads to the same page.
    if (href.startsWith("#") || href.length > CRAWL_URL_CHARS_MAX || this.#hrefs.has(href)) return;
    if (this.#hrefs.size >= PAGE_LINKS_MAX) this.#truncated = true;
    else this.#hrefs.add(href);
  }

  #takeMeta(attributes: ReadonlyMap<string, string>): void {
    if (attributes.get("http-equiv")?.trim().toLowerCase() === "refresh") {
      // A refresh in noscript usually leads to a page that asks users to enable scripts, so it is ignored.
      if (!this.#isForScriptless) this.#refresh ??= attributes.get("content");
    }
    const name = attributes.get("name")?.trim().toLowerCase();
    if (name !== "robots" && name !== this.#reader.productToken.toLowerCase()) return;
    const directives = wordsOf(attributes.get("content"));
    if (directives.has("nofollow") || directives.has("none")) this.#nofollow = true;
    if (directives.has("noindex") || directives.has("none")) this.#noindex = true;
  }

  #absolute(href: string | undefined, base: string): string | undefined {
    const url = href === undefined ? null : URL.parse(href, base);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
    url.hash = "";
    return url.href.length > CRAWL_URL_CHARS_MAX ? undefined : url.href;
  }
}

function wordsOf(text = ""): Set<string> {
  return new Set(text.toLowerCase().split(/[\s,]+/));
}
