/** Entries of sitemaps: the forms that hold them, and how raw fields become an entry. */
import { CRAWL_URL_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";

export interface SitemapEntry {
  /** Absolute and normalised, without a fragment. */
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

/** Returns an entry; undefined if its address cannot be fetched. */
export function sitemapEntry(raw: RawEntry, sitemapUrl: string): SitemapEntry | undefined {
  const text = raw.url.trim();
  if (text === "" || text.length > CRAWL_URL_CHARS_MAX) return undefined;
  // Some sites omit the host, which the protocol forbids.
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
/** Partial dates of the W3C note "Date and Time Formats". */
const YEAR_OR_MONTH = /^(\d{4})(?:-(\d{2}))?$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const MINUTE = /T\d{2}:\d{2}(?!:?\d)/i;

/**
 * Parses a W3C date, or an RFC 822 date as in feeds. A partial date counts as the last millisecond of its period: the
 * page may have changed until then, and an unneeded request costs less than a missed page.
 */
function timeOf(lastModified = ""): number | undefined {
  const text = lastModified.trim();
  const time = Date.parse(text);
  if (!Number.isFinite(time) || time < 0) return undefined;
  const [, year, month] = YEAR_OR_MONTH.exec(text) ?? [];
  // Date.UTC counts months from 0, so the month's own number means the next month.
  if (year !== undefined) return Date.UTC(Number(year), Number(month ?? 12), 1) - 1;
  if (DAY.test(text)) return time + DAY_MS - 1;
  return MINUTE.test(text) ? time + MINUTE_MS - 1 : time;
}

function priorityOf(text = ""): number | undefined {
  const priority = text.trim() === "" ? Number.NaN : Number(text);
  return priority >= 0 && priority <= 1 ? priority : undefined;
}
