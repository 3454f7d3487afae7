/**
 * Takes the addresses of sitemaps from robots.txt files, and the addresses of pages and of nested sitemaps from
 * sitemaps.
 */

import type { z } from "zod";
import { CRAWL_DISALLOWED_TEXT } from "../../../schemas/crawl/content-signal.ts";
import type { crawlJob, SitemapUrl } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_MESSAGE_URL_CHARS } from "../../../schemas/crawl/limits.ts";
import { discover } from "./discovery/backlog.ts";
import { closeSitemap, giveUpSitemap, retrySitemap, sitemapOf } from "./discovery/sitemaps.ts";
import { endJob } from "./end-job.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { addMessage } from "./state/job-messages.ts";
import { sitemapOfTurn, takeReadSitemap } from "./turns.ts";

/** Maximum nesting of sitemaps; each redirect counts as a level. Real sites have two levels and two redirects. */
export const SITEMAP_NESTING_MAX = 10;

type Messages = typeof crawlJob.messages;
type RobotsLearned = z.output<Messages["robotsLearned"]["input"]>;
type Slice = z.output<Messages["sitemapRead"]["input"]>;

/**
 * Records what the site reports about the robots.txt of a home. Returns false if no home waits for this robots.txt.
 */
export function learnRobots(draft: JobDraft, learned: RobotsLearned): boolean {
  const { homes } = draft.state;
  const origin = `${learned.scheme}://${learned.host}`;
  const awaited = homes.find((home) => home.origin === origin && !home.learned);
  if (awaited === undefined) return false;
  const readsSitemaps = draft.plan.plan.source !== "links";
  const known = { origin, learned: true, ...(readsSitemaps && { guess: true as const }) };
  draft.state.homes = homes.map((home) => (home === awaited ? known : home));
  if (learned.truncated) {
    const name = `${origin}/robots.txt`.slice(0, CRAWL_MESSAGE_URL_CHARS);
    addMessage(draft, `The robots.txt is too large: only its beginning applies (${name})`);
  }
  if (learned.refusal !== undefined && awaited === homes[0]) {
    draft.state.refusal = learned.refusal;
    endJob(draft, "errored", [CRAWL_DISALLOWED_TEXT]);
    return true;
  }
  if (!readsSitemaps) return true;
  const named = learned.sitemaps.map((url) => ({ url }));
  discover(draft, "files", 0, named);
  return true;
}

/**
 * Handles a report with some of a sitemap's addresses. Returns false if the reporting turn does not hold this
 * sitemap.
 */
export function readSlice(draft: JobDraft, slice: Slice): boolean {
  const number = sitemapOfTurn(draft, slice.turn, slice.url);
  if (number === undefined) return false;
  const nesting = sitemapOf(draft, number).nesting + 1;
  if (nesting <= SITEMAP_NESTING_MAX) discover(draft, "files", nesting, slice.nested);
  else if (slice.nested.length > 0) {
    const message = `Sitemaps are read ${SITEMAP_NESTING_MAX} levels deep; others were left out`;
    addMessage(draft, message);
  }
  discover(draft, "sitemap", 0, slice.urls.toSorted(byPriority));
  if (slice.end === undefined) return true;
  takeReadSitemap(draft, slice.turn, number);
  const { failed, retry } = slice.end;
  if (failed === undefined) closeSitemap(draft, number);
  else if (retry) retrySitemap(draft, number, failed);
  else giveUpSitemap(draft, number, failed);
  return true;
}

/** Sorts the addresses of a slice by priority. A missing priority is 0.5. */
const byPriority = (one: SitemapUrl, other: SitemapUrl) =>
  (other.priority ?? 0.5) - (one.priority ?? 0.5);
