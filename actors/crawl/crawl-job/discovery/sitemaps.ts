/** Sitemaps of a job. They are numbered in the order of their discovery and requested a few at a time. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { CRAWL_MESSAGE_URL_CHARS, CRAWL_TRIES_MAX } from "../../../../schemas/crawl/limits.ts";
import { crawlUrl } from "../../lib/scope/crawl-url.ts";
import type { SitemapRow } from "../state/crawl-job-state.ts";
import { hostOfUrl } from "../state/host-queues.ts";
import type { JobDraft } from "../state/job-draft.ts";
import { addMessage } from "../state/job-messages.ts";
import { addKnown, knownIndex } from "../state/known-urls.ts";

/**
 * Maximum sitemaps of one crawl: enough for two indexes of a thousand sitemaps each. At two requests per second they
 * take a quarter of an hour.
 */
export const CRAWL_SITEMAPS_MAX = 2_000;
/**
 * Maximum sitemaps that are queued or in flight at the same time. Further sitemaps wait until one of them is read, so
 * the crawl can reach its page limit without them.
 */
export const SITEMAPS_OPEN_MAX = 32;

type Sitemap = DeepReadonly<SitemapRow>;

export const sitemapRow = (number: number) => `s/${number}`;

/** Adds an unknown sitemap unless there are too many. A sitemap that lists itself is known. */
export function addSitemap(
  draft: JobDraft,
  text: string,
  found: Pick<Sitemap, "nesting" | "guessed">,
): void {
  const parsed = crawlUrl(text);
  if (!parsed.valid || knownIndex(draft, "sitemap", parsed.url) !== undefined) return;
  const { known: number } = draft.state.sitemaps;
  if (number >= CRAWL_SITEMAPS_MAX) {
    addMessage(draft, `The crawl reads ${CRAWL_SITEMAPS_MAX} sitemaps; others were left out`);
    return;
  }
  const { url } = parsed;
  addKnown(draft, "sitemap", url, number);
  draft.write(sitemapRow(number), { type: "sitemap", url, ...found, inFlight: false, failures: 0 });
  draft.state.sitemaps = { ...draft.state.sitemaps, known: number + 1 };
}

/** Queues waiting sitemaps until SITEMAPS_OPEN_MAX are queued or in flight. */
export function openSitemaps(draft: JobDraft): void {
  guessSitemaps(draft);
  const { sitemaps } = draft.state;
  const open = [...sitemaps.open];
  let { released } = sitemaps;
  for (; released < sitemaps.known && open.length < SITEMAPS_OPEN_MAX; released += 1) {
    open.push(released);
  }
  if (released > sitemaps.released) draft.state.sitemaps = { ...sitemaps, open, released };
}

/** Returns the queued sitemaps by host. */
export function queuedSitemaps(draft: JobDraft): Map<string, { number: number; row: Sitemap }[]> {
  const byHost = new Map<string, { number: number; row: Sitemap }[]>();
  for (const number of draft.state.sitemaps.open) {
    const row = sitemapOf(draft, number);
    if (row.inFlight) continue;
    const host = hostOfUrl(row.url);
    const queued = byHost.get(host);
    if (queued) queued.push({ number, row });
    else byHost.set(host, [{ number, row }]);
  }
  return byHost;
}

/** Whether the job still waits for a robots.txt or a sitemap that may add addresses. */
export function sitemapsAreAwaited(draft: JobDraft): boolean {
  if (draft.plan.plan.source === "links") return false;
  const { homes, sitemaps } = draft.state;
  return (
    homes.some(({ learned, guess }) => !learned || guess) ||
    sitemaps.open.length > 0 ||
    someWait(draft)
  );
}

/** Whether found sitemaps are not queued yet. */
function someWait({ state: { sitemaps, backlog } }: JobDraft): boolean {
  return sitemaps.released < sitemaps.known || backlog.files.first < backlog.files.next;
}

/**
 * Adds the sitemap /sitemap.xml of each home origin, when all sitemaps that other files name are read. A guess comes
 * last, so its pages are recorded after those of the named sitemaps.
 */
function guessSitemaps(draft: JobDraft): void {
  const { homes, sitemaps } = draft.state;
  if (!homes.some(({ guess }) => guess)) return;
  const isNamed = (number: number) => sitemapOf(draft, number).guessed !== true;
  if (someWait(draft) || sitemaps.open.some(isNamed)) return;
  for (const { origin, guess } of homes) {
    if (guess) addSitemap(draft, `${origin}/sitemap.xml`, { nesting: 0, guessed: true });
  }
  draft.state.homes = homes.map(({ origin, learned }) => ({ origin, learned }));
}

export const sitemapOf = (draft: JobDraft, number: number): Sitemap =>
  draft.getRow("sitemap", sitemapRow(number));

/** Removes a sitemap that is completely read or that the job no longer tries to read. */
export function closeSitemap(draft: JobDraft, number: number): void {
  const { sitemaps } = draft.state;
  const open = sitemaps.open.filter((other) => other !== number);
  draft.state.sitemaps = { ...sitemaps, open };
  draft.write(sitemapRow(number), null);
}

/**
 * Requeues a sitemap after a failed or lost request. `failed` is the reason of a failed attempt; a lost request has
 * none. After CRAWL_TRIES_MAX failed attempts the job stops trying.
 */
export function retrySitemap(draft: JobDraft, number: number, failed: string | undefined): void {
  const row = sitemapOf(draft, number);
  const failures = row.failures + (failed === undefined ? 0 : 1);
  if (failures < CRAWL_TRIES_MAX) {
    draft.write(sitemapRow(number), { ...row, failures, inFlight: false });
    draft.touchedHosts.add(hostOfUrl(row.url));
  } else giveUpSitemap(draft, number, failed ?? "");
}

/**
 * Stops trying to read a sitemap and adds a message about it. If only the job guessed the sitemap's address, no
 * message is needed.
 */
export function giveUpSitemap(draft: JobDraft, number: number, reason: string): void {
  const { url, guessed } = sitemapOf(draft, number);
  if (guessed !== true) {
    const name = url.slice(0, CRAWL_MESSAGE_URL_CHARS);
    addMessage(draft, `${reason} (${name})`);
  }
  closeSitemap(draft, number);
}
