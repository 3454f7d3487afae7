import { jetstreamManager } from "@nats-io/jetstream";
import { expect } from "chai";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { CRAWL_MAX_AGE_S_MAX } from "../../../../schemas/crawl/limits.ts";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { TtlStore } from "../../../runtime/store/ttl-store.ts";
import { CACHED_PAGE_BYTES_MAX, CachedPage, PageCache } from "./page-cache.ts";

const ACCOUNT = "a".repeat(32);
const URL_OF_PAGE = "https://site.example/page";
const NOON = Date.UTC(2026, 10, 20, 12);

const WANTED = {
  url: "https://site.example/",
  formats: ["html", "markdown"],
  crawlPurposes: ["search", "ai-input"],
  setExtraHTTPHeaders: { "x-one": "1" },
};

describe("PageCache", () => {
  let bus: BusActors;
  let store: TtlStore<CachedPage>;
  before(async () => {
    bus = await busActors({});
  });
  after(() => bus.stop());
  let tests = 0;
  beforeEach(() => {
    tests += 1;
    store = new TtlStore(bus.bus, `page-${String.fromCharCode(96 + tests)}`, CachedPage);
  });

  const cacheOf = (request: object = {}, account = ACCOUNT) =>
    new PageCache(store, account, CrawlRequest.parse({ ...WANTED, ...request }));
  const page = (links: string[] = []): CachedPage => ({
    cachedAt: NOON,
    metadata: { status: 200, url: URL_OF_PAGE, title: "A page" },
    blobs: [{ name: "crawl.job.0.turn", bytes: 7 }],
    links,
  });
  const isFound = async (cache: PageCache, url = URL_OF_PAGE, now = NOON) =>
    (await cache.find(url, now)) !== undefined;

  it("find() returns a cached page to every crawl that would get the same page", async () => {
    await cacheOf().keep(URL_OF_PAGE, page(["https://site.example/next"]));
    for (const same of [
      {},
      { limit: 99, depth: 3, source: "links", maxAge: 60, modifiedSince: 1 },
      { options: { includePatterns: ["/a/**"] } },
      { url: "https://elsewhere.example/" },
      { formats: ["markdown", "html"], crawlPurposes: ["ai-input", "search"] },
    ]) {
      const found = await cacheOf(same).find(URL_OF_PAGE, NOON);
      expect(found, JSON.stringify(same)).to.deep.equal(page(["https://site.example/next"]));
    }
  });

  it("find() returns nothing to a crawl that would get another page", async () => {
    await cacheOf().keep(URL_OF_PAGE, page());
    for (const other of [
      { formats: ["html"] },
      { render: false },
      { setExtraHTTPHeaders: { "x-one": "2" } },
      { setExtraHTTPHeaders: undefined },
      { viewport: { width: 10, height: 10 } },
      { waitForTimeout: 5 },
      { setJavaScriptEnabled: false },
      { crawlPurposes: ["search"] },
      { contentUse: "reference" },
      { authenticate: { username: "me", password: "secret" } },
      { cookies: [{ name: "a", value: "b" }] },
      // This crawl collects no links.
      { source: "sitemaps" },
    ]) {
      expect(await isFound(cacheOf(other)), JSON.stringify(other)).to.equal(false);
    }
    expect(await isFound(cacheOf({}, "b".repeat(32)))).to.equal(false);
    expect(await isFound(cacheOf(), "https://site.example/other")).to.equal(false);
  });

  it("find() returns pages loaded with credentials only to crawls of the same start URL", async () => {
    const authenticate = { username: "me", password: "secret" };
    await cacheOf({ authenticate }).keep(URL_OF_PAGE, page());
    expect(await isFound(cacheOf({ authenticate, url: "https://site.example/deep" }))).to.equal(
      true,
    );
    expect(await isFound(cacheOf({ authenticate, url: "https://other.example/" }))).to.equal(false);
  });

  it("find() returns pages younger than maxAge, and none if maxAge is 0", async () => {
    await cacheOf().keep(URL_OF_PAGE, page());
    for (const maxAge of [1, CRAWL_MAX_AGE_S_MAX]) {
      const cache = cacheOf({ maxAge });
      expect(await isFound(cache, URL_OF_PAGE, NOON + maxAge * 1_000 - 1)).to.equal(true);
      expect(await isFound(cache, URL_OF_PAGE, NOON + maxAge * 1_000)).to.equal(false);
    }
    expect(await isFound(cacheOf({ maxAge: 0 }))).to.equal(false);
  });

  it("keep() keeps the newest copy for the longest maxAge", async () => {
    const cache = cacheOf();
    await cache.keep(URL_OF_PAGE, page());
    await cache.keep(URL_OF_PAGE, { ...page(), cachedAt: NOON + 5 });
    expect(await cache.find(URL_OF_PAGE, NOON + 6)).to.deep.include({ cachedAt: NOON + 5 });
    const { streams } = await jetstreamManager(bus.bus.connection);
    const last = await streams.getMessage(STREAMS.cache, { last_by_subj: "cache.>" });
    expect(last?.header.get("Nats-TTL")).to.equal(`${CRAWL_MAX_AGE_S_MAX}s`);
  });

  it("keep() stores links up to CACHED_PAGE_BYTES_MAX, and skips a page with more", async () => {
    const cache = cacheOf();
    const link = (chars: number) => `https://site.example/${"a".repeat(chars - 21)}`;
    const links = Array.from({ length: CACHED_PAGE_BYTES_MAX / 1_024 }, () => link(1_024));
    await cache.keep(URL_OF_PAGE, page(links));
    await cache.keep(`${URL_OF_PAGE}/more`, page([...links.slice(1), link(1_025)]));
    await until("the first is kept", () => isFound(cache));
    expect(await isFound(cache, `${URL_OF_PAGE}/more`)).to.equal(false);
  });
});
