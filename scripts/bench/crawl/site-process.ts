/**
 * The sites to crawl: one site with 500 pages that asks for no delay, and 50 hosts with 20 pages each that have the
 * usual delay.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type Arrival, Arrivals } from "../../testing/arrivals.ts";
import { answerParent } from "../answer-parent.ts";
import { HOST_PAGES, HOSTS, SITE_PAGES, type SiteFacts } from "./site-facts.ts";

const PAGE_BYTES = 7_700;
const TEXT = "The quick brown fox jumps over the lazy dog, and then it rests for a while. ";

let served = 0;
const arrivals = new Arrivals();
const seen = new Map<string, Arrival[]>();
const large = createServer((request, response) => {
  served += 1;
  answer(request, response, "User-agent: *\nCrawl-delay: 0\n", (path) =>
    path === "/hosts" ? hostNames().map((name) => `http://${name}/`) : siteLinks(path),
  );
});
large.keepAliveTimeout = 60_000;
large.listen(0, "127.0.0.1");
await once(large, "listening");
const { port } = large.address() as { port: number };
const many = await Promise.all(
  Array.from({ length: HOSTS }, async (_, index) => {
    const name = `127.0.3.${index + 1}`;
    const server = createServer((request, response) => {
      seen.set(name, [...(seen.get(name) ?? []), arrivals.seen()]);
      answer(request, response, "", (path) =>
        path === "/" ? numbers(HOST_PAGES - 1).map((page) => `/${page + 1}`) : [],
      );
    });
    server.listen(port, name);
    await once(server, "listening");
    return server;
  }),
);

answerParent({
  async answer(): Promise<SiteFacts> {
    const facts = {
      site: `http://127.0.0.1:${port}/0`,
      hosts: `http://127.0.0.1:${port}/hosts`,
      served,
      arrivals: [...seen.values()],
    };
    served = 0;
    seen.clear();
    return facts;
  },
  async close() {
    arrivals[Symbol.dispose]();
    for (const server of [large, ...many]) server.closeAllConnections();
  },
});

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  robots: string,
  linksOf: (path: string) => string[],
): void {
  const path = request.url ?? "/";
  if (path === "/robots.txt") {
    response.writeHead(200, { "Content-Type": "text/plain" }).end(robots);
    return;
  }
  const links = linksOf(path).map((href) => `<li><a href="${href}">Page ${href}</a></li>`);
  const head = `<!doctype html><html><head><title>Page ${path}</title></head><body><ul>${links.join("")}</ul>`;
  const filler = TEXT.repeat(Math.ceil((PAGE_BYTES - head.length) / TEXT.length));
  response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" });
  response.end(`${head}<p>${filler}</p></body></html>`);
}

/**
 * Returns the links of a page. The pages form a tree in which every page has ten children, and each page has ten more
 * links across the tree.
 */
function siteLinks(path: string): string[] {
  const page = Number(path.slice(1));
  const children = numbers(10).map((index) => page * 10 + index + 1);
  const across = numbers(10).map((index) => (page * 31 + index * 47 + 13) % SITE_PAGES);
  return [...children, ...across].filter((to) => to < SITE_PAGES).map((to) => `/${to}`);
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

function hostNames(): string[] {
  return numbers(HOSTS).map((index) => `127.0.3.${index + 1}:${port}`);
}
