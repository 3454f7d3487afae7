/** Converts crawl jobs to the shapes of the public API. */

import type {
  CrawlPlan,
  CrawlSummary,
  RecordEntry,
  RecordMetadata,
} from "../../schemas/crawl/crawl-job.ts";
import type { CrawlListEntry } from "../../schemas/crawl/crawl-list.ts";
import type { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import type { WireCrawlSummary, WireRecord } from "../../schemas/crawl/http/crawl-answers.ts";

export function planOf(request: CrawlRequest): CrawlPlan {
  const { url, limit, depth, source, formats, render, modifiedSince, options } = request;
  const { crawlPurposes: purposes, contentUse } = request;
  return {
    url,
    limit,
    depth,
    source,
    formats,
    render,
    options,
    intent: { purposes, ...(contentUse && { contentUse }) },
    ...(modifiedSince !== undefined && { modifiedSince }),
  };
}

export function wireSummary(id: string, summary: CrawlSummary): WireCrawlSummary {
  const { status, total, finished, skipped, browserMs, createdAt, endedAt, messages } = summary;
  return {
    id,
    status,
    browserSecondsUsed: browserMs / 1_000,
    total,
    finished,
    skipped,
    createdAt: isoTime(createdAt),
    ...(endedAt !== undefined && { endedAt: isoTime(endedAt) }),
    messages,
  };
}

/** Returns a record without the contents of its blobs. */
export function wireRecord({ url, status, metadata, reason }: RecordEntry): WireRecord {
  return {
    url,
    status,
    ...(metadata && { metadata: wireMetadata(metadata) }),
    ...(reason !== undefined && { reason }),
  };
}

export function wireEntry({ createdAt, endedAt, ...entry }: CrawlListEntry) {
  return {
    ...entry,
    createdAt: isoTime(createdAt),
    ...(endedAt !== undefined && { endedAt: isoTime(endedAt) }),
  };
}

function wireMetadata({ lastModifiedAt, cachedAt, ...metadata }: RecordMetadata) {
  return {
    ...metadata,
    ...(lastModifiedAt !== undefined && { lastModifiedAt: isoTime(lastModifiedAt) }),
    ...(cachedAt !== undefined && { cachedAt: isoTime(cachedAt) }),
  };
}

const isoTime = (epochMs: number) => new Date(epochMs).toISOString();
