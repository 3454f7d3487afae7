/** Settles each request of a turn: as a record, another request, or the end of the job. */

import type { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import type { crawlJob, PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { CRAWL_REDIRECTS_MAX, CRAWL_TRIES_MAX } from "../../../schemas/crawl/limits.ts";
import { crawlUrl } from "../lib/scope/crawl-url.ts";
import { foundNearer } from "./discovery/frontier.ts";
import { endJob, endWithoutStart } from "./end-job.ts";
import { endExtraction, extract } from "./extractions.ts";
import { clearFaults } from "./faults.ts";
import type { PageRow } from "./state/crawl-job-state.ts";
import { enqueue } from "./state/host-queues.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { addMessage } from "./state/job-messages.ts";
import { addKnown, knownIndex } from "./state/known-urls.ts";
import { findPage, pageOf } from "./state/page-rows.ts";
import { settlePage } from "./state/pages.ts";

type Page = DeepReadonly<PageRow>;
type OutcomeOf<K extends PageOutcome["kind"]> = Extract<PageOutcome, { kind: K }>;
type Extracted = z.output<typeof crawlJob.messages.jsonExtracted.input>;

/**
 * Handles the outcome of a page in flight: settles the page, queues it again, or ends the job. The caller handles its
 * links.
 */
export function settle(draft: JobDraft, outcome: PageOutcome): void {
  const { index } = outcome;
  const page = pageOf(draft, index);
  if ("browserMs" in outcome) draft.state.browserMs += outcome.browserMs ?? 0;
  switch (outcome.kind) {
    case "fetched":
      clearFaults(draft);
      settleFetched(draft, index, page, outcome);
      break;
    case "redirected":
      followRedirect(draft, index, page, outcome);
      break;
    case "disallowed":
      settleDisallowed(draft, index, page, outcome);
      break;
    case "skipped": {
      const { kind: status, reason, metadata } = outcome;
      settlePage(draft, index, page, { status, reason, ...given({ metadata }) });
      break;
    }
    case "failed":
      settleFailed(draft, index, page, outcome);
      break;
    case "out_of_time":
      endJob(draft, "cancelled_due_to_limits", [outcome.reason]);
      break;
    default:
      outcome satisfies never;
  }
}

/** Completes a page whose JSON has arrived or failed. Returns false if the page does not wait for it. */
export function settleExtracted(draft: JobDraft, { index, blob, reason }: Extracted): boolean {
  const page = findPage(draft, index);
  // If `jsonSource` is still set, the page's JSON task was not sent yet, so this result cannot belong to the page.
  if (page?.status !== "extracting" || page.jsonSource !== undefined) return false;
  const blobs = [...(page.blobs ?? []), ...(blob ? [blob] : [])];
  const missing = reason ?? page.reason;
  settlePage(draft, index, page, { status: "completed", blobs, ...given({ reason: missing }) });
  endExtraction(draft);
  return true;
}

/** Whether the status is an error. Such a page is kept, but its links are not followed. */
export const isErrorStatus = (status: number | undefined) => status !== undefined && status >= 400;

function settleFetched(
  draft: JobDraft,
  index: number,
  page: Page,
  { metadata, blobs, reason, jsonSource }: OutcomeOf<"fetched">,
): void {
  const record = { metadata, blobs, ...given({ reason }) };
  const isJsonWanted = draft.plan.plan.formats.includes("json") && jsonSource !== undefined;
  if (isErrorStatus(metadata.status)) {
    const why = reason ?? `HTTP ${metadata.status}`;
    settlePage(draft, index, page, { status: "errored", ...record, reason: why });
  } else if (!isJsonWanted) settlePage(draft, index, page, { status: "completed", ...record });
  else extract(draft, index, { ...page, ...record }, jsonSource);
}

/**
 * Handles a redirect: queues the target as the page's next request, or settles the page if the target is not
 * followed.
 */
function followRedirect(
  draft: JobDraft,
  index: number,
  page: Page,
  { to, status }: OutcomeOf<"redirected">,
): void {
  const metadata = { status, url: page.at ?? page.url };
  const hops = (page.hops ?? 0) + 1;
  const target = crawlUrl(to, metadata.url);
  if (hops > CRAWL_REDIRECTS_MAX) {
    const reason = `it redirects more than ${CRAWL_REDIRECTS_MAX} times`;
    settlePage(draft, index, page, { status: "errored", reason, metadata });
  } else if (!target.valid) {
    const reason = `it redirects to an address that cannot be crawled: ${target.reason}`;
    settlePage(draft, index, page, { status: "errored", reason, metadata });
  } else {
    const { url } = target;
    const refusal = redirectRefusal(draft, index, url);
    if (refusal !== undefined) {
      const reason = `it redirects to ${shortened(url)}, ${refusal}`;
      settlePage(draft, index, page, { status: "skipped", reason, metadata });
      const known = knownIndex(draft, "page", url);
      if (known !== undefined) foundNearer(draft, known, page.depth);
      return;
    }
    if (knownIndex(draft, "page", url) === undefined) addKnown(draft, "page", url, index);
    enqueue(draft, index, { ...page, at: url, hops, failures: 0 }, "first");
    if (index === 0) addHome(draft, url);
  }
}

/**
 * Returns the reason why a redirect is not followed. A redirect of the start URL is always followed. A redirect of a
 * page to its own address, for example to set a cookie, is followed too.
 */
function redirectRefusal(draft: JobDraft, index: number, url: string): string | undefined {
  if (index === 0) return undefined;
  const known = knownIndex(draft, "page", url);
  if (known !== undefined && known !== index) return "which the crawl has already";
  const { at } = pageOf(draft, 0);
  const verdict = draft.plan.judge(url, at);
  return verdict.allowed ? undefined : `where ${verdict.reason}`;
}

/** Whether the page was refused only because the host did not respond to the request for its robots.txt. */
export const isUnreachable = (outcome: PageOutcome) =>
  outcome.kind === "disallowed" && outcome.unreachable === true;

function settleDisallowed(
  draft: JobDraft,
  index: number,
  page: Page,
  outcome: OutcomeOf<"disallowed">,
): void {
  const { reason } = outcome;
  const status = isUnreachable(outcome) ? "errored" : "disallowed";
  settlePage(draft, index, page, { status, reason });
  if (index !== 0) return;
  if (status === "errored") endWithoutStart(draft, reason);
  else addMessage(draft, `The start URL was not fetched: ${reason}`);
}

function settleFailed(
  draft: JobDraft,
  index: number,
  page: Page,
  { retry, reason, metadata, blobs, browserLost }: OutcomeOf<"failed">,
): void {
  const { alone: wasAlone, ...kept } = page;
  const alone = browserLost && { alone: true as const };
  if (alone && !wasAlone) {
    // The browser ended during this load, and any of its pages may be the cause. So this does not count as a failure
    // of the page; it is retried in a browser of its own.
    enqueue(draft, index, { ...kept, ...alone }, "last");
    return;
  }
  const failures = (page.failures ?? 0) + 1;
  if (retry && failures < CRAWL_TRIES_MAX) {
    enqueue(draft, index, { ...kept, ...alone, failures }, "last");
    return;
  }
  settlePage(draft, index, page, { status: "errored", reason, blobs, ...given({ metadata }) });
  if (index === 0 && metadata?.status === undefined) {
    endWithoutStart(draft, reason);
  }
}

/** Adds the origin to which the start URL redirects, because the sitemaps of that origin are read too. */
function addHome(draft: JobDraft, url: string): void {
  const { origin, host } = new URL(url);
  if (draft.state.homes.some((home) => home.origin === origin)) return;
  draft.state.homes = [...draft.state.homes, { origin, learned: false }];
  draft.askedHosts.add(host);
}

/** Drops undefined fields: a stored field is present or missing. */
function given<T extends Record<string, unknown>>(fields: T) {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

/** Shortens an address for a reason: the longest address would exceed the limit of a reason. */
const shortened = (url: string) => (url.length > 500 ? `${url.slice(0, 500)}…` : url);
