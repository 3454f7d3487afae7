import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import type { TurnRequest } from "../../../../schemas/crawl/crawl-page.ts";
import { ActorError } from "../../../../schemas/errors.ts";
import { type Arrival, Arrivals } from "../../../../scripts/testing/arrivals.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { CrawlWorld, type Fetched } from "./testing/crawl-world.ts";

const page = (url: string, index = 0): TurnRequest => ({ type: "page", index, url, attempt: 1 });
const sitemap = (url: string): TurnRequest => ({ type: "sitemap", url, nesting: 0, attempt: 1 });
const AT_ONCE = "User-agent: *\nCrawl-delay: 0\n";

describe("crawl-page", function () {
  this.timeout(240_000);
  let world: CrawlWorld;
  let site: WebSite;
  before(async () => {
    world = await CrawlWorld.start();
  });
  after(() => world[Symbol.asyncDispose]());
  beforeEach(async () => {
    site = await WebSite.start();
    site.page("/robots.txt", AT_ONCE);
  });
  afterEach(() => site[Symbol.asyncDispose]());

  /** Outcomes of these pages of the site. */
  async function crawled(request: object, urls: readonly string[]): Promise<PageOutcome[]> {
    const requests = urls.map((url, index) => page(url, index));
    const job = await world.crawl({ url: site.url, ...request }, requests);
    return world.outcomes(job, urls.length);
  }

  it("fetchTurn() stores a page in its formats, with its metadata and links", async () => {
    const url = site.page(
      "/a",
      `<title>T</title><h1>H</h1><a href="/b?x#y">b</a> <a rel=nofollow href=/c>c</a>`,
    );
    const [outcome] = await crawled({ formats: ["html", "markdown"] }, [url]);
    expect(outcome).to.deep.include({
      ...{ kind: "fetched", index: 0, links: [`${site.url}/b?x`], browserMs: 0 },
      metadata: { status: 200, title: "T", url, contentType: "text/html; charset=utf-8" },
    });
    const record = await world.record(outcome);
    expect(record.html).to.include("<h1>H</h1>");
    expect(record.markdown).to.include(`# H\n\n[b](${site.url}/b?x#y)`);
    expect(site.headersOf("/a")["user-agent"]).to.equal("VendorBrowserRenderingCrawler/1.0");
  });

  it("fetchTurn() reports each page once, and sends no end for a reported turn", async () => {
    const urls = Array.from({ length: 40 }, (_, index) => site.page(`/${index}`, `<p>${index}`));
    const job = await world.crawl(
      { url: site.url },
      urls.map((url, index) => page(url, index)),
    );
    const outcomes = await world.outcomes(job, urls.length);
    await world.idle();
    expect(outcomes.map(({ index }) => index)).to.deep.equal(urls.map((_, index) => index));
    for (const index of [0, 17, 39]) {
      expect(await world.record(outcomes[index])).to.deep.equal({ html: `<p>${index}` });
    }
    expect(world.messages(job)).not.to.include("turnEnded");
    expect(new Set(site.paths).size).to.equal(site.paths.length);
  });

  it("fetchTurn() returns pages whose report the job refuses", async () => {
    const url = site.page("/refused", "<p>a");
    const hear = world.hear.bind(world);
    let refused = 0;
    world.hear = (job, message, input) => {
      if (message !== "turnReported" || refused === 2) return hear(job, message, input);
      refused += 1;
      throw new ActorError("limit_reached", "Cannot take it");
    };
    try {
      const job = await world.crawl({ url: site.url }, [page(url, 0)]);
      const [outcome] = await world.outcomes(job, 1);
      expect(outcome).to.include({ kind: "fetched", index: 0 });
      // The job refused the report twice: as a call and as mail. Then the turn ended, and the page was fetched again.
      expect(refused).to.equal(2);
      expect(world.messages(job)).to.include("turnEnded");
    } finally {
      world.hear = hear;
    }
  });

  it("fetchTurn() follows no links of pages that forbid it, nor of errors, nor where only sitemaps count", async () => {
    const link = "<a href=/x>x</a>";
    const meta = site.page("/meta", `<meta name=robots content=nofollow>${link}`);
    const header = site.page("/header", (_, response) =>
      response.writeHead(200, { "X-Robots-Tag": "none" }).end(link),
    );
    const error = site.page("/error", (_, response) => response.writeHead(410).end(link));
    const plain = site.page("/plain", (_, response) =>
      response.writeHead(200, { "Content-Type": "text/plain" }).end(link),
    );
    const fine = site.page("/fine", link);
    const links = (outcomes: PageOutcome[]) => outcomes.map((one) => (one as Fetched).links);
    const outcomes = await crawled({}, [meta, header, error, plain, fine]);
    expect(links(outcomes)).to.deep.equal([[], [], [], [], [`${site.url}/x`]]);
    expect(outcomes[2]).to.deep.include({ reason: "The server answered with status 410" });
    expect(outcomes[2]).to.have.nested.property("metadata.status", 410);
    expect(await world.record(outcomes[2])).to.deep.equal({ html: link });
    expect(links(await crawled({ source: "sitemaps" }, [fine]))).to.deep.equal([[]]);
  });

  it("fetchTurn() reports redirects, failures, unmodified pages and disallowed pages", async () => {
    site.page("/robots.txt", `${AT_ONCE}Disallow: /secret\n`);
    const redirect = site.page("/r", (_, response) =>
      response.writeHead(301, { Location: "/r" }).end(),
    );
    const image = site.page("/i", (_, response) =>
      response.writeHead(200, { "Content-Type": "image/png" }).end("x"),
    );
    const old = site.page("/old", (_, response) => response.writeHead(304).end());
    const secret = site.page("/secret/x", "x");
    const outcomes = await crawled({ modifiedSince: 1_767_225_600 }, [
      redirect,
      image,
      old,
      secret,
    ]);
    expect(outcomes[0]).to.deep.equal({
      ...{ kind: "redirected", index: 0, to: redirect, status: 301, browserMs: 0 },
    });
    expect(outcomes[1]).to.include({ kind: "skipped", index: 1 });
    expect(outcomes[1]).to.have.nested.property("metadata.status", 200);
    expect(outcomes[2]).to.deep.include({
      ...{ kind: "skipped", index: 2 },
      reason: "The server says it was not modified since 2026-01-01T00:00:00.000Z",
    });
    expect(outcomes[3]).to.deep.include({ kind: "disallowed", index: 3 });
    expect(outcomes[3]).to.have.property("reason").that.includes("Disallow: /secret");
    expect(site.paths).not.to.include("/secret/x");
  });

  it("fetchTurn() stops when a host requests a pause, keeps the response, and notifies the site", async () => {
    let busy = true;
    const url = site.page("/busy", (_, response) =>
      busy ? response.writeHead(503, { "Retry-After": "1" }).end("<p>busy") : response.end("free"),
    );
    const started = performance.now();
    const [outcome] = await crawled({}, [url]);
    expect(outcome).to.deep.include({
      ...{ kind: "failed", retry: true, reason: "The server answered with status 503" },
    });
    expect(await world.record(outcome)).to.deep.equal({ html: "<p>busy" });
    busy = false;
    const [next] = await crawled({}, [url]);
    expect(next).to.have.property("kind", "fetched");
    expect(performance.now() - started).to.be.at.least(1_000);
  });

  it("fetchTurn() uses a cached page of the account if all options that affect the page are equal", async () => {
    let made = 0;
    const url = site.page("/c", (_, response) => response.end(`<a href=/x>${++made}</a>`));
    const kept = { maxAge: 100, formats: ["html"] };
    const [fresh] = await crawled({ maxAge: 0 }, [url]);
    expect(await world.record(fresh)).to.deep.equal({ html: "<a href=/x>1</a>" });
    // A page is written to the cache while its report is sent, so its entry may appear after the outcome.
    const cached = await until("a page from the cache", async () => {
      const [outcome] = await crawled(kept, [url]);
      return (outcome as Fetched).metadata.cachedAt !== undefined && (outcome as Fetched);
    });
    const seen = made;
    expect(await world.record(cached))
      .to.have.property("html")
      .that.matches(/^<a href=.x>\d/);
    expect(cached.links).to.deep.equal([`${site.url}/x`]);
    expect(cached.blobs[0]?.name).not.to.equal((fresh as Fetched).blobs[0]?.name);
    for (const other of [
      { maxAge: 0 },
      { ...kept, formats: ["html", "markdown"] },
      { ...kept, crawlPurposes: ["search"] },
      { ...kept, setExtraHTTPHeaders: { "X-A": "1" } },
      { ...kept, cookies: [{ name: "a", value: "b" }] },
    ]) {
      const [outcome] = await crawled(other, [url]);
      expect((outcome as Fetched).metadata, JSON.stringify(other)).not.to.have.property("cachedAt");
    }
    expect(made).to.equal(seen + 5);
    const [again] = await crawled({ ...kept, limit: 77, depth: 1 }, [url]);
    expect((again as Fetched).metadata).to.have.property("cachedAt");
    expect(made).to.equal(seen + 5);
  });

  it("fetchTurn() stores the text for a model", async () => {
    const url = site.page("/j", "<h1>H</h1>");
    const jsonOptions = { prompt: "x" };
    const [alone] = await crawled({ formats: ["json"], jsonOptions }, [url]);
    expect(alone).to.deep.include({ kind: "fetched", blobs: [] });
    const source = (alone as Fetched).jsonSource ?? "";
    expect(await world.members(source)).to.deep.equal({ markdown: "# H\n" });
    const [beside] = await crawled({ formats: ["html", "json"], jsonOptions }, [url]);
    const { blobs, jsonSource } = beside as Fetched;
    expect(jsonSource).to.equal(blobs[0]?.name);
  });

  it("fetchTurn() reports a sitemap in slices; a redirect counts as an index", async () => {
    const urls = Array.from({ length: 450 }, (_, index) => `<url><loc>/p${index}</loc></url>`);
    const map = `<urlset>${urls.join("")}</urlset>`;
    const all = site.page("/map.xml.gz", (_, response) => response.end(gzipSync(map)));
    const moved = site.page("/moved.xml", (_, response) =>
      response.writeHead(302, { Location: "/map.xml.gz" }).end(),
    );
    const none = site.page("/none.xml", (_, response) => response.writeHead(404).end());
    const broken = site.page("/broken.xml", "<html>no sitemap");
    const index = site.page("/index.xml", `<sitemapindex><sitemap><loc>${all}</loc></sitemap>`);
    const addresses = [all, moved, none, broken, index];
    const job = await world.crawl({ url: site.url }, addresses.map(sitemap));
    await world.told(job, "turnEnded");
    const read = (url: string) =>
      world.heard
        .filter((one) => one.job === job && one.message === "sitemapRead" && one.input.url === url)
        .map(({ input }) => input);
    const slices = read(all);
    expect(slices.map((slice) => slice.urls.length)).to.deep.equal([200, 200, 50]);
    expect(slices.map(({ end }) => end)).to.deep.equal([undefined, undefined, { retry: false }]);
    expect(slices[2].urls[49]).to.deep.equal({ url: `${site.url}/p449` });
    const [redirected] = read(moved);
    expect(redirected).to.deep.include({ nested: [{ url: all }], end: { retry: false } });
    expect(read(none)[0].end).to.deep.equal({
      ...{ failed: "Cannot read the sitemap: the server answered with status 404", retry: false },
    });
    expect(read(broken)[0].end.failed).to.equal(
      "Cannot read the sitemap: the file is not a sitemap",
    );
    expect(read(index)[0].nested).to.deep.equal([{ url: all }]);
  });

  it("keeps the delay between requests to a host, robots.txt and its redirects included", async () => {
    using arrivals = new Arrivals();
    const seen: Arrival[] = [];
    site.server.on("request", () => seen.push(arrivals.seen()));
    site.page("/robots.txt", (_, response) =>
      response.writeHead(302, { Location: "/robots2.txt" }).end(),
    );
    site.page("/robots2.txt", "User-agent: *\nCrawl-delay: 0.1\n");
    const urls = Array.from({ length: 5 }, (_, index) => site.page(`/${index}`, "x"));
    await crawled({}, urls);
    const gaps = seen.slice(1).map(({ at }, index) => at - (seen[index]?.since ?? 0));
    expect(gaps).to.have.length(6);
    // The default delay applies until the robots.txt is known, then the delay of 0.1 s. The upper bound checks only
    // the shortest gap, because a busy machine may send some requests late.
    for (const gap of gaps.slice(1)) expect(gap).to.be.at.least(98);
    expect(Math.min(...gaps.slice(1))).to.be.below(495);
    expect(gaps[0]).to.be.at.least(498);
  });

  it("robots() follows redirects to other hosts, in turns of those hosts", async () => {
    await using other = await WebSite.start("127.0.0.3");
    site.page("/robots.txt", (_, response) =>
      response.writeHead(301, { Location: `${other.url}/robots.txt` }).end(),
    );
    other.page("/robots.txt", `${AT_ONCE}Disallow: /x\nSitemap: /map.xml`);
    const [outcome] = await crawled({}, [site.page("/x", "x")]);
    expect(outcome).to.have.property("kind", "disallowed");
    expect(other.headersOf("/robots.txt")["user-agent"]).to.equal(
      "VendorBrowserRenderingCrawler/1.0",
    );
  });

  it("robots() tries a site three times, and then disallows all", async () => {
    let tries = 0;
    site.page("/robots.txt", (_, response) => {
      tries += 1;
      response.writeHead(500).end();
    });
    const [outcome] = await crawled({}, [site.page("/x", "x")]);
    expect(outcome).to.deep.include({
      ...{ kind: "disallowed", reason: "robots.txt cannot be read: it answered 500" },
    });
    expect(tries).to.equal(3);
    expect(site.paths).not.to.include("/x");
  });

  it("robots() reads the file in every 2xx response", async () => {
    site.page("/robots.txt", (_, response) =>
      response.writeHead(203).end(`${AT_ONCE}Disallow: /x`),
    );
    const [outcome] = await crawled({}, [site.page("/x", "x")]);
    expect(outcome).to.deep.include({
      kind: "disallowed",
      reason: "robots.txt line 3: Disallow: /x",
    });
  });

  it("robots() ends endless redirects, and reads no more of a file than it needs", async () => {
    let hops = 0;
    site.page("/robots.txt", (_, response) =>
      response.writeHead(302, { Location: `/robots.txt?${++hops}` }).end(),
    );
    const [outcome] = await crawled({}, [site.page("/x", "x")]);
    expect(outcome).to.have.property("kind", "fetched");
    expect(hops).to.equal(6);
    await using endless = await WebSite.start("127.0.0.4");
    endless.page("/robots.txt", (_, response) => {
      response.write(AT_ONCE);
      const pour = () => {
        while (!response.destroyed && response.write("# more\n".repeat(10_000)));
      };
      response.on("drain", pour);
      pour();
    });
    const job = await world.crawl({ url: endless.url }, [page(endless.page("/x", "x"))]);
    expect((await world.outcomes(job, 1))[0]).to.have.property("kind", "fetched");
  });

  it("purge() removes everything that a job stored", async () => {
    const [outcome] = await crawled({}, [site.page("/x", "x")]);
    const name = (outcome as Fetched).blobs[0]?.name ?? "";
    const job = name.split(".")[1] ?? "";
    expect(await world.blobs.has(name)).to.equal(true);
    await world.purge(job);
    await until("the blobs to go", async () => !(await world.blobs.has(name)));
    expect(await world.blobs.has(`crawl.${job}.request`)).to.equal(false);
  });
});
