/** Turns of a job: fills a granted turn from the host's queue, and requeues what the turn does not report. */

import type { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { envelope } from "../../../schemas/contract.ts";
import type { crawlJob, PageOutcome } from "../../../schemas/crawl/crawl-job.ts";
import { crawlPage, type TurnRequest } from "../../../schemas/crawl/crawl-page.ts";
import { CRAWL_TRIES_MAX } from "../../../schemas/crawl/limits.ts";
import { site } from "../../../schemas/crawl/site.ts";
import { queuedSitemaps, retrySitemap, sitemapRow } from "./discovery/sitemaps.ts";
import { endWithoutStart } from "./end-job.ts";
import type { PageRow, SitemapRow, TurnRow } from "./state/crawl-job-state.ts";
import { dequeue, enqueue, firstOf, hostRow, hostState } from "./state/host-queues.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { addressOf } from "./state/page-address.ts";
import { pageOf } from "./state/page-rows.ts";
import { settlePage } from "./state/pages.ts";
import { isPostponed, withdrawWants } from "./wanted-requests.ts";

/** Maximum characters of addresses in the task and the rows of one turn. */
export const STEP_SEND_BYTES_MAX = 150_000;

type Messages = typeof crawlJob.messages;
type Granted = z.output<Messages["turnGranted"]["input"]>;
type TurnEnded = z.output<Messages["turnEnded"]["input"]>;

const turnRow = (turn: string) => `t/${turn}`;

/**
 * Sends the turn to a worker with queued requests of its host. Returns it to the site if there are none or the host
 * is paused.
 */
export function grantTurn(draft: JobDraft, { host, turn, requests: max }: Granted): void {
  if (draft.findRow("turn", turnRow(turn)) !== undefined) return;
  if (isPostponed(draft, host)) {
    returnTurn(draft, { host, turn });
    return;
  }
  countDown(draft, host, max);
  const taken = takeRequests(draft, host, max);
  if (taken.requests.length === 0) {
    giveBack(draft, host, turn);
    return;
  }
  const { pages, sitemaps, requests } = taken;
  draft.write(turnRow(turn), { type: "turn", host, pages, sitemaps });
  const { account } = draft.state;
  const message = draft.plan.plan.render ? "renderTurn" : "fetchTurn";
  const task = { account, job: draft.key, host, turn, requests };
  draft.send(envelope(crawlPage, account, message, task));
}

/**
 * Returns a turn to its site and withdraws the job's wanted requests. Sites may still grant turns to an ended job,
 * because it may have too many sites to notify all of them at its end.
 */
export function returnTurn(draft: JobDraft, { host, turn }: Pick<Granted, "host" | "turn">): void {
  if (draft.state.account !== "") withdrawWants(draft, host);
  giveBack(draft, host, turn);
}

/** Removes reported pages from the turn. Returns the outcomes of its own pages that it had not reported before. */
export function removeReported(
  draft: JobDraft,
  turn: string,
  outcomes: readonly PageOutcome[],
): PageOutcome[] {
  const row = draft.findRow("turn", turnRow(turn));
  if (row === undefined) return [];
  const left = new Set(row.pages);
  const reported = outcomes.filter(({ index }) => left.delete(index));
  keepTurn(draft, turn, { ...row, pages: [...left] });
  return reported;
}

/** Returns the number of the turn's sitemap with this address while the turn reads it. */
export function sitemapOfTurn(draft: JobDraft, turn: string, url: string): number | undefined {
  const { sitemaps = [] } = draft.findRow("turn", turnRow(turn)) ?? {};
  return sitemaps.find((number) => draft.getRow("sitemap", sitemapRow(number)).url === url);
}

export function takeReadSitemap(draft: JobDraft, turn: string, number: number): void {
  const row = draft.getRow("turn", turnRow(turn));
  const sitemaps = row.sitemaps.filter((other) => other !== number);
  keepTurn(draft, turn, { ...row, sitemaps });
}

/**
 * Ends a turn: puts its unreported pages back at the front of their queue, in their order, and requeues its sitemaps.
 * With `failed`, each page then gets a turn of its own. Returns false if the turn had reported everything.
 */
export function endTurn(draft: JobDraft, { turn, failed }: TurnEnded): boolean {
  const row = draft.findRow("turn", turnRow(turn));
  if (row === undefined) return false;
  draft.write(turnRow(turn), null);
  const isAlone = row.pages.length + row.sitemaps.length === 1;
  for (const index of row.pages.toReversed()) {
    if (failed === undefined) enqueue(draft, index, pageOf(draft, index), "first");
    else if (isAlone) returnBroken(draft, index);
    else setApart(draft, index);
  }
  for (const number of row.sitemaps) retrySitemap(draft, number, failed);
  return true;
}

/** Writes the row of a turn, or removes the row if the turn has reported everything. */
function keepTurn(draft: JobDraft, turn: string, row: DeepReadonly<TurnRow>): void {
  const isDone = row.pages.length === 0 && row.sitemaps.length === 0;
  draft.write(turnRow(turn), isDone ? null : row);
}

function giveBack(draft: JobDraft, host: string, turn: string): void {
  draft.send(envelope(site, host, "turnFinished", { turn }));
}

/**
 * Subtracts the granted requests from the number that the site knows of, because the site does the same, even if the
 * turn uses fewer requests.
 */
function countDown(draft: JobDraft, host: string, requests: number): void {
  const { told = 0, ...row } = hostState(draft, host);
  draft.write(hostRow(host), { ...row, told: Math.max(0, told - requests) });
  draft.touchedHosts.add(host);
}

interface Taken {
  pages: number[];
  sitemaps: number[];
  requests: TurnRequest[];
  /**
   * Characters of addresses so far. They are limited because one commit writes both the task and the rows of its
   * pages.
   */
  chars: number;
  /** The turn has a page that must be alone. */
  isClosed: boolean;
}

/** Takes the start URL first, then sitemaps while the page limit has room, then pages. */
function takeRequests(draft: JobDraft, host: string, max: number): Taken {
  const taken: Taken = { pages: [], sitemaps: [], requests: [], chars: 0, isClosed: false };
  const mayTake = () =>
    !taken.isClosed && taken.requests.length < max && taken.chars < STEP_SEND_BYTES_MAX;
  if (firstOf(draft, host)?.index === 0) takePage(draft, host, taken);
  const sitemaps = draft.pagesLeft > 0 ? (queuedSitemaps(draft).get(host) ?? []) : [];
  for (const { number, row } of sitemaps) if (mayTake()) takeSitemap(draft, number, row, taken);
  while (mayTake() && takePage(draft, host, taken));
  return taken;
}

/**
 * Moves the first page of the host's queue into the turn. Returns false if the queue is empty, or if the page must be
 * alone and the turn has other requests.
 */
function takePage(draft: JobDraft, host: string, taken: Taken): boolean {
  const first = firstOf(draft, host);
  if (first === undefined) return false;
  const { index, page } = first;
  const { alone } = page;
  if (alone && taken.requests.length > 0) return false;
  dequeue(draft, host);
  taken.pages.push(index);
  const asked = { url: addressOf(page), attempt: attemptOf(page), ...(alone && { alone }) };
  addRequest(taken, { type: "page", index, ...asked });
  taken.chars += page.url.length;
  taken.isClosed = alone === true;
  return true;
}

function takeSitemap(
  draft: JobDraft,
  number: number,
  row: DeepReadonly<SitemapRow>,
  taken: Taken,
): void {
  const { url, nesting } = row;
  draft.write(sitemapRow(number), { ...row, inFlight: true });
  taken.sitemaps.push(number);
  addRequest(taken, { type: "sitemap", url, nesting, attempt: attemptOf(row) });
}

function addRequest(taken: Taken, request: TurnRequest): void {
  taken.requests.push(request);
  taken.chars += request.url.length;
}

type Tried = { readonly failures?: number | undefined; readonly breaks?: number | undefined };
const attemptOf = ({ failures = 0, breaks = 0 }: Tried) => failures + breaks + 1;

/**
 * Requeues a page of a turn that broke off; the page is the only request of its next turn. Any page of the broken
 * turn may be the cause, or none.
 */
function setApart(draft: JobDraft, index: number): void {
  enqueue(draft, index, { ...pageOf(draft, index), alone: true }, "first");
}

/**
 * Requeues a page that was the only request of a turn that broke off. When CRAWL_TRIES_MAX such turns broke off,
 * settles it as errored. The cause may be the page, its worker, the bus, or a fault of this platform.
 */
function returnBroken(draft: JobDraft, index: number): void {
  const page: DeepReadonly<PageRow> = pageOf(draft, index);
  const breaks = (page.breaks ?? 0) + 1;
  if (breaks < CRAWL_TRIES_MAX) {
    enqueue(draft, index, { ...page, breaks, alone: true }, "first");
    return;
  }
  const reason = `its fetch broke off ${breaks} times`;
  settlePage(draft, index, page, { status: "errored", reason });
  if (index === 0) endWithoutStart(draft, reason);
}
