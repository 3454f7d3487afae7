import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import {
  CRAWL_BODY_BYTES_MAX,
  CRAWL_URL_CHARS_MAX,
  LARGE_BODY_BYTES,
} from "../../../../schemas/crawl/limits.ts";
import { BOMB_BYTES, gzipBomb, peakBytes } from "../../../../scripts/testing/gzip-bomb.ts";
import { listen, startTcpServer } from "../../../../scripts/testing/loopback-server.ts";
import { selfSignedCertificate } from "../../../../scripts/testing/self-signed-certificate.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { type Clock, systemClock as clock } from "../../../runtime/lib/clock.ts";
import { CRAWL_FETCH_MS_MAX } from "../../workers/crawl-page/open-crawl-worker.ts";
import { pageLoad, type Watched } from "../../workers/crawl-page/testing/page-load.ts";
import { HttpPageLoader, JOB_CONNECTIONS_MAX } from "./http-page-loader.ts";
import type { PageAnswer } from "./page-loader.ts";

const guard = createEgressGuard({
  policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }),
  lookup: async (name) => (name === "open.test" ? ["127.0.0.2"] : []),
});

describe("HttpPageLoader", () => {
  let site: WebSite;
  const open: HttpPageLoader[] = [];
  beforeEach(async () => {
    site = await WebSite.start();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((loader) => loader.close()));
    await site[Symbol.asyncDispose]();
  });

  function loaderOf(
    request: object = {},
    options: { fetchMs?: number; ca?: string; clock?: Clock } = {},
  ) {
    const whole = CrawlRequest.parse({ url: site.url, render: false, ...request });
    const limits = { fetchMs: CRAWL_FETCH_MS_MAX, ca: undefined, clock, ...options };
    const loader = new HttpPageLoader({ guard, request: whole, ...limits });
    open.push(loader);
    return loader;
  }

  const load = (loader: HttpPageLoader, url: string, watched: Watched = {}) =>
    loader.load(pageLoad(url, watched));

  it("load() returns a page with its charset, type, dates and robots directives", async () => {
    const url = site.page("/a", (_, response) =>
      response
        .writeHead(200, {
          "Content-Type": "text/html; charset=iso-8859-1",
          "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT",
          "X-Robots-Tag": ["otherbot: noindex", "vendorbrowserrenderingcrawler: nofollow"],
        })
        .end(Buffer.from("<p>caf\u00e9", "latin1")),
    );
    expect(await load(loaderOf(), url)).to.deep.equal({
      kind: "page",
      status: 200,
      html: "<p>café",
      truncated: false,
      contentType: "text/html; charset=iso-8859-1",
      lastModifiedAt: Date.UTC(2026, 10, 21, 10),
      awayMs: undefined,
      nofollow: true,
      browserMs: 0,
    });
  });

  it("load() treats the header Refresh as a redirect", async () => {
    const url = site.page("/a", (_, response) =>
      response.setHeader("Refresh", "0; url=/b").end("x"),
    );
    expect(await load(loaderOf(), url)).to.deep.equal({
      ...{ kind: "redirect", to: new URL("/b", url).href, status: 200, browserMs: 0 },
    });
  });

  it("load() sends the crawl's headers, one request at a time over a kept connection", async () => {
    const headers = { "X-Mine": "1" };
    const loader = loaderOf({ setExtraHTTPHeaders: headers, cookies: [{ name: "a", value: "b" }] });
    let started = 0;
    for (const path of ["/a", "/b"]) {
      const url = site.page(path, "x");
      await load(loader, url, { onStarted: () => (started += 1) });
      expect(site.headersOf(path)).to.include({
        "x-mine": "1",
        "user-agent": "VendorBrowserRenderingCrawler/1.0",
        cookie: "a=b",
      });
    }
    expect(started).to.equal(2);
  });

  it("load() repeats a request whose reused connection the site just closed, once permitted", async () => {
    await using origin = await startTcpServer((socket) => {
      let served = 0;
      socket.on("data", () => {
        served += 1;
        if (served === 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        else socket.resetAndDestroy();
      });
    });
    const url = `http://127.0.0.2:${origin.port}/`;
    const loader = loaderOf({ url });
    const events: string[] = [];
    const watched = (isGranted: boolean) => ({
      onStarted: () => events.push("left"),
      oneMore: async () => {
        events.push("asked");
        return isGranted;
      },
    });
    expect(await load(loader, url, watched(true))).to.include({ kind: "page", status: 200 });
    expect(await load(loader, url, watched(true))).to.include({ kind: "page", status: 200 });
    expect(events.splice(0)).to.deep.equal(["left", "left", "asked", "left"]);
    const refused = await load(loader, url, watched(false));
    expect(refused).to.include({ kind: "failed", retry: true });
    expect(events).to.deep.equal(["left", "asked"]);
  });

  it("load() returns the body of an error page, and the pause that the host requests", async () => {
    const away = (answer: PageAnswer) => answer.kind === "page" && [answer.status, answer.awayMs];
    const page = (status: number, headers = {}) =>
      site.page(`/${status}`, (_, response) => response.writeHead(status, headers).end("<b>no"));
    const loader = loaderOf();
    expect(await load(loader, page(404))).to.deep.include({ status: 404, html: "<b>no" });
    expect(away(await load(loader, page(503)))).to.deep.equal([503, 0]);
    expect(away(await load(loader, page(429, { "Retry-After": "7" })))).to.deep.equal([429, 7_000]);
    const date = new Date(Date.now() + 60_000).toUTCString();
    const [, ms] = away(await load(loader, page(503, { "Retry-After": date }))) || [];
    expect(ms).to.be.within(1, 60_000);
  });

  it("load() reports a pause whatever the body is, and allows a retry", async () => {
    const [patient, hasty] = [loaderOf(), loaderOf({}, { fetchMs: 10_000 })];
    let pages = 0;
    const busy = (headers: Record<string, string>, status = 503, body: Uint8Array | string = "x") =>
      load(
        headers.Drips === undefined ? patient : hasty,
        site.page(`/busy-${++pages}`, (_, response) => {
          response.removeHeader("Content-Type");
          response.writeHead(status, { "Retry-After": "7", ...headers }).write(body);
          if (headers.Drips === undefined) response.end();
        }),
      );
    const image = { "Content-Type": "image/png" };
    const coded = { "Content-Encoding": "compress" };
    for (const answer of await Promise.all([
      busy(image),
      busy(image, 429),
      busy(coded),
      busy({}, 503, Buffer.alloc(8)),
      busy({ Drips: "1" }),
      busy({ "Content-Length": "100" }),
    ])) {
      expect(answer).to.include({ kind: "failed", retry: true, awayMs: 7_000 });
    }
    for (const [status, retry] of [
      [500, true],
      [404, false],
    ] as const) {
      const answer = await busy(image, status);
      expect(answer).to.include({ kind: "failed", retry }).and.not.have.property("awayMs");
    }
  }).timeout(60_000);

  it("load() follows no redirect, and returns its target", async () => {
    const to = (location: string, status = 302) =>
      site.page("/r", (_, response) => response.writeHead(status, { Location: location }).end());
    const loader = loaderOf();
    const answer = async (location: string, status?: number) => load(loader, to(location, status));
    expect(await answer("../x?y#z", 308)).to.deep.equal({
      ...{ kind: "redirect", to: `${site.url}/x?y`, status: 308, browserMs: 0 },
    });
    // Most servers send UTF-8.
    expect(await answer(Buffer.from("/é").toString("latin1"))).to.deep.include({
      to: `${site.url}/%C3%A9`,
    });
    const base = `${site.url}/`;
    const long = (chars: number) => base + "a".repeat(chars - base.length);
    expect(await answer(long(CRAWL_URL_CHARS_MAX))).to.have.property("kind", "redirect");
    for (const location of [long(CRAWL_URL_CHARS_MAX + 1), "http://[", "file:///etc/passwd"]) {
      const refused = await answer(location);
      expect(refused).to.include({ kind: "failed", retry: false, status: 302 });
      expect(refused).to.have.property("reason").that.includes("it redirects to");
    }
    expect(site.paths).to.satisfy((paths: string[]) => paths.every((path) => path === "/r"));
  });

  it("load() requests conditionally, and reports unmodified pages", async () => {
    const modifiedSince = Date.UTC(2026, 0, 1) / 1_000;
    const loader = loaderOf({ modifiedSince });
    const url = site.page("/a", (request, response) => {
      expect(request.headers["if-modified-since"]).to.equal("Thu, 01 Jan 2026 00:00:00 GMT");
      response.writeHead(304).end();
    });
    expect(await load(loader, url)).to.include({ kind: "unmodified", status: 304 });
    const dated = (date: string) =>
      site.page("/b", (_, response) => response.writeHead(200, { "Last-Modified": date }).end("x"));
    const older = { lastModifiedAt: modifiedSince * 1_000 - 1_000 };
    const before = dated("Wed, 31 Dec 2025 23:59:59 GMT");
    const ofSitemaps = loaderOf({ modifiedSince, source: "sitemaps" });
    expect(await load(ofSitemaps, before)).to.deep.include({ kind: "unmodified", ...older });
    const fresh = await load(ofSitemaps, dated("Thu, 01 Jan 2026 00:00:00 GMT"));
    expect(fresh).to.have.property("kind", "page");
    // Linked pages may be newer.
    const read = await load(loader, dated("Wed, 31 Dec 2025 23:59:59 GMT"));
    expect(read).to.deep.include({ kind: "page", html: "x", ...older });
    const picture = site.page("/c", (_, response) =>
      response
        .writeHead(200, { "Content-Type": "image/png", "Last-Modified": new Date(0).toUTCString() })
        .end("x"),
    );
    expect(await load(loader, picture)).to.include({ kind: "unmodified", status: 200 });
  });

  it("load() requests the start URL unconditionally", async () => {
    const url = site.page("/", "x");
    const loader = loaderOf({ modifiedSince: 1 });
    await load(loader, url, { isStart: true });
    expect(site.headersOf("/")).not.to.have.property("if-modified-since");
    await load(loader, url, { isStart: false });
    expect(site.headersOf("/")).to.have.property("if-modified-since");
  });

  it("load() keeps at most JOB_CONNECTIONS_MAX connections to hosts", async () => {
    const http = createServer((_, response) => response.end("x"));
    // The timeout outlasts the test, so no host closes a connection.
    http.keepAliveTimeout = 120_000;
    await using server = await listen(http, "0.0.0.0");
    const all = createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.0/8"] }) });
    const request = CrawlRequest.parse({ url: site.url, render: false });
    const loader = new HttpPageLoader({ guard: all, clock, request, fetchMs: CRAWL_FETCH_MS_MAX });
    open.push(loader);
    const visit = (host: number) => load(loader, `http://127.0.1.${host}:${server.port}/`);
    for (let host = 1; host <= JOB_CONNECTIONS_MAX; host++) await visit(host);
    expect(server.open()).to.equal(JOB_CONNECTIONS_MAX);
    for (let more = 1; more <= 3; more++) {
      expect(await visit(JOB_CONNECTIONS_MAX + more)).to.have.property("kind", "page");
      await until("one is let go of", () => server.open() === JOB_CONNECTIONS_MAX);
    }
  }).timeout(60_000);

  it("load() reports a download without reading it", async () => {
    const typed = (type: string) =>
      site.page("/t", (_, response) => {
        response.writeHead(200, { "Content-Type": type });
        // The body never ends, so only a loader that does not read it resolves.
        response.write("x");
      });
    const loader = loaderOf();
    for (const type of ["image/png", "application/pdf", "application/octet-stream", "video/mp4"]) {
      const answer = await load(loader, typed(type));
      expect(answer).to.deep.equal({
        ...{ kind: "download", status: 200, contentType: type, browserMs: 0 },
        reason: `its content type is "${type}", not text`,
      });
    }
    const bare = (body: Uint8Array) =>
      site.page("/n", (_, response) => {
        response.removeHeader("Content-Type");
        response.end(body);
      });
    expect(await load(loader, bare(Buffer.from("<p>x")))).to.have.property("kind", "page");
    const png = await load(
      loader,
      bare(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0])),
    );
    expect(png).to.have.property("reason").that.includes("not text");
    const coded = site.page("/c", (_, response) =>
      response.writeHead(200, { "Content-Encoding": "compress" }).end("x"),
    );
    expect(await load(loader, coded))
      .to.have.property("reason")
      .that.includes('"compress"');
  });

  it("load() truncates a body at CRAWL_BODY_BYTES_MAX, and closes its connection", async () => {
    const sized = (bytes: number) =>
      site.page("/s", (_, response) => response.end(Buffer.alloc(bytes, "x")));
    const loader = loaderOf();
    let large = 0;
    const onLarge = async () => {
      large += 1;
    };
    const whole = await load(loader, sized(CRAWL_BODY_BYTES_MAX), { onLarge });
    expect(whole).to.include({ kind: "page", truncated: false });
    const cut = await load(loader, sized(CRAWL_BODY_BYTES_MAX + 1), { onLarge });
    expect(cut).to.include({ kind: "page", truncated: true });
    expect(cut).to.have.property("html").with.length(CRAWL_BODY_BYTES_MAX);
    await load(loader, sized(LARGE_BODY_BYTES), { onLarge });
    expect(large).to.equal(2);

    let sent = 0;
    const endless = site.page("/endless", (_, response) => {
      response.once("close", () => (sent = -1));
      void pour(response, () => (sent += 1));
    });
    expect(await load(loader, endless)).to.include({ kind: "page", truncated: true });
    await until("the connection to be dropped", () => sent === -1);
  });

  it("load() truncates a gzip bomb", async () => {
    const bomb = gzipBomb();
    const url = site.page("/bomb", (_, response) =>
      response.writeHead(200, { "Content-Encoding": "gzip" }).end(bomb),
    );
    const before = peakBytes();
    const answer = await load(loaderOf(), url);
    expect(answer).to.include({ kind: "page", truncated: true });
    expect(peakBytes() - before).to.be.below(BOMB_BYTES / 2);
  });

  it("load() ends a slow, hanging or broken response, with a reason", async () => {
    const loader = loaderOf({}, { fetchMs: 300 });
    const drip = site.page("/drip", async (_, response) => {
      while (!response.destroyed) {
        response.write("x");
        await clock.wait(20);
      }
    });
    const late = { kind: "failed", retry: true, status: undefined, browserMs: 0 };
    const tooLong = { ...late, reason: "Cannot fetch the page: it took longer than 300 ms" };
    expect(await load(loader, drip)).to.deep.equal(tooLong);
    const hang = site.page("/hang", () => {});
    expect(await load(loader, hang)).to.deep.equal(tooLong);
    const short = site.page("/short", (_, response) => {
      response.writeHead(200, { "Content-Length": "100" }).write("x");
      response.socket?.end();
    });
    const patient = loaderOf();
    const broken = await load(patient, short);
    expect(broken).to.deep.include({
      ...late,
      reason: "Cannot fetch from 127.0.0.2: it closed the connection",
    });
    const corrupt = site.page("/corrupt", (_, response) =>
      response.writeHead(200, { "Content-Encoding": "gzip" }).end("no gzip"),
    );
    expect(await load(patient, corrupt)).to.include({ kind: "failed", retry: true });
    const cut = gzipSync(Buffer.alloc(100_000, "xy")).subarray(0, 50);
    const truncated = site.page("/cut", (_, response) =>
      response.writeHead(200, { "Content-Encoding": "gzip" }).end(cut),
    );
    expect(await load(patient, truncated)).to.include({ kind: "failed", retry: true });
  });

  it("load() stops its clock while it waits for room", async () => {
    const url = site.page("/s", (_, response) => response.end(Buffer.alloc(1_000_000, "x")));
    const time = new SkippingClock();
    const onLarge = async () => {
      await turn();
      time.skip(2 * CRAWL_FETCH_MS_MAX);
    };
    const answer = await load(loaderOf({}, { clock: time }), url, { onLarge });
    expect(answer).to.include({ kind: "page", truncated: false });
  });

  it("load() reports why a host is unreachable, and whether a retry makes sense", async () => {
    const loader = loaderOf();
    const closed = await startTcpServer(() => {});
    await closed.close();
    const refused = await load(loader, `http://127.0.0.2:${closed.port}/`);
    expect(refused).to.include({ kind: "failed", retry: true });
    const inside = await load(loader, "http://127.0.0.1:1/");
    expect(inside).to.include({ kind: "failed", retry: false });
    expect(inside).to.have.property("reason").that.includes("not one this service fetches");
    await using garbage = await startTcpServer((socket) => {
      socket.end("SSH-2.0-OpenSSH_9.2\r\n");
    });
    const spoke = await load(loader, `http://127.0.0.2:${garbage.port}/`);
    expect(spoke).to.include({ kind: "failed", status: undefined });
    const long = `${site.url}/${"a".repeat(100_000)}`;
    expect(await load(loader, long)).to.have.property("status", 431);
  });

  it("load() connects ahead, over a new connection or none, and its request leaves when it is due", async () => {
    const loader = loaderOf();
    const url = site.page("/", "<p>x");
    for (const _ of ["new", "kept"]) {
      const due = Promise.withResolvers<void>();
      let isAsked = false;
      const asked = load(loader, url, {
        due: () => {
          isAsked = true;
          return due.promise;
        },
      });
      await until("it has a connection", () => isAsked);
      const before = site.paths.length;
      await clock.wait(50);
      expect(site.paths).to.have.length(before);
      due.resolve();
      expect(await asked).to.include({ kind: "page" });
    }
    const { server } = site;
    expect(await new Promise((told) => server.getConnections((_, count) => told(count)))).to.equal(
      1,
    );
  });

  it("load() opens another connection, without another start time, if the first is closed before it is due", async () => {
    const sockets: Socket[] = [];
    await using origin = await startTcpServer((socket) => {
      sockets.push(socket);
      socket.on("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"));
    });
    const url = `http://127.0.0.2:${origin.port}/`;
    const loader = loaderOf({ url });
    await load(loader, url);
    let asked = 0;
    const answer = await load(loader, url, {
      async due() {
        asked += 1;
        if (asked > 1) return;
        const [kept] = sockets;
        kept?.destroy();
        await new Promise(() => {});
      },
      oneMore: () => expect.fail(),
    });
    expect(answer).to.include({ kind: "page", status: 200 });
    expect([asked, sockets.length]).to.deep.equal([2, 2]);
  });

  it("load() makes no request that is stopped at the moment when it could leave", async () => {
    const loader = loaderOf();
    const controller = new AbortController();
    const late = new Error("too late");
    const onStarting = () => controller.abort(late);
    const url = site.page("/late", "<p>x");
    const asked = load(loader, url, {
      signal: controller.signal,
      onStarting,
      onStarted: () => expect.fail(),
    });
    expect(await asked.catch((error) => error)).to.equal(late);
    // The next load follows the first; a request of the first would have arrived before it.
    await load(loader, site.page("/next", "<p>x"));
    expect(site.paths).not.to.include("/late");
  });

  it("load() ends when its caller's signal aborts", async () => {
    const url = site.page("/hang", () => {});
    const controller = new AbortController();
    const gone = new Error("gone");
    const loading = load(loaderOf(), url, {
      signal: controller.signal,
      onStarted: () => controller.abort(gone),
    });
    expect(await loading.catch((error: unknown) => error)).to.equal(gone);
    const before = load(loaderOf(), url, { signal: AbortSignal.abort(gone) });
    expect(await before.catch((error: unknown) => error)).to.equal(gone);
  });

  it("load() counts a request as left once it is written, over TLS too; a request cancelled before releases its connection", async () => {
    const certificate = selfSignedCertificate("open.test");
    const tls = createTlsServer(certificate, (_, response) => response.end("x"));
    await using server = await listen(tls, "127.0.0.2");
    const url = `https://open.test:${server.port}/`;
    const loader = loaderOf({ url }, { ca: certificate.cert });
    const controller = new AbortController();
    const early = load(loader, url, { signal: controller.signal, onStarted: () => expect.fail() });
    while (server.accepted() === 0) await turn();
    controller.abort(new Error("late"));
    expect(await early.catch((error: Error) => error.message)).to.equal("late");
    let started = 0;
    const answer = await load(loader, url, { onStarted: () => (started += 1) });
    expect(answer).to.deep.include({ kind: "page", html: "x" });
    expect(started).to.equal(1);
    await load(loader, url);
    expect(server.accepted()).to.be.at.most(2);
  });
});

/** Writes until the client disconnects. */
async function pour(response: ServerResponse, wrote: () => void): Promise<void> {
  const piece = Buffer.alloc(256 * 1024, "x");
  const closed = once(response, "close");
  while (!response.destroyed) {
    wrote();
    if (!response.write(piece)) {
      await Promise.race([once(response, "drain"), closed]);
    }
  }
}
