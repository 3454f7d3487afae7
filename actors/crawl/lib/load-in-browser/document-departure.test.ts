import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createHttpsServer, type Server } from "node:https";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import {
  type LoopbackServer,
  listen,
  startHttpServer,
} from "../../../../scripts/testing/loopback-server.ts";
import { openPool } from "../../../../scripts/testing/printer.ts";
import { selfSignedCertificate } from "../../../../scripts/testing/self-signed-certificate.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { findChromium } from "../../../../scripts/tools.ts";
import type { BrowserPool } from "../../../rendering/lib/browser/browser-pool.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { pageLoad, type Watched } from "../../workers/crawl-page/testing/page-load.ts";
import { NotMade, TooLate } from "../departure/departure.ts";
import { BrowserPage } from "./browser-page.ts";
import { BrowserPageLoader } from "./browser-page-loader.ts";

const HELD_MS = 400;
/**
 * The keep-alive timeout of the test servers. Node's default of 5 s may end before the next request on a busy
 * machine.
 */
const KEPT_MS = 60_000;
type Answer = (request: IncomingMessage, response: ServerResponse) => void;
type Way = "http" | "https" | "http2";
const failure = (work: Promise<unknown>) => work.catch((error: unknown) => error);
const WAYS: Way[] = ["http", "https", "http2"];

describe("DocumentDeparture", function () {
  this.timeout(180_000);
  const certificate = selfSignedCertificate("a.test");
  const servers: LoopbackServer[] = [];
  const loaders: BrowserPageLoader[] = [];
  let folder: string;
  let pool: BrowserPool;
  /** Requested paths with their connections. */
  let seen: { path: string; at: number; socket: Socket; headers: IncomingMessage["headers"] }[] =
    [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-departure-"));
    // Browsers run as another user where we are root.
    await chmod(folder, 0o755);
    const executablePath = join(folder, "chromium");
    const script = `#!/bin/sh\nexec ${findChromium()} --ignore-certificate-errors "$@"\n`;
    await writeFile(executablePath, script, { mode: 0o755 });
    pool = openPool({ executablePath });
    await pool.start();
  });
  beforeEach(() => {
    seen = [];
  });
  afterEach(async () => {
    await Promise.all(loaders.splice(0).map((loader) => loader.close()));
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });
  after(async () => {
    await pool.close();
    await rm(folder, { recursive: true });
  });

  /** A site that delays each connection. */
  async function serve(way: Way, answer: Answer, heldMs = 0): Promise<string> {
    const see: Answer = (request, response) => {
      const { url: path = "", socket, headers } = request;
      seen.push({ path, at: clock.monotonic(), socket, headers });
      answer(request, response);
    };
    if (way === "http") {
      const server = await startHttpServer(see);
      server.server.keepAliveTimeout = KEPT_MS;
      servers.push(server);
      return `http://127.0.0.2:${server.port}`;
    }
    const secure =
      way === "https"
        ? createHttpsServer(certificate, see)
        : createSecureServer({ ...certificate, allowHTTP1: false }, see as never);
    if (way === "https") (secure as Server).keepAliveTimeout = KEPT_MS;
    const raw = createServer((socket) => {
      setTimeout(() => secure.emit("connection", socket), heldMs);
    });
    const server = await listen(raw, "127.0.0.2");
    servers.push(server);
    return `https://127.0.0.2:${server.port}`;
  }

  function load(url: string, watched: Watched = {}, request: object = {}) {
    const loader = new BrowserPageLoader({
      ...{ pool, clock, request: CrawlRequest.parse({ url, ...request }) },
    });
    loaders.push(loader);
    return loadBy(loader, url, watched);
  }

  const loadBy = (loader: BrowserPageLoader, url: string, watched: Watched = {}) =>
    loader.load(pageLoad(url, watched));

  const page: Answer = (_, response) => {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><p>x");
  };

  for (const way of WAYS) {
    it(`holds a request over ${way} until it is due, and does not count the wait as browser time`, async () => {
      const origin = await serve(way, page);
      const due = Promise.withResolvers<void>();
      let waiting = 0;
      const startedAt = clock.monotonic();
      const loading = load(`${origin}/due`, {
        due: async (aheadMs) => {
          if (aheadMs !== undefined) return;
          waiting += 1;
          await due.promise;
        },
      });
      await until("its moment is waited for", () => waiting === 1);
      await clock.wait(1_000);
      expect(seen).to.deep.equal([]);
      due.resolve();
      const answer = await loading;
      expect(answer).to.include({ kind: "page", status: 200 });
      const tookMs = clock.monotonic() - startedAt;
      // A timer may fire a little early.
      expect(tookMs - answer.browserMs).to.be.at.least(990);
      expect(seen.map(({ path }) => path)).to.deep.equal(["/due"]);
    });

    it(`reports the departure of a request over ${way} once, on a new and a reused connection`, async () => {
      const origin = await serve(way, page, HELD_MS);
      const loader = new BrowserPageLoader({
        ...{ pool, clock, request: CrawlRequest.parse({ url: origin }) },
      });
      loaders.push(loader);
      const heldMs = way === "http" ? 0 : HELD_MS;
      for (const [path, leastMs] of [
        ["/new", heldMs],
        ["/kept", 0],
      ] as const) {
        const told: string[] = [];
        let releasedAt = 0;
        let startedAt = 0;
        const answer = await loadBy(loader, origin + path, {
          onUnseen() {
            told.push("unseen");
            releasedAt = clock.monotonic();
          },
          onStarting: () => void told.push("starting"),
          onStarted() {
            told.push("started");
            startedAt = clock.monotonic();
          },
        });
        expect(answer.kind).to.equal("page");
        const unseen = way === "http" ? [] : ["unseen"];
        expect(told).to.deep.equal([...unseen, "starting", "started"]);
        if (way !== "http") expect(startedAt - releasedAt).to.be.at.least(leastMs - 1);
      }
      expect(seen.map(({ path }) => path)).to.deep.equal(["/new", "/kept"]);
      for (const { headers } of seen) expect(headers).not.to.have.property("x-trunkline-mark");
    });

    it(`stops a forbidden request over ${way} from leaving, also while it connects`, async () => {
      const origin = await serve(way, page, HELD_MS);
      const controller = new AbortController();
      let asked = 0;
      const failing = load(`${origin}/late`, {
        signal: controller.signal,
        mayLeave() {
          asked += 1;
          // The first two checks let the browser continue and, over https:, connect. The third check cancels the
          // request.
          if (asked > 2) controller.abort(new TooLate());
          return !controller.signal.aborted;
        },
      });
      expect(await failing.catch((error: unknown) => error)).to.be.instanceOf(TooLate);
      // A request that left would have arrived before this page.
      expect((await load(`${origin}/next`)).kind).to.equal("page");
      expect(seen.map(({ path }) => path)).to.deep.equal(["/next"]);
    });

    it(`requests one more start over ${way} if the site wants credentials, and accepts a refusal`, async () => {
      const closed: Answer = (request, response) => {
        response.setHeader("Content-Type", "text/html");
        if (request.headers.authorization !== undefined) return void response.end("<p>open");
        response.writeHead(401, { "WWW-Authenticate": 'Basic realm="a"' }).end("<p>closed");
      };
      const origin = await serve(way, closed);
      const request = { authenticate: { username: "a", password: "b" } };
      for (const isGranted of [true, false]) {
        const told: string[] = [];
        const answer = await load(
          `${origin}/`,
          {
            onStarted: () => void told.push("started"),
            async oneMore() {
              told.push("one more");
              return isGranted;
            },
          },
          request,
        );
        expect(answer).to.include({ kind: "page", status: isGranted ? 200 : 401 });
        const more = isGranted ? ["started"] : [];
        expect(told).to.deep.equal(["started", "one more", ...more]);
      }
      expect(seen).to.have.length(3);
    });
  }

  for (const way of WAYS) {
    it(`closes the connections over ${way} of a cancelled page, also if it hangs`, async () => {
      let isOpen = false;
      let html = "";
      const drip: Answer = (_, response) => {
        isOpen = true;
        response.once("close", () => {
          isOpen = false;
        });
        response.setHeader("Content-Type", "text/html");
        response.write(`<!doctype html>${html}${" ".repeat(10_000)}`);
      };
      const origin = await serve(way, drip);
      const loader = new BrowserPageLoader({
        ...{ pool, clock, request: CrawlRequest.parse({ url: origin }) },
        // The page would close with its context.
        limits: { idleMs: 600_000 },
      });
      loaders.push(loader);
      for (html of ["<p>drips", "<p>hangs<script>for (;;);</script>"]) {
        const turn = new AbortController();
        const loading = loadBy(loader, `${origin}/`, { signal: turn.signal });
        await until("it is asked for", () => isOpen, 60_000);
        // Waits until the endless script of the second page runs. The first page has no script; its response never
        // ends.
        await clock.wait(500);
        turn.abort(new Error("taken back"));
        expect(await failure(loading)).to.have.property("message", "taken back");
        await until("its connection is closed", () => !isOpen, 60_000);
      }
    });
  }

  it("does not resend on a closed connection: waits for another turn over http:, and fails over https:", async () => {
    for (const way of ["http", "https"] as const) {
      seen = [];
      // The server closes a kept connection when a second request arrives on it.
      const origin = await serve(way, ({ url, socket }, response) => {
        const isSecond = url === "/b" && seen.filter(({ path }) => path === "/b").length === 1;
        if (isSecond) socket.destroy();
        else page({} as IncomingMessage, response);
      });
      const loader = new BrowserPageLoader({
        ...{ pool, clock, request: CrawlRequest.parse({ url: origin }) },
      });
      loaders.push(loader);
      await loadBy(loader, `${origin}/a`);
      const told: string[] = [];
      const answer = await loadBy(loader, `${origin}/b`, {
        onStarted: () => void told.push("started"),
        async oneMore() {
          told.push("one more");
          return true;
        },
      });
      const isAsked = way === "http";
      // The connection of each request, for failure messages.
      const [first, second] = seen;
      const how = `${way}, kept: ${first?.socket === second?.socket}, ${JSON.stringify(answer)}`;
      expect(answer, how).to.include(isAsked ? { kind: "page" } : { kind: "failed", retry: true });
      expect(told, way).to.deep.equal(["started", ...(isAsked ? ["one more", "started"] : [])]);
      expect(seen.map(({ path }) => path)).to.deep.equal(["/a", "/b", ...(isAsked ? ["/b"] : [])]);
      expect(await loadBy(loader, `${origin}/c`), way).to.include({ kind: "page" });
    }
  });

  it("does not block tunnels of other pages after its own request failed, even before its page is reset", async () => {
    const origin = await serve("https", (request, response) => {
      if (request.url === "/cut") request.socket.destroy();
      else page(request, response);
    });
    const context = await pool.newContext(new AbortController().signal);
    try {
      const wants = () => true;
      const loaded = [];
      // No page is reset.
      for (const path of ["/cut", "/next"]) {
        const opened = await BrowserPage.open(context, { parameters: { url: origin }, clock });
        loaded.push(await opened.load(pageLoad(origin + path), { headers: {}, wants }));
      }
      expect(loaded.map(({ kind }) => kind)).to.deep.equal(["failed", "taken"]);
      expect(seen.map(({ path }) => path)).to.deep.equal(["/cut", "/next"]);
    } finally {
      context.release();
    }
  });

  it("lets no prefetch of a page leave", async () => {
    const rules = (kind: string) =>
      JSON.stringify({ [kind]: [{ urls: [`/${kind}`], eagerness: "immediate" }] });
    const origin = await serve("https", ({ url }, response) => {
      response.setHeader("Link", "</header>; rel=prefetch");
      response.setHeader("Speculation-Rules", '"/rules"');
      const isRules = url === "/rules";
      response.setHeader(
        "Content-Type",
        isRules ? "application/speculationrules+json" : "text/html",
      );
      if (isRules) return void response.end(rules("prefetch"));
      response.end(`<!doctype html><link rel=prefetch href=/link>
        <link rel=prefetch as=document href=/document>
        <link rel=prerender href=/old>
        <script type=speculationrules>${rules("prefetch")}</script>
        <script type=speculationrules>${rules("prerender")}</script>
        <script>addEventListener("load", () => fetch("/fetched").then(() => {
          document.body.append(Object.assign(document.createElement("b"), { id: "done" }));
        }))</script>`);
    });
    await load(`${origin}/`, {}, { waitForSelector: { selector: "#done" }, waitForTimeout: 500 });
    const paths = seen.map(({ path }) => path).filter((path) => path !== "/rules");
    expect(paths).to.deep.equal(["/", "/fetched"]);
  });

  it("truncates an endless document over https as any other", async () => {
    const origin = await serve("https", (_, response) => {
      response.setHeader("Content-Type", "text/html");
      const more = () => {
        while (response.write(`<p>${"x".repeat(60_000)}`));
      };
      response.on("drain", more);
      more();
    });
    const answer = await load(`${origin}/`, {}, { gotoOptions: { timeout: 60_000 } });
    expect(answer).to.include({ kind: "page", truncated: true });
  });

  it("fails a load that cannot start in time", async () => {
    const origin = await serve("http", page);
    const startBy = clock.monotonic();
    const late = await load(`${origin}/`, { startBy }).catch((error: unknown) => error);
    expect(late).to.be.instanceOf(NotMade);
    expect(seen).to.deep.equal([]);
    await until("contexts are made again", async () => (await load(`${origin}/`)).kind === "page");
  });

  it("reports why a host is unreachable, without an invented status", async () => {
    const free = await startHttpServer(() => {});
    await free.close();
    const cases = {
      [`http://127.0.0.2:${free.port}/`]: "it refused the connection",
      [`https://127.0.0.2:${free.port}/`]: "it refused the connection",
      "http://no-such-name.invalid/": "its name cannot be resolved",
      "https://no-such-name.invalid/": "its name cannot be resolved",
      "http://127.0.0.3/": "not one this service fetches",
      "https://127.0.0.3/": "not one this service fetches",
    };
    for (const [url, reason] of Object.entries(cases)) {
      const answer = await load(url);
      expect(answer, url).to.deep.include({ kind: "failed", status: undefined });
      expect(answer, url).to.have.property("reason").that.contains(reason);
    }
  });

  it("is not affected by a site that imitates our proxy", async () => {
    const forge: Answer = (_, response) => {
      response.writeHead(502, { "Content-Type": "text/html", "X-Trunkline-Egress": "refused" });
      response.end("<p>forged");
    };
    for (const way of ["http", "https"] as const) {
      const answer = await load(`${await serve(way, forge)}/`);
      expect(answer, way).to.include({ kind: "page", status: 502 });
    }
  });
});
