/** The interface of page loaders, by HTTP and in a browser. Both have the same limits and results. */
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import type { Departure } from "../departure/departure.ts";

/** One page load. Its signal also aborts at the end of the turn. */
export interface PageLoad extends Departure {
  url: string;
  /** The start page is read even if it has not changed: an incremental crawl needs its links. */
  isStart: boolean;
  /** The page needs a browser of its own. */
  isAlone: boolean;
  /** Latest begin, in monotonic clock time. A load in a browser that cannot begin by then fails with NotMade. */
  startBy: number;
  /**
   * The loader awaits this once before it holds more than LARGE_BODY_BYTES. Resolves when there is a place for a
   * large body.
   */
  onLarge(): Promise<void>;
}

/** The result of one page request. Redirects are not followed: each hop is a request with a turn of its own. */
export type PageAnswer =
  | {
      kind: "page";
      status: number;
      /** Decoded text of an HTML or text document, cut at CRAWL_BODY_BYTES_MAX. */
      html: string;
      truncated: boolean;
      contentType: string | undefined;
      lastModifiedAt: number | undefined;
      /** Pause that the host asked for by Retry-After; 0 after a 429 or 503 without one. In milliseconds. */
      awayMs: number | undefined;
      /** `X-Robots-Tag` for all crawlers or for ours. */
      nofollow: boolean;
      noindex?: true;
      browserMs: number;
    }
  | { kind: "redirect"; to: string; status: number; browserMs: number }
  /** A 304, or a document whose links are not followed and whose Last-Modified is before `modifiedSince`. */
  | { kind: "unmodified"; status: number; lastModifiedAt: number | undefined; browserMs: number }
  /** A document that a crawl cannot keep: a picture, an archive, a PDF. `reason` says why it is not text. */
  | {
      kind: "download";
      status: number;
      contentType: string | undefined;
      reason: string;
      awayMs?: number;
      browserMs: number;
    }
  /** No document: a failed connection, a crash, a timeout, or an error response that is not text. */
  | {
      kind: "failed";
      reason: string;
      retry: boolean;
      status: number | undefined;
      /** Pause as in a page's result. */
      awayMs?: number;
      browserMs: number;
      /** The browser, or the job's context, ended during the load. Another page may be the cause. */
      browserLost?: true;
    };

/** Loads the pages of one job on this worker. No other job shares its connections or browser context. */
export interface PageLoader {
  load(page: PageLoad): Promise<PageAnswer>;
  /** Releases the job's connections or context. */
  close(): Promise<void>;
}

/** Opens a loader for a job. The worker keeps the loader for a while between the job's turns. */
export type OpenPageLoader = (
  job: { account: string; job: string },
  request: CrawlRequest,
) => Promise<PageLoader>;
