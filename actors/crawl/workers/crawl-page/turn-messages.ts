/** The messages that end a turn, for its site and its job. */
import { type Envelope, envelope } from "../../../../schemas/contract.ts";
import { crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import type { Turn } from "../../../../schemas/crawl/crawl-page.ts";
import { site } from "../../../../schemas/crawl/site.ts";

/** With `nth`, ends only this request. */
export function turnFinished(
  { host, turn }: Turn,
  { nth, awayMs }: { nth?: number; awayMs?: number | undefined } = {},
): Envelope {
  const away = awayMs === undefined ? {} : { awayMs };
  return envelope(site, host, "turnFinished", { turn, ...(nth !== undefined && { nth }), ...away });
}

/**
 * Returns the message that ends a turn at its site, for a turn that another worker may still hold without knowing of
 * the end.
 */
export function turnLost({ host, turn }: Pick<Turn, "host" | "turn">): Envelope {
  return envelope(site, host, "turnFinished", { turn, lost: true });
}

/**
 * Returns the message after which the job requeues the unreported requests of the turn. Without `failed`, the turn
 * counts as no failed attempt of these requests.
 */
export function turnEnded(
  { job, host, turn }: Turn,
  because: { failed?: string; fault?: string } = {},
): Envelope {
  return envelope(crawlJob, job, "turnEnded", { host, turn, ...because });
}
