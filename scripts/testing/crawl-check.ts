/** Checks a finished crawl after faults, by comparing its records with the requests that the site received. */

import type { WireRecord } from "../../schemas/crawl/http/crawl-answers.ts";
import { TASK_ACK_WAIT_MS } from "../../schemas/limits.ts";
import { allPaths, recordPaths, type SiteRequest } from "./crawl-pages.ts";
import type { CrawlSite } from "./crawl-site.ts";

const USER_AGENT = "VendorBrowserRenderingCrawler/1.0";
/**
 * Maximum time until a job knows the outcome of a page. The page's body must arrive, be stored and be reported, on a
 * busy machine too.
 */
const REPORT_MS_MAX = 30_000;
/** Maximum time after a cut connection until the worker's task may be given to another worker. */
const TAKEN_MS_MAX = TASK_ACK_WAIT_MS + 30_000;
/**
 * Maximum number of pages that one worker can have in flight when it dies. Hosts without a crawl delay have several
 * turns at the same time.
 */
const UNDER_WAY_MAX = 16;

export interface JobToCheck {
  id: string;
  /** The job's name, which its requests carry in a header field. */
  name: string;
  /** Indexes of the hosts that the job crawls. */
  hosts: readonly number[];
}

/** The part of a scene that the check needs. */
export interface CheckedScene {
  /** Begin and end of each fault, by the machine's clock. */
  readonly faults: readonly { what: string; at: number; until: number }[];
  records(id: string): Promise<WireRecord[]>;
}

/** Returns what is wrong with a completed job. */
export async function crawlFaults(
  scene: CheckedScene,
  site: CrawlSite,
  { id, name, hosts }: JobToCheck,
): Promise<string[]> {
  const records = await scene.records(id);
  return [
    ...recordFaults(site, hosts, records).map((fault) => `${name}: ${fault}`),
    ...repetitions(scene, site, name).map((fault) => `${name}: ${fault}`),
  ];
}

/** Checks that each page has one record with its content. */
function recordFaults(
  site: CrawlSite,
  hosts: readonly number[],
  records: readonly WireRecord[],
): string[] {
  const wanted = new Set(
    hosts.flatMap((host) =>
      recordPaths(site.hosts[host] ?? none).map((path) => site.urlOf({ host, path })),
    ),
  );
  const faults: string[] = [];
  const seen = new Set<string>();
  for (const { url, status, metadata, html, reason } of records) {
    if (status === "disallowed" || status === "skipped") continue;
    const where = metadata?.url ?? url;
    if (status !== "completed") faults.push(`${url} is ${status}: ${reason}`);
    else if (!html?.includes("<h1>")) faults.push(`${url} has no content: ${html?.slice(0, 80)}`);
    if (seen.has(where)) faults.push(`${where} has two records`);
    seen.add(where);
    if (!wanted.has(where)) faults.push(`${where} has a record`);
  }
  for (const url of wanted.difference(seen)) faults.push(`${url} has no record`);
  return faults;
}

const none = { address: "", pages: 0, sitemap: false };

/** Checks that only requests in flight at a fault were repeated. */
function repetitions(scene: CheckedScene, site: CrawlSite, name: string): string[] {
  const ofJob = site.requests.filter(({ job }) => job === name);
  const faults: string[] = [];
  const byUrl = Map.groupBy(ofJob, (request) => site.urlOf(request));
  const repeated: { url: string; at: number; since: number; next: SiteRequest }[] = [];
  for (const [url, requests] of byUrl) {
    for (const [index, { at, since }] of requests.slice(0, -1).entries()) {
      const next = requests[index + 1];
      if (next !== undefined) repeated.push({ url, at, since, next });
    }
  }
  // Faults may overlap. A repetition that several faults explain is counted for the fault that ends first and still
  // has repetitions left.
  const room = scene.faults
    .map((fault) => ({ ...fault, left: UNDER_WAY_MAX }))
    .toSorted((one, other) => one.until - other.until);
  for (const { url, at, since, next } of repeated.toSorted((one, other) => one.at - other.at)) {
    const explaining = room.filter(
      ({ at: from, until }) =>
        at < until + TAKEN_MS_MAX && at > from - REPORT_MS_MAX && from < next.at,
    );
    const fault = explaining.find(({ left }) => left > 0);
    if (fault) {
      fault.left -= 1;
      continue;
    }
    const gap = `${Math.round(next.at - at)} to ${Math.round(next.at - since)} ms`;
    const told = explaining.map(({ what }) => what).join(", then ");
    const more = told === "" ? "" : `: more than ${UNDER_WAY_MAX} each were repeated for ${told}`;
    faults.push(`${url} was asked for again after ${gap}${more}`);
  }
  for (const { agent, ...request } of ofJob) {
    if (agent !== USER_AGENT) faults.push(`${site.urlOf(request)} was asked for by ${agent}`);
  }
  return faults;
}

/** Returns the requests that a complete crawl of these hosts makes and this one did not. */
export function requestsMissing(site: CrawlSite, { name, hosts }: JobToCheck): string[] {
  const asked = new Set(
    site.requests.flatMap((request: SiteRequest) =>
      request.job === name ? [site.urlOf(request)] : [],
    ),
  );
  return hosts
    .flatMap((host) => allPaths(site.hosts[host] ?? none).map((path) => site.urlOf({ host, path })))
    .filter((url) => !asked.has(url));
}
