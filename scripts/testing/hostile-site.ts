/** Sites that try to keep a crawl from ending, or to fill the crawler's memory. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { type LoopbackServer, listen, startHttpServer } from "./loopback-server.ts";
import type { Certificate } from "./self-signed-certificate.ts";

const MB = 1024 * 1024;
const LINKS = 50;
const TEXT_TYPE = "text/html; charset=utf-8";

type Answer = (path: string, response: ServerResponse, request: IncomingMessage) => unknown;

export interface HostileSite {
  url: string;
  /** Requests so far, by path. */
  paths: string[];
}

export class HostileSites implements AsyncDisposable {
  readonly #servers: LoopbackServer[] = [];
  #next = 1;

  /** Each page links to new addresses without end. */
  endlessLinks(): Promise<HostileSite> {
    let count = 0;
    return this.#serve((path, response) => {
      const links = Array.from({ length: LINKS }, () => {
        count += 1;
        return `<a href="/${path.slice(1, 40)}${count}?${"q".repeat(200)}${count}">x</a>`;
      });
      page(response, links.join(""));
    });
  }

  /** Two hosts that redirect to each other without end, each time to a new address. */
  async endlessRedirects(): Promise<HostileSite> {
    let count = 0;
    const urls: string[] = [];
    const send = (to: number) => (_: string, response: ServerResponse) => {
      count += 1;
      response.writeHead(302, { Location: `${urls[to]}hop/${count}` }).end();
    };
    const [first, second] = [await this.#serve(send(1)), await this.#serve(send(0))];
    urls.push(first.url, second.url);
    return first;
  }

  /** Two pages of 10 GB each, one plain and one compressed. */
  hugeBodies(): Promise<HostileSite> {
    const plain = Buffer.from(`<p>${"x".repeat(MB - 3)}`);
    const packed = gzipSync(Buffer.alloc(64 * MB, "<p>zeros</p>"));
    return this.#serve((path, response) => {
      if (path === "/") return page(response, '<a href="/plain">p</a><a href="/packed">z</a>');
      const isPacked = path === "/packed";
      response.setHeader("Content-Type", TEXT_TYPE);
      if (isPacked) response.setHeader("Content-Encoding", "gzip");
      else response.setHeader("Content-Length", 10 * 1024 * MB);
      let left = isPacked ? 160 : 10 * 1024;
      const write = () => {
        while (left > 0 && !response.destroyed) {
          left -= 1;
          if (!response.write(isPacked ? packed : plain)) return void response.once("drain", write);
        }
        if (left === 0) response.end();
      };
      write();
    });
  }

  /** Pages with random bytes that are not valid text in the declared charset, and a page with an unknown charset. */
  badEncodings(): Promise<HostileSite> {
    const types: Record<string, string> = {
      "/utf8": TEXT_TYPE,
      "/utf16": "text/html; charset=utf-16",
      "/none": "text/html; charset=nonsense",
      "/jis": "text/html; charset=iso-2022-jp",
    };
    const noise = Buffer.from(Array.from({ length: 4_096 }, (_, index) => (index * 7919) % 256));
    return this.#serve((path, response) => {
      const type = types[path];
      if (type === undefined) {
        return page(
          response,
          Object.keys(types)
            .map((to) => `<a href="${to}">x</a>`)
            .join(""),
        );
      }
      response.setHeader("Content-Type", type);
      response.end(Buffer.concat([Buffer.from("<title>t</title><p>"), noise]));
    });
  }

  /** Sitemaps that list themselves and `others` new sitemaps each. */
  endlessSitemaps(others: number): Promise<HostileSite> {
    let count = 0;
    return this.#serve((path, response) => {
      if (!path.endsWith(".xml")) return page(response, "<p>home");
      const maps = Array.from({ length: others }, () => {
        count += 1;
        return `<sitemap><loc>${own(response)}/${count}.xml</loc></sitemap>`;
      });
      maps.push(`<sitemap><loc>${own(response)}${path}</loc></sitemap>`);
      response.setHeader("Content-Type", "application/xml");
      response.end(`<sitemapindex>${maps.join("")}</sitemapindex>`);
    });
  }

  /** Links of 100 kB. */
  longAddresses(): Promise<HostileSite> {
    return this.#serve((path, response) => {
      const links = Array.from({ length: 20 }, (_, link) => `/${link}${"a".repeat(100_000)}`);
      const hrefs = path === "/" ? [...links, "/short"] : links;
      page(response, hrefs.map((href) => `<a href="${href}">x</a>`).join(""));
    });
  }

  /** A robots.txt that never ends. */
  endlessRobots(): Promise<HostileSite> {
    const line = Buffer.from("Disallow: /no-such-page-here\n".repeat(1_000));
    return this.#serve(
      (_, response) => page(response, "<p>home"),
      (_, response) => {
        response.write("User-agent: *\nCrawl-delay: 0\n");
        const write = () => {
          while (!response.destroyed) {
            if (!response.write(line)) return void response.once("drain", write);
          }
        };
        write();
      },
    );
  }

  /** Pages that send one byte every 500 ms and never end. */
  slowDrip(): Promise<HostileSite> {
    return this.#serve(async (path, response) => {
      if (path === "/") return page(response, '<a href="/drip">d</a>');
      response.setHeader("Content-Type", TEXT_TYPE);
      while (!response.destroyed) {
        response.write("x");
        await wait(500);
      }
    });
  }

  /** Pages whose scripts never end, open dialogs, navigate away, grow the page or close it. */
  badScripts(): Promise<HostileSite> {
    const pages: Record<string, string> = {
      "/hang": "<p>hang<script>for (;;);</script>",
      "/ask": "<p>ask<script>alert(1); confirm(2); print()</script>",
      "/leave": "<p>leave<script>location = '/leave?' + Math.random()</script>",
      "/grow":
        "<p>grow<script>setInterval(() => document.body.append('x'.repeat(1e5)), 1)</script>",
      "/close": "<p>close<script>window.close()</script>",
      "/fine": "<p>fine",
    };
    return this.#serve((path, response) => {
      const script = pages[path.split("?")[0] ?? ""];
      const links = Object.keys(pages).map((to) => `<a href="${to}">x</a>`);
      page(response, script ?? links.join(""));
    });
  }

  /**
   * Pages whose requests call `kill`, which kills the browser that loads them. Slow pages load in that browser at the
   * same time.
   */
  browserKillers(kill: () => void): Promise<HostileSite> {
    const paths = [1, 2, 3, 4].flatMap((number) => [`/kill/${number}`, `/fine/${number}`]);
    return this.#serve(async (path, response) => {
      if (path.startsWith("/kill")) return kill();
      if (path === "/") return page(response, paths.map((to) => `<a href="${to}">x</a>`).join(""));
      await wait(500);
      page(response, "");
    });
  }

  /**
   * A server at `localhost` that delays the TLS handshake of each connection by `afterMs`, and closes the connection
   * after one response.
   */
  async slowConnect(certificate: Certificate, afterMs: number): Promise<HostileSite> {
    const paths: string[] = [];
    const https = createHttpsServer(certificate, (request, response) => {
      paths.push(request.url ?? "");
      response.setHeader("Connection", "close");
      if (request.url === "/robots.txt") return void response.end("User-agent: *\nAllow: /\n");
      const links = request.url === "/" ? '<a href="/a">a</a><a href="/b">b</a>' : "";
      page(response, links);
    });
    const server = createServer((socket) => {
      setTimeout(() => https.emit("connection", socket), afterMs).unref();
    });
    const listening = await listen(server, "127.0.0.1");
    this.#servers.push(listening);
    return { url: `https://localhost:${listening.port}/`, paths };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.close()));
  }

  #address(): string {
    this.#next += 1;
    return `127.0.21.${this.#next}`;
  }

  async #serve(answer: Answer, robots: Answer = plainRobots): Promise<HostileSite> {
    const paths: string[] = [];
    const server = await startHttpServer((request, response) => {
      const { url: path = "" } = request;
      paths.push(path);
      if (path === "/robots.txt") robots(path, response, request);
      else void answer(path, response, request);
    }, this.#address());
    this.#servers.push(server);
    return { url: `http://${server.address}:${server.port}/`, paths };
  }
}

function plainRobots(_: string, response: ServerResponse): void {
  response.end("User-agent: *\nCrawl-delay: 0\n");
}

function page(response: ServerResponse, html: string): void {
  response.setHeader("Content-Type", TEXT_TYPE);
  response.end(`<!doctype html><title>t</title><h1>h</h1>${html}`);
}

const own = (response: ServerResponse) => `http://${response.req.headers.host}`;
