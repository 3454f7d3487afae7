/** Makes the record of a page: the formats of the request, the title, and the links. */

import type { RecordMetadata } from "../../../../schemas/crawl/crawl-job.ts";
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { RECORD_REASON_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import type { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { type PageLinks, pageLinks } from "../../../rendering/lib/extract/page-links.ts";
import type { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { documentForm } from "../load/content-types.ts";
import type { PageAnswer } from "../load/page-loader.ts";
import { refreshTarget } from "../load/refresh-target.ts";
import { PRODUCT_TOKEN } from "../load/user-agent.ts";

/** Bytes of one page's links in its report. 10,000 links of usual length fit. */
export const PAGE_LINKS_BYTES_MAX = 700_000;

export type LoadedPage = Extract<PageAnswer, { kind: "page" }>;

type PageReading = Omit<PageLinks, "base"> & Partial<Pick<PageLinks, "base">>;

interface PageRecord {
  /** JSON members without braces. Empty for a request of json alone, unless the response is an error. */
  body: Buffer;
  /** The JSON members that the model reads, if the crawl requests only `json`. */
  source?: Buffer;
  metadata: RecordMetadata;
  links: string[];
  /** The reason why the record lacks something, or that the response is an error. */
  reason?: string;
  /** False if a format could not be made; a retry may succeed. */
  isWhole: boolean;
}

/** Reads the title, links and directives of a page. A document that is not HTML has none. */
export function readPage(url: string, { contentType, html }: LoadedPage): PageReading {
  const isHtml = documentForm(contentType) === "html";
  return isHtml ? pageLinks(html, { url, productToken: PRODUCT_TOKEN }) : PLAIN;
}

/**
 * Returns the address to which a page redirects by a refresh. Returns undefined for errors, and for pages without a
 * refresh that counts as a redirect.
 */
export function pageRefresh(
  url: string,
  { status }: LoadedPage,
  { refresh, base = url }: PageReading,
): string | undefined {
  if (status >= 300 || refresh === undefined) return undefined;
  return refreshTarget(refresh, { url, base });
}

export interface PageRecordParts {
  markdown: MarkdownPool;
  /** Limits the pages of this worker that wait in the queue of the Markdown pool. */
  markdownPlaces: Semaphore;
}

interface PageToRecord {
  /** The account whose crawl it is. */
  account: string;
  url: string;
  page: LoadedPage;
  request: CrawlRequest;
  /** The page as `readPage` returned it. */
  found?: PageReading;
}

export async function pageRecord(
  { markdown, markdownPlaces }: PageRecordParts,
  { account, url, page, request, found = readPage(url, page) }: PageToRecord,
  signal: AbortSignal,
): Promise<PageRecord> {
  const { html, status } = page;
  const isHtml = documentForm(page.contentType) === "html";
  const formats = new Set(request.formats);
  const members: string[] = [];
  const error = errorOf(status);
  const reasons = error === undefined ? [] : [error];
  // The record of an error response contains its body as `html`, even if the crawl does not request that format.
  if (formats.has("html") || status >= 400) members.push(`"html":${JSON.stringify(html)}`);
  const jsonAlone = formats.size === 1 && formats.has("json");
  let source: Buffer | undefined;
  let isWhole = true;
  if (formats.has("markdown") || jsonAlone) {
    const made = isHtml ? await convert() : { kind: "made" as const, markdown: html };
    if (made.kind === "failed") {
      reasons.push(made.reason);
      isWhole = false;
    } else if (!jsonAlone) members.push(`"markdown":${JSON.stringify(made.markdown)}`);
    else source = Buffer.from(`"markdown":${JSON.stringify(made.markdown)}`);
  }
  const { contentType, lastModifiedAt, truncated } = page;
  const follows =
    status < 400 && !page.nofollow && !found.nofollow && request.source !== "sitemaps";
  const links = follows ? firstWithin(found.links, PAGE_LINKS_BYTES_MAX) : [];
  if (follows && (found.truncated || links.length < found.links.length)) {
    reasons.push(`Only its first ${links.length} links are followed`);
  }
  return {
    body: Buffer.from(members.join(",")),
    ...(source && { source }),
    metadata: {
      status,
      ...(found.title !== undefined && { title: found.title }),
      url,
      ...(lastModifiedAt !== undefined && { lastModifiedAt }),
      ...(contentType !== undefined && { contentType }),
      ...(truncated && { truncated }),
      ...((page.noindex || found.noindex) && { noindex: true }),
    },
    links,
    isWhole,
    ...(reasons.length > 0 && { reason: reasons.join("; ").slice(0, RECORD_REASON_CHARS_MAX) }),
  };

  async function convert() {
    const giveBack = await markdownPlaces.take(signal);
    try {
      const { base = url, title } = found;
      const isScripted = request.render;
      return await markdown.convert(
        { html, baseUrl: base, isScripted, ...(title && { title }) },
        { account, signal },
      );
    } finally {
      giveBack();
    }
  }
}

/** Returns the error of a status; undefined for success. */
export const errorOf = (status: number): string | undefined =>
  status >= 400 ? `The server answered with status ${status}` : undefined;

/** A document that is not HTML has no links. */
const PLAIN: PageReading = { links: [], nofollow: false, truncated: false };

/** Returns the first links that fit the bytes. Addresses are ASCII, and each has two quotes and a comma. */
function firstWithin(links: string[], bytesMax: number): string[] {
  let bytes = 0;
  const end = links.findIndex((link) => {
    bytes += link.length + 3;
    return bytes > bytesMax;
  });
  return end < 0 ? links : links.slice(0, end);
}
