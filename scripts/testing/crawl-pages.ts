/** The sites of a crawl test: trees of pages with links to other hosts. Some pages are reached by redirects. */

export interface CrawlHost {
  address: string;
  /** Crawl-delay in the host's robots.txt, in seconds. If it is absent, the crawler's default delay applies. */
  crawlDelay?: number;
  /** Number of pages besides the home page. */
  pages: number;
  /** True if the host has a sitemap, which lists every second page. */
  sitemap: boolean;
  /** Delay of each response. */
  answerMs?: number;
}

/** One request as the host's server received it. Times are by the machine's clock. */
export interface SiteRequest {
  /** Index of the host in the list of hosts. */
  host: number;
  path: string;
  /** The job's name, from a header field of the request. */
  job: string;
  agent: string;
  /** The server processed the request at `at`. The request arrived after `since`. */
  at: number;
  since: number;
  /** Number of requests in flight at the host, including this one. */
  open: number;
}

/** Every seventh page is reached only by a redirect. */
const REDIRECTED = 7;
const FILLER = "Water runs over stones, and the mill turns all day. ".repeat(30);

const isRedirected = (page: number) => page % REDIRECTED === REDIRECTED - 1;
const pathOf = (page: number) => (isRedirected(page) ? `/go/${page}` : `/p/${page}`);

/**
 * Returns the paths that a complete crawl requests from this host, each path once, without robots.txt and sitemaps.
 */
export function allPaths({ pages }: CrawlHost): string[] {
  const numbers = Array.from({ length: pages }, (_, page) => page);
  return ["/", ...numbers.flatMap((page) => pathsOf(page))];
}

/**
 * Returns the paths of this host that a complete crawl has records of. A redirect and its target share one record.
 */
export function recordPaths({ pages }: CrawlHost): string[] {
  return ["/", ...Array.from({ length: pages }, (_, page) => `/p/${page}`)];
}

export function robotsOf({ crawlDelay, sitemap }: CrawlHost, origin: string): string {
  const delay = crawlDelay === undefined ? "" : `Crawl-delay: ${crawlDelay}\n`;
  return `User-agent: *\nDisallow: /no\n${delay}${sitemap ? `Sitemap: ${origin}/sitemap.xml\n` : ""}`;
}

export function sitemapOf({ pages }: CrawlHost, origin: string): string {
  const urls = Array.from({ length: pages }, (_, page) => page)
    .filter((page) => page % 2 === 0 && !isRedirected(page))
    .map((page) => `<url><loc>${origin}/p/${page}</loc></url>`);
  return `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.join("")}</urlset>`;
}

/** Returns the page or the redirect target at the path, or undefined if the path does not exist. */
export function hostPage(
  hosts: readonly CrawlHost[],
  origins: readonly string[],
  index: number,
  path: string,
): { html: string } | { to: string } | undefined {
  const { pages = 0 } = hosts[index] ?? {};
  if (path === "/") {
    const next = origins[(index + 1) % origins.length];
    return page(`Home ${index}`, [`${next}/`, ...(pages > 0 ? [pathOf(0)] : []), "/no/entry"]);
  }
  const [, kind, digits = ""] = /^\/(p|go)\/(\d+)$/.exec(path) ?? [];
  const number = Number(digits);
  if (kind === undefined || number >= pages) return undefined;
  if (kind === "go") return { to: `${origins[index]}/p/${number}` };
  const children = [2 * number + 1, 2 * number + 2].filter((child) => child < pages);
  return page(`Page ${number} of ${index}`, ["/", ...children.map(pathOf)]);
}

function pathsOf(page: number): string[] {
  return isRedirected(page) ? [`/go/${page}`, `/p/${page}`] : [`/p/${page}`];
}

function page(title: string, links: readonly string[]): { html: string } {
  const anchors = links.map((link) => `<a href="${link}">${link}</a>`).join("\n");
  return {
    html: `<!doctype html><title>${title}</title><h1>${title}</h1><p>${FILLER}</p>${anchors}`,
  };
}
