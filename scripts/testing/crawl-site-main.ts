/**
 * Serves the hosts of a crawl test in a separate process, because a busy process would measure wrong times. Prints
 * every request. The only parameter is a JSON list of hosts. The first printed line is a list of the hosts' ports.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { Arrivals } from "./arrivals.ts";
import { type CrawlHost, hostPage, robotsOf, type SiteRequest, sitemapOf } from "./crawl-pages.ts";

const hosts: CrawlHost[] = JSON.parse(process.argv[2] ?? "[]");
const arrivals = new Arrivals();

const servers = hosts.map(({ address }, index) => {
  const server = createServer({ keepAliveTimeout: 60_000 });
  let open = 0;
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const arrival = arrivals.seen();
    open += 1;
    response.once("close", () => {
      open -= 1;
    });
    const { url: path = "", headers } = request;
    const job = String(headers["x-job"] ?? "");
    const agent = headers["user-agent"] ?? "";
    const seen: SiteRequest = { host: index, path, job, agent, ...arrival, open };
    process.stdout.write(`${JSON.stringify(seen)}\n`);
    void answer(index, path, response);
  });
  server.listen(0, address);
  return server;
});
await Promise.all(servers.map((server) => once(server, "listening")));
const ports = servers.map((server) => (server.address() as AddressInfo).port);
const origins = hosts.map(({ address }, index) => `http://${address}:${ports[index]}`);
process.stdout.write(`${JSON.stringify({ ports })}\n`);

async function answer(index: number, path: string, response: ServerResponse): Promise<void> {
  const host = hosts[index];
  if (host === undefined) throw new Error(`Cannot answer: there is no host ${index}`);
  if (path === "/robots.txt") {
    return void response.end(robotsOf(host, origins[index] ?? ""));
  }
  await wait(host.answerMs ?? 0);
  if (path === "/sitemap.xml" && host.sitemap) {
    response.setHeader("Content-Type", "application/xml");
    return void response.end(sitemapOf(host, origins[index] ?? ""));
  }
  const page = hostPage(hosts, origins, index, path);
  response.setHeader("Content-Type", "text/html; charset=utf-8");
  if (page === undefined) return void response.writeHead(404).end("<!doctype html>none");
  if ("to" in page) return void response.writeHead(302, { Location: page.to }).end();
  response.end(page.html);
}
