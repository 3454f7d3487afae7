/** The states of crawls and of their records. */
import type { WireCrawl, WireCrawlSummary } from "../lib/wire.ts";
import { Badge, type Tone } from "../parts/bits.tsx";

export type CrawlStatus = WireCrawlSummary["status"];
export type WireRecord = WireCrawl["records"][number];

const CRAWL_TONES: Readonly<Record<CrawlStatus, Tone>> = {
  running: "busy",
  completed: "good",
  errored: "bad",
  cancelled_due_to_timeout: "bad",
  cancelled_due_to_limits: "bad",
  cancelled_by_user: "quiet",
};
const CRAWL_WORDS: Partial<Record<CrawlStatus, string>> = {
  cancelled_due_to_timeout: "timed out",
  cancelled_due_to_limits: "limit reached",
  cancelled_by_user: "cancelled",
};
const RECORD_TONES: Readonly<Record<WireRecord["status"], Tone>> = {
  queued: "busy",
  completed: "good",
  errored: "bad",
  disallowed: "quiet",
  skipped: "quiet",
  cancelled: "quiet",
};

export function CrawlState({ status }: { status: CrawlStatus }) {
  return <Badge tone={CRAWL_TONES[status]}>{CRAWL_WORDS[status] ?? status}</Badge>;
}

export function RecordState({ status }: { status: WireRecord["status"] }) {
  return <Badge tone={RECORD_TONES[status]}>{status}</Badge>;
}
