/**
 * Notifies sites of the number of requests that the job wants, if they would otherwise not grant the job enough
 * turns.
 */
import { envelope } from "../../../schemas/contract.ts";
import {
  SITE_FULL_RETRY_MS,
  SITES_FULL_MAX,
  TURN_REQUESTS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { Scheme, site } from "../../../schemas/crawl/site.ts";
import { queuedSitemaps } from "./discovery/sitemaps.ts";
import { endJob } from "./end-job.ts";
import { firstOf, hostRow, hostState } from "./state/host-queues.ts";
import type { JobDraft } from "./state/job-draft.ts";
import { addMessage } from "./state/job-messages.ts";
import { closeHost, freePlace, nextInLine, openHost } from "./state/open-hosts.ts";
import { addressOf } from "./state/page-address.ts";

/**
 * Notifies the sites of touched hosts where that is needed, then opens hosts that wait in the line, and notifies
 * theirs.
 */
export function notifySites(draft: JobDraft): void {
  const sitemaps = draft.pagesLeft > 0 ? queuedSitemaps(draft) : new Map<string, unknown[]>();
  // Hosts with queued sitemaps are added: they were not notified while the crawl was at its page limit.
  const hosts = draft.isRunning ? draft.touchedHosts.union(sitemaps) : draft.touchedHosts;
  for (const host of hosts) notifySite(draft, host, sitemaps.get(host)?.length ?? 0);
  for (let host = nextHost(draft); host !== undefined; host = nextHost(draft)) {
    notifySite(draft, host, sitemaps.get(host)?.length ?? 0);
  }
}

/**
 * Pauses a host whose site refused this job because it has too many. Ends the job if SITES_FULL_MAX are paused
 * already.
 */
export function pauseFullHost(draft: JobDraft, host: string): void {
  const { fullHosts = [] } = draft.state;
  if (fullHosts.includes(host)) return;
  if (fullHosts.length === SITES_FULL_MAX) {
    endJob(draft, "errored", [`More than ${SITES_FULL_MAX} sites are crawled by too many others`]);
    return;
  }
  addMessage(draft, `${host} is crawled by too many others; it is asked again until it has room`);
  if (fullHosts.length === 0) draft.remind("askAgain", draft.now + SITE_FULL_RETRY_MS);
  draft.state.fullHosts = [...fullHosts, host];
  freePlace(draft, host);
}

/** Pauses a host for `ms` milliseconds. All paused hosts share one reminder, so they all continue when it is due. */
export function postpone(draft: JobDraft, host: string, ms: number): void {
  withdrawWants(draft, host);
  draft.state.fullHosts = [...(draft.state.fullHosts ?? []), host];
  freePlace(draft, host);
  draft.remind("askAgain", draft.now + ms);
}

export const isPostponed = ({ state }: JobDraft, host: string): boolean =>
  state.fullHosts?.includes(host) === true;

export function resumePausedHosts(draft: JobDraft): void {
  for (const host of draft.state.fullHosts ?? []) {
    draft.touchedHosts.add(host);
    draft.askedHosts.add(host);
  }
  draft.state.fullHosts = [];
}

/** Notifies a site that the job wants no more requests at its host. */
export function withdrawWants(draft: JobDraft, host: string): void {
  const { account } = draft.state;
  draft.send(envelope(site, host, "want", { account, job: draft.key, wants: 0, tell: [] }));
}

function notifySite(draft: JobDraft, host: string, sitemaps: number): void {
  if (draft.isRunning && isPostponed(draft, host)) return;
  const wants = draft.isRunning ? hostState(draft, host).queued + sitemaps : 0;
  if (wants > 0 && !openHost(draft, host)) return;
  const { told, ...row } = hostState(draft, host);
  const isAsked = draft.isRunning && (draft.askedHosts.has(host) || told === undefined);
  const isWorthIt = isAsked || mustNotify(wants, told ?? 0);
  if (isWorthIt && wants > 0) {
    const tell = isAsked ? schemesOf(draft, host) : [];
    const { account } = draft.state;
    draft.send(envelope(site, host, "want", { account, job: draft.key, wants, tell }));
    draft.write(hostRow(host), { ...row, told: wants });
  } else if (isWorthIt) withdrawWants(draft, host);
  // An unknown host needs no row.
  if (wants === 0 && row.queued === 0 && !row.waits) closeHost(draft, host);
}

const nextHost = (draft: JobDraft) => (draft.isRunning ? nextInLine(draft) : undefined);

/**
 * Whether the site needs a message about the wanted requests. The site subtracts each grant from the number that it
 * knows, so it must learn of further requests before its number is zero. At a host that grants many requests in one
 * turn, the site must know when the number has doubled: a queue that grows to n requests causes log n messages.
 */
function mustNotify(wants: number, known: number): boolean {
  return wants < known || (known < TURN_REQUESTS_MAX && wants > 2 * known);
}

/** Returns the schemes whose robots.txt the job needs: those of homes that wait for it, and that of the next page. */
function schemesOf(draft: JobDraft, host: string) {
  const { homes } = draft.state;
  const awaited = homes.map(({ origin }) => new URL(origin)).filter((url) => url.host === host);
  const first = firstOf(draft, host);
  if (first !== undefined) awaited.push(new URL(addressOf(first.page)));
  const schemes = new Set(awaited.map(({ protocol }) => Scheme.parse(protocol.slice(0, -1))));
  const { intent } = draft.plan.plan;
  return [...schemes].map((scheme) => ({ scheme, intent }));
}
