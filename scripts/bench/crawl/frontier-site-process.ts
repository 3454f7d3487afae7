/**
 * A site with 100,000 pages, which two sitemaps list. It asks crawlers for a delay of a tenth of a second between
 * pages.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { answerParent } from "../answer-parent.ts";
import { type FrontierFacts, SITEMAP_PAGES, SITEMAPS } from "./site-facts.ts";

let pages = 0;
const server = createServer((request, response) => {
  const path = request.url ?? "/";
  const sitemap = /^\/sitemap-(\d+)\.xml$/.exec(path)?.[1];
  if (path === "/robots.txt") {
    const named = Array.from(
      { length: SITEMAPS },
      (_, map) => `Sitemap: ${url}/sitemap-${map}.xml`,
    );
    response.writeHead(200, { "Content-Type": "text/plain" });
    response.end(["User-agent: *", "Crawl-delay: 0.1", ...named].join("\n"));
  } else if (sitemap !== undefined) {
    response.writeHead(200, { "Content-Type": "application/xml" }).end(sitemapOf(Number(sitemap)));
  } else if (path === "/sitemap.xml") {
    response.writeHead(404).end();
  } else {
    pages += 1;
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
    response.end(`<!doctype html><title>Page ${path}</title><h1>Page ${path}</h1>`);
  }
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1");
await once(server, "listening");
const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;

answerParent({
  answer: async (): Promise<FrontierFacts> => ({ url, pages }),
  async close() {
    server.closeAllConnections();
  },
});

/** Returns a sitemap whose addresses have a realistic length, about 70 characters. */
function sitemapOf(map: number): string {
  const urls = Array.from(
    { length: SITEMAP_PAGES },
    (_, page) =>
      `<url><loc>${url}/articles/section-${page % 97}/an-article-of-ours-${map}-${page}</loc></url>`,
  );
  return `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${urls.join("")}</urlset>`;
}
