/** Entries of sitemaps: the forms that hold them, and how raw fields become an entry. */
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";

export interface SitemapEntry {
  /** Absolute, in normal form, without a fragment. */
  url: string;
  lastModifiedAt?: number;
  /** 0 to 1. A missing priority means 0.5. */
  priority?: number;
}

export type SitemapForm = "urlset" | "index" | "text" | "rss" | "atom" | "unknown";

/** A parser of one form. It reads text in pieces. */
export interface SitemapParser {
  readonly form: SitemapForm;
  readonly invalid: number;
  readonly broken: boolean;
  write(text: string): void;
  end(): void;
  /** Returns the entries found since the last call. */
  take(): SitemapEntry[];
}

export interface RawEntry {
  url: string;
  lastModified?: string;
  priority?: string;
}

/** Nothing, where the address is none that can be fetched. */
export function sitemapEntry(raw: RawEntry, sitemapUrl: string): SitemapEntry | undefined {
  const text = raw.url.trim();
  if (text === "" || text.length > CRAWL_URL_CHARS_MAX) return undefined;
  // Some are written without a host, which the protocol forbids and sites do.
  const url = URL.parse(text, sitemapUrl);
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined;
  url.hash = "";
  if (url.href.length > CRAWL_URL_CHARS_MAX) return undefined;
  const lastModifiedAt = timeOf(raw.lastModified);
  const priority = priorityOf(raw.priority);
  return {
    url: url.href,
    ...(lastModifiedAt === undefined ? {} : { lastModifiedAt }),
    ...(priority === undefined ? {} : { priority }),
  };
}

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** From a year alone on, as "Date and Time Formats" of the W3C has it: what is left out is not known. */
const YEAR_OR_MONTH = /^(\d{4})(?:-(\d{2}))?$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MINUTE = /T\d{2}:\d{2}(?!:?\d)/i;

/**
 * W3C date and time, or RFC 822 as feeds have it. Of a whole day, the last of its milliseconds: the page may have been
 * changed then, and one that is asked for in vain costs less than one that is missed. The same of months, years and minutes.
 */
function timeOf(lastModified = ""): number | undefined {
  const text = lastModified.trim();
  const time = Date.parse(text);
  if (!Number.isFinite(time) || time < 0) return undefined;
  const [, year, month] = YEAR_OR_MONTH.exec(text) ?? [];
  // A month is counted from 0, so that its own number is the next one's.
  if (year !== undefined) return Date.UTC(Number(year), Number(month ?? 12), 1) - 1;
  if (DAY.test(text)) return time + DAY_MS - 1;
  return MINUTE.test(text) ? time + MINUTE_MS - 1 : time;
}

function priorityOf(text = ""): number | undefined {
  const priority = text.trim() === "" ? Number.NaN : Number(text);
  return priority >= 0 && priority <= 1 ? priority : undefined;
}
