import { setImmediate as turn } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { Envelope, Input } from "../../../../schemas/contract.ts";
import type { crawlJob } from "../../../../schemas/crawl/crawl-job.ts";
import {
  CRAWL_URL_CHARS_MAX,
  REPORT_BYTES_MAX,
  SITEMAP_REPORT_URLS_MAX,
} from "../../../../schemas/crawl/limits.ts";
import { MESSAGE_BYTES_MAX } from "../../../../schemas/limits.ts";
import { SkippingClock } from "../../../../scripts/testing/skipping-clock.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { createAddressPolicy } from "../../../egress/address-policy.ts";
import { createEgressGuard } from "../../../egress/egress-guard.ts";
import { systemClock } from "../../../runtime/lib/clock.ts";
import { SITEMAP_URLS_MAX } from "../../lib/sitemap/sitemap.ts";
import {
  fetchSitemap,
  SITEMAP_ANSWER_MS_MAX,
  SITEMAP_FETCH_MS_MAX,
  type SitemapParts,
  type SitemapTask,
} from "./fetch-sitemap.ts";
import { departure } from "./testing/page-load.ts";

type Slice = Input<(typeof crawlJob.messages)["sitemapRead"]>;

const JOB = "a".repeat(32);
const TURN = "b".repeat(32);
const NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"';
const guard = createEgressGuard({ policy: createAddressPolicy({ allow: ["127.0.0.2/32"] }) });

const urlset = (urls: readonly string[]) =>
  `<urlset ${NAMESPACE}>${urls.map((url) => `<url><loc>${url}</loc></url>`).join("")}</urlset>`;
const numbered = (count: number) =>
  Array.from({ length: count }, (_, number) => `http://site.example/${number}`);

describe("fetchSitemap", function () {
  this.timeout(60_000);
  let site: WebSite;
  beforeEach(async () => {
    site = await WebSite.start();
  });
  afterEach(() => site[Symbol.asyncDispose]());

  /** Returns the messages to the job in order, and the result. */
  async function read(url: string, more: Partial<SitemapTask> & Partial<SitemapParts> = {}) {
    const { fetchMs, clock = systemClock, ...task } = more;
    const sent: Envelope[] = [];
    const { awayMs } = await fetchSitemap(
      { guard, clock, ...(fetchMs !== undefined && { fetchMs }) },
      {
        job: JOB,
        turn: TURN,
        request: { type: "sitemap", url, nesting: 2, attempt: 1 },
        headers: { "user-agent": "VendorBrowserRenderingCrawler/1.0" },
        departure: departure(),
        async send(envelope) {
          sent.push(envelope);
        },
        ...task,
      },
    );
    const slices = sent.map(({ input }) => input as Slice);
    return { awayMs, slices, sent, end: slices.at(-1)?.end };
  }
  const serve = (status: number, headers: Record<string, string> = {}, body = "") =>
    site.page("/sitemap.xml", (_, response) => response.writeHead(status, headers).end(body));

  it("reports a sitemap's addresses with dates and priorities, and its end", async () => {
    const text = `<urlset ${NAMESPACE}><url><loc>http://site.example/a</loc>
      <lastmod>2026-11-20T12:00:00Z</lastmod><priority>0.7</priority></url>
      <url><loc>http://site.example/b</loc></url></urlset>`;
    const { sent, slices, awayMs } = await read(site.page("/sitemap.xml", text));
    const [first] = sent;
    expect([first?.kind, first?.key, first?.message]).to.deep.equal([
      "crawl-job",
      JOB,
      "sitemapRead",
    ]);
    expect(slices).to.deep.equal([
      {
        turn: TURN,
        url: `${site.url}/sitemap.xml`,
        nesting: 2,
        urls: [
          {
            url: "http://site.example/a",
            lastModifiedAt: Date.UTC(2026, 10, 20, 12),
            priority: 0.7,
          },
          { url: "http://site.example/b" },
        ],
        nested: [],
        end: { retry: false },
      },
    ]);
    expect(awayMs).to.equal(undefined);
    expect(site.headersOf("/sitemap.xml")).to.include({
      "user-agent": "VendorBrowserRenderingCrawler/1.0",
    });
  });

  it("sends at most SITEMAP_REPORT_URLS_MAX addresses in a message, and the end in the last one", async () => {
    for (const [count, sizes] of [
      [SITEMAP_REPORT_URLS_MAX, [SITEMAP_REPORT_URLS_MAX]],
      [SITEMAP_REPORT_URLS_MAX + 1, [SITEMAP_REPORT_URLS_MAX, 1]],
    ] as const) {
      const { slices } = await read(site.page("/sitemap.xml", urlset(numbered(count))));
      expect(slices.map(({ urls }) => urls.length)).to.deep.equal(sizes);
      expect(slices.flatMap(({ urls }) => urls.map(({ url }) => url))).to.deep.equal(
        numbered(count),
      );
      expect(slices.map(({ end }) => end !== undefined)).to.deep.equal(
        sizes.map((_, index) => index === sizes.length - 1),
      );
    }
  });

  it("sends no message that is too large, however long the addresses are", async () => {
    const long = (number: number) =>
      `http://site.example/${number}/`.padEnd(CRAWL_URL_CHARS_MAX, "a");
    const urls = Array.from({ length: SITEMAP_REPORT_URLS_MAX }, (_, number) => long(number));
    const { sent, slices } = await read(site.page("/sitemap.xml", urlset(urls)));
    expect(slices.flatMap((slice) => slice.urls)).to.have.length(urls.length);
    for (const { input } of sent) {
      expect(JSON.stringify(input).length).to.be.below(MESSAGE_BYTES_MAX);
    }
    expect(slices.length).to.equal(
      Math.ceil((urls.length * (CRAWL_URL_CHARS_MAX + 100)) / REPORT_BYTES_MAX),
    );
  });

  it("reports the first SITEMAP_URLS_MAX addresses, and that there are more", async () => {
    for (const [count, failed] of [
      [SITEMAP_URLS_MAX, undefined],
      [SITEMAP_URLS_MAX + 1, /larger than a sitemap may be; its first 50000 entries count/],
    ] as const) {
      const { slices, end } = await read(site.page("/sitemap.xml", urlset(numbered(count))));
      expect(slices.flatMap(({ urls }) => urls)).to.have.length(SITEMAP_URLS_MAX);
      if (failed === undefined) expect(end).to.deep.equal({ retry: false });
      else expect(end?.failed).to.match(failed);
      expect(end?.retry).to.equal(false);
    }
  });

  it("treats the sitemaps of an index and the target of a redirect as nested sitemaps", async () => {
    const index = `<sitemapindex ${NAMESPACE}><sitemap><loc>http://site.example/1.xml</loc></sitemap></sitemapindex>`;
    const { slices } = await read(site.page("/sitemap.xml", index));
    expect(slices.map(({ urls, nested }) => [urls, nested])).to.deep.equal([
      [[], [{ url: "http://site.example/1.xml" }]],
    ]);
    const moved = await read(serve(301, { Location: "/other.xml" }));
    expect(moved.slices).to.have.length(1);
    expect(moved.slices[0]).to.deep.include({
      urls: [],
      nested: [{ url: `${site.url}/other.xml` }],
      end: { retry: false },
    });
    expect(site.paths).not.to.include("/other.xml");
    const nowhere = await read(serve(302, { Location: "data:,x" }));
    expect(nowhere.end?.failed).to.contain('it redirects to "data:,x", which is no address');
    expect(nowhere.end?.retry).to.equal(false);
  });

  it("decompresses a file", async () => {
    const url = site.page("/sitemap.xml.gz", (_, response) =>
      response
        .writeHead(200, { "Content-Type": "application/gzip" })
        .end(gzipSync(urlset(numbered(3)))),
    );
    const { slices } = await read(url);
    expect(slices.flatMap(({ urls }) => urls)).to.have.length(3);
  });

  it("reports why there is no sitemap, and whether a retry makes sense", async () => {
    for (const [status, retry] of [
      [404, false],
      [410, false],
      [500, true],
    ] as const) {
      const { end, awayMs } = await read(serve(status));
      expect(end).to.deep.equal({
        failed: `Cannot read the sitemap: the server answered with status ${status}`,
        retry,
      });
      expect(awayMs).to.equal(undefined);
    }
    const busy = await read(serve(503, { "Retry-After": "7" }));
    expect([busy.end?.retry, busy.awayMs]).to.deep.equal([true, 7_000]);
    const none = await read(site.page("/sitemap.xml", "<p>Nothing here"));
    expect(none.end).to.deep.equal({
      failed: "Cannot read the sitemap: the file is not a sitemap",
      retry: false,
    });
    const broken = await read(
      site.page("/sitemap.xml", urlset(numbered(2)).replace("</urlset>", "<url>")),
    );
    expect(broken.end?.failed).to.contain("it breaks off or is not well-formed; its first 2");
    const refused = await read("http://127.0.0.3:9/sitemap.xml");
    expect(refused.end?.retry).to.equal(false);
    const { url } = site;
    await site[Symbol.asyncDispose]();
    const gone = await read(`${url}/sitemap.xml`);
    expect(gone.end?.retry).to.equal(true);
    site = await WebSite.start();
  });

  it("reports the number of entries without an address, and keeps the others", async () => {
    const good = numbered(2);
    const { end, slices } = await read(
      site.page("/sitemap.xml", urlset([...good, "mailto:a@b.example", "http://"])),
    );
    expect(slices.flatMap(({ urls }) => urls)).to.have.length(good.length);
    expect(end).to.deep.equal({
      failed: "Cannot read the sitemap: 2 of its entries have no address that could be fetched",
      retry: false,
    });
  });

  it("does not count the time of our own store", async () => {
    const all = site.page("/sitemap.xml", urlset(numbered(3 * SITEMAP_REPORT_URLS_MAX)));
    const sent: Envelope[] = [];
    const time = new SkippingClock();
    await read(all, {
      clock: time,
      async send(envelope) {
        await turn();
        time.skip(SITEMAP_FETCH_MS_MAX);
        sent.push(envelope);
      },
    });
    expect(sent.map(({ input }) => (input as Slice).end)).to.deep.equal([
      undefined,
      undefined,
      { retry: false },
    ]);
  });

  it("waits SITEMAP_ANSWER_MS_MAX for a response, and allows a retry", async () => {
    const time = new SkippingClock();
    const reading = read(
      site.page("/silent.xml", () => {}),
      { clock: time },
    );
    await until("it waits", () => time.isAwaited(SITEMAP_ANSWER_MS_MAX));
    time.skip(SITEMAP_ANSWER_MS_MAX);
    expect((await reading).end).to.deep.equal({
      failed: `Cannot read the sitemap: the server did not answer in ${SITEMAP_ANSWER_MS_MAX} ms`,
      retry: true,
    });
  });

  it("reads a slow file for SITEMAP_FETCH_MS_MAX, keeps its entries, and allows no retry", async () => {
    const time = new SkippingClock();
    const all = numbered(SITEMAP_REPORT_URLS_MAX + 1);
    const url = site.page("/slow.xml", (_, response) => {
      response.writeHead(200).write(urlset(all).replace("</urlset>", ""));
    });
    const sent: Slice[] = [];
    await read(url, {
      clock: time,
      async send({ input }) {
        sent.push(input as Slice);
        // The timeout pauses during this call. So the clock skips after it.
        setImmediate(() => time.skip(SITEMAP_FETCH_MS_MAX));
      },
    });
    expect(sent.flatMap(({ urls }) => urls.map((found) => found.url))).to.deep.equal(all);
    const reason = `it took longer than ${SITEMAP_FETCH_MS_MAX} ms; its first ${all.length} entries count`;
    expect(sent.at(-1)?.end).to.deep.equal({
      failed: `Cannot read the sitemap: ${reason}`,
      retry: false,
    });
  });

  it("reports before its request leaves, and after", async () => {
    const told: string[] = [];
    const url = site.page("/sitemap.xml", urlset([]));
    await read(url, {
      departure: departure({
        due: async () => void told.push("due"),
        onStarting: () => void told.push(`starting ${site.paths.length}`),
        onStarted: () => void told.push("started"),
      }),
    });
    expect(told).to.deep.equal(["due", "starting 0", "started"]);
  });

  it("ends with its signal's reason, and reports nothing to the job", async () => {
    const away = new AbortController();
    const hangs = site.page("/sitemap.xml", () => {});
    const sent: Envelope[] = [];
    const reason = new Error("the worker stops");
    const reading = read(hangs, {
      departure: departure({ signal: away.signal }),
      async send(envelope) {
        sent.push(envelope);
      },
    }).catch((error: unknown) => error);
    await until("it is asked for", () => site.paths.includes("/sitemap.xml"));
    away.abort(reason);
    expect(await reading).to.equal(reason);
    expect(sent).to.deep.equal([]);
  });

  it("ends with the error if the job cannot be notified", async () => {
    const url = site.page("/sitemap.xml", urlset(numbered(SITEMAP_REPORT_URLS_MAX + 1)));
    const fault = new Error("the bus is away");
    const error = await read(url, { send: () => Promise.reject(fault) }).catch((thrown) => thrown);
    expect(error).to.equal(fault);
  });
});
