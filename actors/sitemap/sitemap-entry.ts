/** Makes an entry of what a sitemap says about one address. */
import { CRAWL_URL_CHARS_MAX } from "../../schemas/crawl-limits.ts";
import type { SitemapEntry } from "./sitemap.ts";

export interface RawEntry {
  url: string;
  lastModified?: string;
  priority?: string;
}

/** Nothing, where the address is none that can be fetched. */
export function sitemapEntry(raw: RawEntry, sitemapUrl: string): SitemapEntry | undefined {
  const text = raw.url.trim();
  if (text === "" || text.length > CRAWL_URL_CHARS_MAX) return undefined;
  const absolute = URL.parse(text);
  const url = absolute ?? URL.parse(text, sitemapUrl);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  url.hash = "";
  if (url.href.length > CRAWL_URL_CHARS_MAX) return undefined;
  const lastModifiedAt = timeOf(raw.lastModified);
  const priority = priorityOf(raw.priority);
  return {
    url: url.href,
    relative: absolute === null,
    foreign: url.host !== new URL(sitemapUrl).host,
    ...(lastModifiedAt === undefined ? {} : { lastModifiedAt }),
    ...(priority === undefined ? {} : { priority }),
  };
}

/** W3C date and time, from a year alone on, or RFC 822 as feeds have it. */
function timeOf(text = ""): number | undefined {
  const time = Date.parse(text.trim());
  return Number.isFinite(time) && time >= 0 ? time : undefined;
}

function priorityOf(text = ""): number | undefined {
  const priority = text.trim() === "" ? Number.NaN : Number(text);
  return priority >= 0 && priority <= 1 ? priority : undefined;
}
