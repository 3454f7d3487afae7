/** Facts about the sites of the crawl benchmarks: their addresses, and the requests that they received. */
import type { Arrival } from "../../testing/arrivals.ts";

export const SITE_PAGES = 500;
export const HOSTS = 50;
export const HOST_PAGES = 20;

export interface SiteFacts {
  /**
   * Two addresses: `site` of the first page of the site with 500 pages, and `hosts` of a page that links to the first
   * page of every small host.
   */
  site: string;
  hosts: string;
  /**
   * `served` is the number of requests since the last question. `arrivals` has the arrival times of the requests of
   * each host.
   */
  served: number;
  arrivals: Arrival[][];
}

/** Facts about the site with 100,000 pages. */
export const SITEMAPS = 2;
export const SITEMAP_PAGES = 50_000;

export interface FrontierFacts {
  url: string;
  /** Number of pages that were requested. */
  pages: number;
}
