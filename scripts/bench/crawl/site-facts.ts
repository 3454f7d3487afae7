/** The sites of the crawl benchmarks, and the requests that they received. */
import type { Arrival } from "../../testing/arrivals.ts";

export const SITE_PAGES = 500;
export const HOSTS = 50;
export const HOST_PAGES = 20;

export interface SiteFacts {
  /** The large site's first page, and one that links to every host's first page. */
  site: string;
  hosts: string;
  /** Requests served since the last question, and of each host when its requests came. */
  served: number;
  arrivals: Arrival[][];
}

/** Facts about the site with 100,000 pages. */
export const SITEMAPS = 2;
export const SITEMAP_PAGES = 50_000;

export interface FrontierFacts {
  url: string;
  /** Pages that were asked for. */
  pages: number;
}
