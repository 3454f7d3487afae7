/** How a crawl gets one page: by HTTP alone, or in a browser. Both are held to the same bounds and say the same things. */
import type { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import type { Departure } from "../departure/departure.ts";

/** Its signal is aborted when the turn is over, too, whatever the page does. */
export interface PageLoad extends Departure {
  url: string;
  /** It is read whether it has changed or not: without its links an incremental crawl would end there. */
  isStart: boolean;
  /** In a browser of its own. */
  isAlone: boolean;
  /** By the monotonic clock. Loading that cannot be begun by then is not: NotMade. */
  startBy: number;
  /** To be awaited once, before more than LARGE_BODY_BYTES of a body are held: resolves when there is room for it. */
  onLarge(): Promise<void>;
}

/** What came of one request for a page. Redirects are not followed: each hop is a request with a turn of its own. */
export type PageAnswer =
  | {
      kind: "page";
      status: number;
      /** Decoded text of an HTML or text document, cut at CRAWL_BODY_BYTES_MAX. */
      html: string;
      truncated: boolean;
      contentType: string | undefined;
      lastModifiedAt: number | undefined;
      /** Milliseconds the host asked us to stay away (Retry-After), or what we choose after a bare 429 or 503. */
      awayMs: number | undefined;
      /** `X-Robots-Tag` for everyone or for us. */
      nofollow: boolean;
      noindex?: true;
      browserMs: number;
    }
  | { kind: "redirect"; to: string; status: number; browserMs: number }
  /** 304, or a Last-Modified before `modifiedSince` of what has no links to follow. */
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
  /** No document: a failed connection, a crash, a time limit, a content type that is no text. */
  | {
      kind: "failed";
      reason: string;
      retry: boolean;
      status: number | undefined;
      /** As of a page: what a host asks for holds whatever else it sends. */
      awayMs?: number;
      browserMs: number;
      /** Its browser ended under it, or the job's context there: it may be another page's fault. */
      browserLost?: true;
    };

/** Pages of one job on this worker: connections, or a browser context, are shared by them and by no other job. */
export interface PageLoader {
  load(page: PageLoad): Promise<PageAnswer>;
  /** Gives back what the job holds here. */
  close(): Promise<void>;
}

/** Opens a loader for a job; it is kept for a while between the job's turns. */
export type OpenPageLoader = (
  job: { account: string; job: string },
  request: CrawlRequest,
) => Promise<PageLoader>;
