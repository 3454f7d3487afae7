/**
 * Finds the pages of a turn of which the account has a recent copy, and separates those that robots.txt now forbids.
 */
import type { PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import type { PageVerdict } from "../../../../schemas/crawl/site.ts";
import type { CachedPage } from "./page-cache.ts";
import type { PageOutcomes, PageRequest } from "./page-outcomes.ts";

/** Maximum concurrent cache lookups of one turn. Each is a round trip to the bus. */
const CACHE_LOOKS_AT_ONCE = 16;

interface CachedPagesParts {
  outcomes: Pick<PageOutcomes, "find" | "cached">;
  /** Returns the site's verdicts; undefined while its robots.txt is unknown. */
  judge(urls: string[]): Promise<readonly PageVerdict[] | undefined>;
  signal: AbortSignal;
}

interface FoundPages {
  used: PageOutcome[];
  refused: { request: TurnRequest; verdict: PageVerdict | undefined }[];
  /** Requests that remain. */
  left: readonly TurnRequest[];
}

export const isPage = (request: TurnRequest): request is PageRequest => request.type === "page";

export async function cachedPages(
  requests: readonly TurnRequest[],
  { outcomes, judge, signal }: CachedPagesParts,
): Promise<FoundPages> {
  const copies = new Map<PageRequest, CachedPage>();
  await someAtOnce(requests.filter(isPage), async (request) => {
    const copy = await outcomes.find(request);
    if (copy !== undefined) copies.set(request, copy);
  });
  const urls = Array.from(copies.keys(), ({ url }) => url);
  // If the site does not know its robots.txt yet, no copy is used now. The site fetches robots.txt when the next turn
  // begins.
  const verdicts = urls.length === 0 ? undefined : await judge(urls);
  if (verdicts === undefined) return { used: [], refused: [], left: requests };
  const refused = new Map<TurnRequest, PageVerdict | undefined>();
  const used = new Map<TurnRequest, PageOutcome>();
  await someAtOnce([...copies].entries(), async ([position, [request, copy]]) => {
    const verdict = verdicts[position];
    if (verdict?.allowed !== true) {
      refused.set(request, verdict);
      return;
    }
    const outcome = await outcomes.cached(request, copy, signal);
    if (outcome !== undefined) used.set(request, outcome);
  });
  return {
    used: [...used.values()],
    refused: Array.from(refused, ([request, verdict]) => ({ request, verdict })),
    left: requests.filter((request) => !used.has(request) && !refused.has(request)),
  };
}

async function someAtOnce<T>(all: Iterable<T>, look: (one: T) => Promise<void>): Promise<void> {
  const queue = Iterator.from(all);
  const lookOn = async () => {
    for (const entry of queue) await look(entry);
  };
  await Promise.all(Array.from({ length: CACHE_LOOKS_AT_ONCE }, lookOn));
}
