/**
 * Sites that try to keep a crawl running for ever or to fill its memory. The crawl ends, says why, and stays within
 * its limits.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SITEMAP_NESTING_MAX } from "../../actors/crawl/crawl-job/read-sitemaps.ts";
import { CRAWL_BODY_BYTES_MAX, CRAWL_REDIRECTS_MAX } from "../../schemas/crawl/limits.ts";
import { CrawlScene } from "../../scripts/testing/crawl-scene.ts";
import { HostileSites } from "../../scripts/testing/hostile-site.ts";
import { MemoryWatch } from "../../scripts/testing/memory-watch.ts";
import { childrenOf } from "../../scripts/testing/process-children.ts";
import { selfSignedCertificate } from "../../scripts/testing/self-signed-certificate.ts";

const MB = 1024 * 1024;
/** Timeout of a crawl, for a busy machine: 2,000 sitemaps took 42 s on two cores with a load of 12. */
const JOB_MS_MAX = 600_000;
/**
 * Maximum memory of a worker. Besides its own memory, a worker may hold LARGE_BODIES_MAX bodies, each with six times
 * the body's size.
 */
const WORKER_BYTES_MAX = 900 * MB;
const HOST_BYTES_MAX = 500 * MB;
const SLOW_CONNECT_MS = 2_000;

describe("crawl of a hostile site", function () {
  this.timeout(900_000);
  let folder: string;
  let scene: CrawlScene;
  let sites: HostileSites;
  let workers: MemoryWatch;
  let hosts: MemoryWatch;
  const certificate = selfSignedCertificate("localhost");

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "trunkline-hostile-"));
    const authority = join(folder, "ca.pem");
    await writeFile(authority, certificate.cert);
    sites = new HostileSites();
    scene = await CrawlScene.start({ environment: { NODE_EXTRA_CA_CERTS: authority } });
    workers = new MemoryWatch(scene.pidsOf("browser"));
    hosts = new MemoryWatch([...scene.pidsOf("actors"), ...scene.pidsOf("gateway")]);
  });

  after(async () => {
    workers[Symbol.dispose]();
    hosts[Symbol.dispose]();
    await scene[Symbol.asyncDispose]();
    await sites[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") console.log(scene.errorLines.slice(-20).join("\n"));
    const [worker, host] = [workers, hosts].map(({ peakBytes }) => Math.round(peakBytes / MB));
    console.log(`      at most ${worker} MB in the worker, ${host} MB in hosts and gateway`);
    expect(workers.peakBytes).to.be.below(WORKER_BYTES_MAX);
    expect(hosts.peakBytes).to.be.below(HOST_BYTES_MAX);
  });

  it("ends at its limit where every page leads to new ones", async () => {
    const { summary, records } = await crawl(await sites.endlessLinks(), { limit: 300 });
    expect(summary).to.deep.include({ status: "completed", total: 300, finished: 300 });
    expect(records.filter(({ status }) => status === "completed")).to.have.length(300);
  });

  it("ends after CRAWL_REDIRECTS_MAX redirects of an endless chain", async () => {
    const site = await sites.endlessRedirects();
    const { summary, records } = await crawl(site);
    expect(summary.status).to.equal("completed");
    expect(summary.messages.join()).to.include(`${SITEMAP_NESTING_MAX} levels`);
    expect(records).to.have.length(1);
    expect(records[0]?.reason).to.include(String(CRAWL_REDIRECTS_MAX));
  });

  it("truncates bodies of 10 GB, plain or compressed, and reports it", async () => {
    const { summary, records } = await crawl(await sites.hugeBodies());
    expect(summary.status).to.equal("completed");
    expect(records).to.have.length(3);
    for (const { url, status, metadata, html = "" } of records.slice(1)) {
      expect(status, url).to.equal("completed");
      expect(metadata?.truncated, url).to.equal(true);
      expect(html.length, url).to.be.within(CRAWL_BODY_BYTES_MAX - MB, CRAWL_BODY_BYTES_MAX);
    }
  });

  it("accepts bytes that are not text in any charset", async () => {
    const { summary, records } = await crawl(await sites.badEncodings(), {
      formats: ["html", "markdown"],
    });
    expect(summary.status).to.equal("completed");
    expect(records).to.have.length(5);
    for (const { url, status, html } of records) {
      expect(status, url).to.equal("completed");
      if (!url.endsWith("/utf16")) expect(html, url).to.include("<title>t</title>");
    }
  });

  it("ends if sitemaps list themselves and others endlessly", async () => {
    // In this crawl SITEMAP_NESTING_MAX ends the reading. If each sitemap listed many others, CRAWL_SITEMAPS_MAX
    // would end it.
    const site = await sites.endlessSitemaps(2);
    const { summary } = await crawl(site);
    expect(summary).to.deep.include({ status: "completed", total: 1 });
    console.log(`      it read ${site.paths.length - 2} sitemaps`);
    expect(new Set(site.paths).size).to.equal(site.paths.length);
  });

  it("skips links of 100 kB", async () => {
    const { summary, records } = await crawl(await sites.longAddresses(), { limit: 100 });
    expect(summary).to.deep.include({ status: "completed", total: 2 });
    expect(records.filter(({ status }) => status === "completed")).to.have.length(2);
  });

  it("reads the beginning of a robots.txt that never ends", async () => {
    const { summary } = await crawl(await sites.endlessRobots());
    expect(summary).to.deep.include({ status: "completed", total: 1 });
  });

  it("waits for a host whose connections take longer than a moment", async () => {
    const site = await sites.slowConnect(certificate, SLOW_CONNECT_MS);
    const { summary, records } = await crawl(site);
    expect(summary).to.deep.include({ status: "completed", total: 3 });
    expect(records.map(({ status }) => status)).to.deep.equal([
      "completed",
      "completed",
      "completed",
    ]);
    expect(site.paths.toSorted()).to.deep.equal(["/", "/a", "/b", "/robots.txt", "/sitemap.xml"]);
  });

  it("continues after slow pages", async () => {
    const { summary, records } = await crawl(await sites.slowDrip(), {
      // Omits sitemaps, because the crawl waits two minutes for a sitemap that arrives slowly.
      source: "links",
      render: true,
      gotoOptions: { timeout: 15_000 },
    });
    expect(summary).to.deep.include({ status: "completed", total: 2 });
    const [home, drip] = records;
    expect(home?.status).to.equal("completed");
    expect(drip?.status).to.equal("errored");
    expect(drip?.reason).to.include("took longer than 15000 ms");
  });

  it("continues after scripts that never end, open dialogs, grow or navigate away", async () => {
    const { summary, records } = await crawl(await sites.badScripts(), {
      render: true,
      gotoOptions: { timeout: 10_000 },
      actionTimeout: 10_000,
    });
    expect(summary.status).to.equal("completed");
    expect(records).to.have.length(7);
    const fine = records.find(({ url }) => url.endsWith("/fine"));
    expect(fine?.status).to.equal("completed");
    for (const { url, status, reason } of records) {
      expect(status, url).to.be.oneOf(["completed", "errored", "skipped"]);
      if (status !== "completed") expect(reason, url).to.be.a("string");
    }
  });

  it("continues after pages that crash their browser, and fails no other page", async () => {
    // Kills the browser that was started last. If a page is loaded in a separate browser, it is that one.
    const endBrowser = () => {
      const [latest] = scene.pidsOf("browser").flatMap(childrenOf).toReversed();
      if (latest !== undefined) process.kill(latest, "SIGKILL");
    };
    const { summary, records } = await crawl(await sites.browserKillers(endBrowser), {
      source: "links",
      render: true,
      gotoOptions: { timeout: 15_000 },
    });
    expect(summary).to.deep.include({ status: "completed", total: 9 });
    for (const { url, status, reason } of records) {
      const isKiller = url.includes("/kill/");
      expect(status, `${url}: ${reason}`).to.equal(isKiller ? "errored" : "completed");
      if (isKiller) expect(reason, url).to.match(/the browser ended|took longer/);
    }
  });

  async function crawl({ url }: { url: string }, request: object = {}) {
    const id = await scene.startCrawl({ url, render: false, limit: 50, maxAge: 0, ...request });
    const startedAt = performance.now();
    const summary = await scene.ended(id, JOB_MS_MAX);
    console.log(`      ended after ${Math.round(performance.now() - startedAt)} ms`);
    return { summary, records: await scene.records(id) };
  }
});
