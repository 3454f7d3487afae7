/** What must hold of a crawl whatever was broken while it ran, told from its records and from what the site saw. */

import type { WireRecord } from "../../schemas/http/crawl-answers.ts";
import { TASK_ACK_WAIT_MS } from "../../schemas/limits.ts";
import { allPaths, recordPaths, type SiteRequest } from "./crawl-pages.ts";
import type { CrawlScene } from "./crawl-scene.ts";
import type { CrawlSite } from "./crawl-site.ts";

const USER_AGENT = "VendorBrowserRenderingCrawler/1.0";
/** What a job must still hear of a page: its body has to come, be stored, and be reported. */
const REPORT_MS_MAX = 3_000;
/** A worker that was cut off may lose its task to another so long after it is back. */
const TAKEN_MS_MAX = TASK_ACK_WAIT_MS + 1_000;
/** Places of one worker that a page can be in when it dies, and hosts have several turns where there is no delay. */
const UNDER_WAY_MAX = 16;

export interface JobToCheck {
  id: string;
  /** Its own header's text. */
  name: string;
  /** Positions of the hosts it walks. */
  hosts: readonly number[];
}

/** Of a job that has completed. */
export async function crawlFaults(
  scene: CrawlScene,
  site: CrawlSite,
  { id, name, hosts }: JobToCheck,
): Promise<string[]> {
  const records = await scene.records(id);
  return [
    ...recordFaults(site, hosts, records).map((fault) => `${name}: ${fault}`),
    ...repetitions(scene, site, name).map((fault) => `${name}: ${fault}`),
  ];
}

/** Each page has one record, with its content. */
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

/** Nothing is asked for twice, but what was under way when something broke. */
function repetitions(scene: CrawlScene, site: CrawlSite, name: string): string[] {
  const ofJob = site.requests.filter(({ job }) => job === name);
  const faults: string[] = [];
  const byUrl = Map.groupBy(ofJob, (request) => site.urlOf(request));
  const excused = new Map<string, number>();
  for (const [url, requests] of byUrl) {
    for (const [index, { at, since }] of requests.slice(0, -1).entries()) {
      const next = requests[index + 1]?.at ?? Number.POSITIVE_INFINITY;
      const fault = scene.faults.find(
        ({ at: from, until }) =>
          at < until + TAKEN_MS_MAX && at > from - REPORT_MS_MAX && from < next,
      );
      const gap = `${Math.round(next - at)} to ${Math.round(next - since)} ms`;
      if (fault === undefined) faults.push(`${url} was asked for again after ${gap}`);
      else excused.set(fault.what, (excused.get(fault.what) ?? 0) + 1);
    }
  }
  for (const [what, count] of excused) {
    if (count > UNDER_WAY_MAX) faults.push(`${count} requests were repeated after: ${what}`);
  }
  for (const { agent, ...request } of ofJob) {
    if (agent !== USER_AGENT) faults.push(`${site.urlOf(request)} was asked for by ${agent}`);
  }
  return faults;
}

/** Everything that a whole crawl of these hosts asks for. */
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
