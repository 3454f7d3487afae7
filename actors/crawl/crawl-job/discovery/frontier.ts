/** Admits found addresses: decides in their order whether each is a page of the crawl. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import { crawlUrl } from "../../lib/scope/crawl-url.ts";
import type { Found } from "../state/crawl-job-state.ts";
import { enqueue } from "../state/host-queues.ts";
import type { JobDraft } from "../state/job-draft.ts";
import { addKnown, knownIndex } from "../state/known-urls.ts";
import { addressOf } from "../state/page-address.ts";
import { pageOf } from "../state/page-rows.ts";
import { addPage, addSkipped, unskip } from "../state/pages.ts";
import { addSitemap } from "./sitemaps.ts";

type FoundList = readonly DeepReadonly<Found>[];

/** The lane `files` holds addresses of sitemaps. The depth of a sitemap is the number of sitemap indexes above it. */
export type Lane = "files" | "sitemap" | "links";

/**
 * Examines addresses until this message has reached its limits or the crawl its page limit. Returns the addresses
 * that were not examined.
 */
export function admit(draft: JobDraft, lane: Lane, depth: number, found: FoundList): FoundList {
  for (const [position, one] of found.entries()) {
    if (draft.isFull || draft.pagesLeft <= 0) return found.slice(position);
    draft.spend({ bytes: one.url.length, work: draft.plan.workOf(one.url) });
    if (lane === "files") addSitemap(draft, one.url, { nesting: depth });
    else admitPage(draft, depth, one);
  }
  return [];
}

/** Admits the start URL, whatever the patterns say. */
export function admitStart(draft: JobDraft, url: string): void {
  addAndQueue(draft, { url, depth: 0 });
}

/**
 * Queues a page that was skipped only for its depth and is now found nearer to the start, if the page limit admits
 * it.
 */
export function foundNearer(draft: JobDraft, index: number, depth: number): void {
  if (!pageOf(draft, index).tooDeep || draft.pagesLeft <= 0) return;
  unskip(draft, index, depth);
  enqueue(draft, index, pageOf(draft, index), "last");
}

/** Returns the address to which the start URL redirected. */
export function movedTo(draft: JobDraft): string | undefined {
  const start = pageOf(draft, 0);
  return start.at === undefined ? undefined : addressOf(start);
}

function admitPage(draft: JobDraft, depth: number, { url: text, lastModifiedAt }: Found): void {
  const parsed = crawlUrl(text);
  if (!parsed.valid) return;
  const { url } = parsed;
  const isTooDeep = depth > draft.plan.plan.depth;
  const known = knownIndex(draft, "page", url);
  if (known !== undefined) {
    if (!isTooDeep) foundNearer(draft, known, depth);
    return;
  }
  const refusal = refusalOf(draft, url, lastModifiedAt);
  if (refusal === undefined && !isTooDeep) {
    addAndQueue(draft, { url, depth });
    return;
  }
  const why =
    refusal === undefined
      ? { reason: distance(draft, depth), tooDeep: true as const }
      : { reason: refusal };
  const index = addSkipped(draft, { url, depth, ...why });
  if (index !== undefined) addKnown(draft, "page", url, index);
}

function distance({ plan }: JobDraft, depth: number): string {
  const links = depth === 1 ? "1 link" : `${depth} links`;
  return `it is ${links} from the start, depth is ${plan.plan.depth}`;
}

function addAndQueue(draft: JobDraft, page: { url: string; depth: number }): void {
  const index = addPage(draft, page);
  addKnown(draft, "page", page.url, index);
  enqueue(draft, index, pageOf(draft, index), "last");
}

/** Returns why the address does not belong to the crawl, as far as that is known without a request. */
function refusalOf(
  draft: JobDraft,
  url: string,
  lastModifiedAt: number | undefined,
): string | undefined {
  const verdict = draft.plan.judge(url, movedTo(draft));
  if (!verdict.allowed) return verdict.reason;
  const { modifiedSince } = draft.plan.plan;
  if (modifiedSince === undefined || lastModifiedAt === undefined) return undefined;
  if (lastModifiedAt >= modifiedSince * 1_000) return undefined;
  const date = new Date(lastModifiedAt).toISOString();
  return `its sitemap says that it was last modified on ${date}, before modifiedSince`;
}
