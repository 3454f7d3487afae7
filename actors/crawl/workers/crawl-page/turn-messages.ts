/** How a turn ends, as its site and its job are told. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { site } from "../../../../schemas/crawl/site.ts";

/** `nth`: of this request alone. */
export function turnFinished(
  { host, turn }: Turn,
  { nth, awayMs }: { nth?: number; awayMs?: number | undefined } = {},
): Envelope {
  const away = awayMs === undefined ? {} : { awayMs };
  return envelope(site, host, "turnFinished", { turn, ...(nth !== undefined && { nth }), ...away });
}

/** Of a turn that may be with another worker, which does not know that it is over. */
export function turnLost({ host, turn }: Pick<Turn, "host" | "turn">): Envelope {
  return envelope(site, host, "turnFinished", { turn, lost: true });
}

/** Without a word what it did not report is queued again, and nobody is to blame. */
export function turnEnded(
  { job, host, turn }: Turn,
  because: { failed?: string; fault?: string } = {},
): Envelope {
  return envelope(crawlJob, job, "turnEnded", { host, turn, ...because });
}
