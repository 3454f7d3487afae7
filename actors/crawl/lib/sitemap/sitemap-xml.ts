/** Reads sitemaps, sitemap indexes, RSS and Atom by the names of their elements, whatever their namespaces are. */
import { Parser } from "htmlparser2";
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import {
  type RawEntry,
  type SitemapEntry,
  type SitemapForm,
  type SitemapParser,
  sitemapEntry,
} from "./sitemap-entry.ts";

/** Maximum depth of nested elements. Real files stay below 10, and each open element is in memory. */
export const SITEMAP_DEPTH_MAX = 64;

/** Root elements, and the name of an entry in each form. */
const FORMS = new Map<string, { form: SitemapForm; entry: string }>([
  ["urlset", { form: "urlset", entry: "url" }],
  ["sitemapindex", { form: "index", entry: "sitemap" }],
  ["rss", { form: "rss", entry: "item" }],
  ["rdf", { form: "rss", entry: "item" }],
  ["feed", { form: "atom", entry: "entry" }],
]);
/** Direct children of an entry that are read, and their meaning. */
const FIELDS = new Map<string, keyof RawEntry>([
  ["loc", "url"],
  ["link", "url"],
  ["lastmod", "lastModified"],
  ["pubdate", "lastModified"],
  ["date", "lastModified"],
  ["updated", "lastModified"],
  ["priority", "priority"],
]);

export class SitemapXml implements SitemapParser {
  readonly #url: string;
  readonly #parser: Parser;
  #found: SitemapEntry[] = [];
  #form: SitemapForm = "unknown";
  #entryName = "";
  #depth = 0;
  #invalid = 0;
  #broken = false;
  /** The current entry with its depth, its namespace prefix and its direct text. */
  #entry: { raw: Partial<RawEntry>; depth: number; prefix: string; text: string } | undefined;
  #field: { name: keyof RawEntry; depth: number; text: string } | undefined;

  constructor(url: string) {
    this.#url = url;
    const handler = {
      onopentag: (name: string, attributes: Record<string, string>) => this.#open(name, attributes),
      ontext: (text: string) => this.#text(text),
      onclosetag: (_name: string, implied: boolean) => this.#close(implied),
    };
    this.#parser = new Parser(handler, { xmlMode: true, decodeEntities: true });
  }

  get form(): SitemapForm {
    return this.#form;
  }

  get invalid(): number {
    return this.#invalid;
  }

  get broken(): boolean {
    return this.#broken;
  }

  write(text: string): void {
    if (!this.#broken) this.#parser.write(text);
  }

  end(): void {
    if (this.#broken) return;
    // Open elements at the end mean that the file was cut off.
    this.#broken = this.#depth > 0;
    this.#parser.end();
  }

  take(): SitemapEntry[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }

  #open(qualified: string, attributes: Record<string, string>): void {
    if (this.#broken) return;
    this.#depth += 1;
    const [prefix, name] = split(qualified);
    if (this.#depth === 1) {
      const form = FORMS.get(name);
      this.#form = form?.form ?? "unknown";
      this.#entryName = form?.entry ?? "";
    }
    if (this.#depth > SITEMAP_DEPTH_MAX || this.#entryName === "") {
      this.#broken = true;
    } else if (this.#entry === undefined) {
      if (name !== this.#entryName) return;
      this.#entry = { raw: {}, depth: this.#depth, prefix, text: "" };
    } else if (this.#depth === this.#entry.depth + 1) {
      this.#openField(prefix, name, attributes);
    }
  }

  /**
   * Starts to read a field of an entry. Elements such as `image:loc` are ignored: their namespace differs from the
   * entry's, and they are not pages.
   */
  #openField(prefix: string, name: string, attributes: Record<string, string>): void {
    const field = FIELDS.get(name);
    const entry = this.#entry;
    if (field === undefined || entry === undefined) return;
    const dublinCore = prefix === "dc" && name === "date";
    if ((prefix !== entry.prefix && !dublinCore) || entry.raw[field] !== undefined) return;
    if (this.#form === "atom" && name === "link") {
      const { rel = "alternate", href } = attributes;
      if (rel === "alternate" && href !== undefined) entry.raw.url = href;
    } else {
      this.#field = { name: field, depth: this.#depth, text: "" };
    }
  }

  #text(text: string): void {
    const target = this.#field ?? (this.#depth === this.#entry?.depth ? this.#entry : undefined);
    // One character past the limit keeps an overlong text overlong.
    if (target === undefined || target.text.length > CRAWL_URL_CHARS_MAX) return;
    target.text = (target.text + text).trimStart().slice(0, CRAWL_URL_CHARS_MAX + 1);
  }

  #close(implied: boolean): void {
    const entry = this.#entry;
    if (this.#field?.depth === this.#depth) {
      // `implied` means that the file ended inside the element. The incomplete text is dropped, because it would be a
      // different address.
      if (entry !== undefined && !implied) entry.raw[this.#field.name] = this.#field.text;
      this.#field = undefined;
    } else if (entry?.depth === this.#depth) {
      this.#entry = undefined;
      if (!implied || entry.raw.url !== undefined) this.#takeEntry(entry.raw, entry.text);
    }
    this.#depth -= 1;
  }

  /** Some indexes have the address in the entry itself, without `<loc>`. */
  #takeEntry({ url, ...raw }: Partial<RawEntry>, text: string): void {
    const entry = sitemapEntry({ ...raw, url: url ?? text }, this.#url);
    if (entry === undefined) this.#invalid += 1;
    else this.#found.push(entry);
  }
}

function split(qualified: string): [prefix: string, name: string] {
  const colon = qualified.lastIndexOf(":");
  return [
    qualified.slice(0, Math.max(colon, 0)).toLowerCase(),
    qualified.slice(colon + 1).toLowerCase(),
  ];
}
