/** Reads a plain text sitemap with one address per line. */
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { type SitemapEntry, type SitemapParser, sitemapEntry } from "./sitemap-entry.ts";

export class SitemapText implements SitemapParser {
  readonly form = "text";
  readonly broken = false;
  readonly #url: string;
  #found: SitemapEntry[] = [];
  #rest = "";
  #invalid = 0;

  constructor(url: string) {
    this.#url = url;
  }

  get invalid(): number {
    return this.#invalid;
  }

  write(text: string): void {
    const lines = text.split(/[\r\n]/);
    lines[0] = this.#rest + lines[0];
    // The beginning of an overlong line is enough to reject it.
    this.#rest = (lines.pop() ?? "").slice(0, CRAWL_URL_CHARS_MAX + 1);
    for (const line of lines) this.#takeLine(line);
  }

  end(): void {
    this.#takeLine(this.#rest);
    this.#rest = "";
  }

  take(): SitemapEntry[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }

  #takeLine(line: string): void {
    if (line.trim() === "") return;
    // A line must have a scheme. Without this check every line of prose or of an error page would count as a relative
    // address.
    const entry = /^\s*https?:/i.test(line) ? sitemapEntry({ url: line }, this.#url) : undefined;
    if (entry === undefined) this.#invalid += 1;
    else this.#found.push(entry);
  }
}
