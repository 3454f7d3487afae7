import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { crawlJob } from "../../schemas/crawl/crawl-job.ts";
import { CrawlRequest } from "../../schemas/crawl/http/crawl.ts";
import { CRAWL_KEPT_MS } from "../../schemas/crawl/limits.ts";
import type { ActorError } from "../../schemas/errors.ts";
import { STREAMS } from "../../schemas/subjects.ts";
import { refusalOf } from "../../scripts/testing/refusal.ts";
import { until } from "../../scripts/testing/until.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";
import { crawlBus } from "../testing/crawl-bus.ts";
import { startCrawl } from "./start-crawl.ts";

const BYTES_MAX = 1_000_000;
const FIRST = "a".repeat(32);
const OTHER = "b".repeat(32);
const { signal } = new AbortController();

/** Starts a site whose home page links to this many pages, each about 30 kB in the store. */
async function siteOf(pages: number): Promise<WebSite> {
  const site = await WebSite.start();
  site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
  const paths = Array.from({ length: pages }, (_, index) => `/${index}`);
  site.page("/", paths.map((path) => `<a href="${path}">x</a>`).join(""));
  for (const path of paths) site.page(path, `<p>${randomBytes(30_000).toString("hex")}`);
  return site;
}

describe("bytes of an account's crawls, on the bus", function () {
  this.timeout(180_000);
  let bus: Awaited<ReturnType<typeof crawlBus>>;
  before(async () => {
    bus = await crawlBus();
  });
  after(() => bus?.stop());

  const start = (account: string, url: string, limit: number, more: object = {}) => {
    const starting = { ...bus, crawlBytesMax: () => BYTES_MAX, browserMsPerDay: 0 };
    const request = CrawlRequest.parse({ url, limit, render: false, maxAge: 0, ...more });
    const parts = { ...starting, hasModel: false, now: Date.now };
    return startCrawl(parts, account, request, signal);
  };
  const ended = (account: string, job: string) =>
    until(
      "the end of the crawl",
      async () => {
        const summary = await bus.actors.call(crawlJob, job, "get", { account });
        return summary.status !== "running" && summary;
      },
      90_000,
    );
  const streamBytes = async () => (await bus.bus.jetstream.streams.info(STREAMS.crawl)).state.bytes;

  it("a crawl ends at the limit of its account, and other accounts crawl", async () => {
    await using site = await siteOf(300);
    await using small = await siteOf(20);
    const before = await streamBytes();
    const job = await start(FIRST, `${site.url}/`, 301);
    const { status, messages, finished } = await ended(FIRST, job);
    expect([status, messages.length]).to.deep.equal(["cancelled_due_to_limits", 1]);
    expect(messages[0]).to.match(
      /^The crawl was stopped: the account's crawls store \d+ bytes and may store 1000000 /,
    );
    expect(finished).to.be.within(20, 300);

    const refused = () =>
      start(FIRST, `${small.url}/`, 1).then(
        () => undefined,
        (error: ActorError) => error,
      );
    const { endedAt = 0 } = await ended(FIRST, job);
    const removedAt = new Date(endedAt + CRAWL_KEPT_MS).toISOString();
    // The list hears of the end by mail.
    await until("the refusal says when there is room", async () => {
      const { code, message } = (await refused()) ?? {};
      return code === "storage_full" && message?.endsWith(`are removed on ${removedAt}`);
    });
    // The request is removed, and the last pages are reported, soon after the end.
    await until("the counted bytes are those in the stream", async () => {
      const { message = "" } = (await refused()) ?? {};
      const counted = Number(/store (\d+) bytes/.exec(message)?.[1]);
      const grown = (await streamBytes()) - before;
      return counted > BYTES_MAX && Math.abs(counted - grown) < grown / 50;
    });

    const other = await start(OTHER, `${small.url}/`, 21);
    expect(await ended(OTHER, other)).to.include({ status: "completed", finished: 21 });

    const query = { account: FIRST, status: "completed", count: 10 } as const;
    const { entries } = await bus.actors.call(crawlJob, job, "list", query);
    for (const { entry } of entries) {
      const content = await Array.fromAsync(bus.blobs.get(entry.blobs[0]?.name ?? ""));
      expect(Buffer.concat(content).toString()).to.match(/^"html":/);
    }
    await bus.actors.send(crawlJob, job, "expire", {});
    const again = await until("the account may crawl again", () =>
      start(FIRST, `${small.url}/`, 1).catch(() => undefined),
    );
    expect(await ended(FIRST, again)).to.include({ status: "completed" });
  });

  it("a refused start leaves no request behind", async () => {
    await using site = await siteOf(0);
    const stored = await bus.blobs.names("crawl");
    // The longest patterns do not fit the message to the job.
    const patterns = Array.from({ length: 100 }, () => "\u0001".repeat(1_024));
    const options = { includePatterns: patterns, excludePatterns: patterns };
    const refused = await refusalOf(start(OTHER, `${site.url}/`, 1, { options }));
    expect(refused.code).to.equal("body_too_large");
    expect((await bus.blobs.names("crawl")).difference(stored).size).to.equal(0);
  });
});
