import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { PageOutcome } from "../../../../schemas/crawl/crawl-job.ts";
import { CrawlRequest } from "../../../../schemas/crawl/http/crawl.ts";
import { RECORD_REASON_CHARS_MAX } from "../../../../schemas/crawl/limits.ts";
import { BLOB_CHUNK_BYTES } from "../../../../schemas/limits.ts";
import { STREAMS } from "../../../../schemas/subjects.ts";
import { type BusActors, busActors } from "../../../../scripts/testing/bus-actors.ts";
import { until } from "../../../../scripts/testing/until.ts";
import { MarkdownPool } from "../../../rendering/lib/extract/markdown-pool.ts";
import { systemClock as clock } from "../../../runtime/lib/clock.ts";
import { FairSemaphore } from "../../../runtime/lib/fair-semaphore.ts";
import { Semaphore } from "../../../runtime/lib/semaphore.ts";
import { BlobStore } from "../../../runtime/store/blob-store.ts";
import { TtlStore } from "../../../runtime/store/ttl-store.ts";
import type { PageAnswer } from "../load/page-loader.ts";
import { cachedPages } from "./cached-pages.ts";
import { CachedPage, PageCache } from "./page-cache.ts";
import { PageOutcomes, type PageRequest } from "./page-outcomes.ts";
import { RecordWriter } from "./record-writer.ts";

const newId = () => randomBytes(16).toString("hex");
const URL_OF_PAGE = "http://site.example/page";
const MODIFIED_AT = Date.UTC(2026, 10, 1);
const HTML = '<title>A page</title><h1>Hello</h1><a href="/next">next</a>';
const { signal } = new AbortController();

const asked = (index: number): PageRequest => ({
  ...{ type: "page", index, url: URL_OF_PAGE, attempt: 1 },
});
const answered = (more: Partial<Extract<PageAnswer, { kind: "page" }>> = {}): PageAnswer => ({
  ...{ kind: "page", status: 200, html: HTML, truncated: false, contentType: "text/html" },
  ...{ lastModifiedAt: undefined, awayMs: undefined, nofollow: false },
  ...{ browserMs: 12, ...more },
});

describe("PageOutcomes", () => {
  let bus: BusActors;
  let blobs: BlobStore;
  let cache: TtlStore<CachedPage>;
  const markdown = new MarkdownPool();
  before(async () => {
    bus = await busActors({});
    blobs = new BlobStore(bus.bus, clock);
    cache = new TtlStore(bus.bus, "page", CachedPage);
  });
  after(async () => {
    await bus?.stop();
    await markdown.close();
  });

  /**
   * Creates the outcomes of a new turn. Without `account` and `job`, the turn belongs to a new job of a new account.
   */
  function outcomesOf(request: object = {}, account = newId(), job = newId(), pool = markdown) {
    const whole = CrawlRequest.parse({ url: "http://site.example/", render: false, ...request });
    const parts = {
      copyPlaces: new FairSemaphore({ places: 4 }),
      ...{ markdown: pool, markdownPlaces: new Semaphore(4), records: new RecordWriter(blobs) },
      ...{ blobs, cache: new PageCache(cache, account, whole), clock },
    };
    const turn = newId();
    return { outcomes: new PageOutcomes(parts, { account, job, turn }, whole), account, job, turn };
  }
  async function textOf(name: string): Promise<string> {
    const chunks: Uint8Array[] = [];
    for await (const chunk of blobs.get(name)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }
  const blobsOf = (outcome: PageOutcome) => ("blobs" in outcome ? outcome.blobs : []);
  const found = (outcomes: PageOutcomes) =>
    until("the page is cached", () => outcomes.find(asked(0)));

  it("of() treats a refresh as a redirect, but not on an error page or after a long delay", async () => {
    const of = (html: string, status = 200) =>
      outcomesOf({ formats: ["html"] }).outcomes.of(asked(0), answered({ html, status }), signal);
    const meta = (content: string) =>
      `<base href=/dir/><meta http-equiv=refresh content="${content}">`;
    const to = "http://site.example/dir/to";
    expect(await of(meta("0; url=to"))).to.deep.equal({
      ...{ kind: "redirected", index: 0, to, status: 200, browserMs: 12 },
    });
    for (const [html, status] of [
      [meta("0; url=to"), 404],
      [meta("60; url=to"), 200],
      [meta("0; url=/page#top"), 200],
    ] as const) {
      expect(await of(html, status)).to.include({ kind: "fetched" });
    }
  });

  it("of() skips a linked download, and fails where the start URL is one", async () => {
    const { outcomes } = outcomesOf();
    const reason = 'its content type is "application/pdf", not text';
    const answer: PageAnswer = {
      ...{ kind: "download", status: 200, contentType: "application/pdf", reason, browserMs: 3 },
    };
    const metadata = { status: 200, url: URL_OF_PAGE, contentType: "application/pdf" };
    expect(await outcomes.of(asked(4), answer, signal)).to.deep.equal({
      ...{ kind: "skipped", index: 4, metadata, browserMs: 3 },
      reason: `The link leads to a download: ${reason}`,
    });
    expect(await outcomes.of(asked(0), answer, signal)).to.deep.equal({
      ...{ kind: "failed", index: 0, retry: false, blobs: [], metadata, browserMs: 3 },
      reason: `Cannot fetch the page: ${reason}`,
    });
  });

  it("of() has stored a page's record when it resolves, under a unique name", async () => {
    const { outcomes, job, turn } = outcomesOf({ formats: ["html", "markdown"] });
    const outcome = await outcomes.of(asked(3), answered(), signal);
    const name = `crawl.${job}.3.${turn}`;
    const text = await textOf(name);
    const storedBytes = "storedBytes" in outcome ? outcome.storedBytes : undefined;
    expect(outcome).to.deep.equal({
      storedBytes,
      kind: "fetched",
      index: 3,
      metadata: { status: 200, title: "A page", url: URL_OF_PAGE, contentType: "text/html" },
      blobs: [{ name, bytes: Buffer.byteLength(text) }],
      links: ["http://site.example/next"],
      browserMs: 12,
    });
    const record = JSON.parse(`{${text}}`);
    expect(record.html).to.equal(HTML);
    expect(record.markdown).to.contain("# Hello");
  });

  it("of() and cached() report the bytes by which their blobs let the stream grow", async () => {
    const streamBytes = async () =>
      (await bus.bus.jetstream.streams.info(STREAMS.crawl)).state.bytes;
    /** Checks the bytes of an outcome, and returns it. */
    const checked = async (make: () => Promise<PageOutcome | undefined>) => {
      const before = await streamBytes();
      const outcome = await make();
      const grown = (await streamBytes()) - before;
      expect(grown).to.be.above(0);
      const counted = outcome && "storedBytes" in outcome ? (outcome.storedBytes ?? 0) : 0;
      expect(counted).to.be.closeTo(grown, grown / 20);
      return outcome;
    };
    const noise = randomBytes(200_000).toString("hex");
    const words = "The mill turns all day. ".repeat(20_000);
    for (const body of ["", noise, words]) {
      const page = (status: number) => answered({ html: `${HTML}<p>${body}`, status });
      const jsonOptions = { prompt: "What is it?" };
      for (const request of [
        { formats: ["html"] },
        { formats: ["html", "markdown", "json"], jsonOptions },
        { formats: ["json"], jsonOptions },
      ]) {
        const first = outcomesOf(request);
        await checked(() => first.outcomes.of(asked(0), page(503), signal));
        const other = { ...asked(1), url: `${URL_OF_PAGE}?1` };
        await checked(() => first.outcomes.of(other, page(200), signal));
        const second = outcomesOf(request, first.account);
        const copy = await until("the page is cached", () => second.outcomes.find(other));
        const copied = await checked(() => second.outcomes.cached(other, copy, signal));
        expect(copied).to.have.property("kind", "fetched");
      }
    }
  });

  it("of() names the text for a model, and stores it separately if the record lacks it", async () => {
    const jsonOptions = { prompt: "What is it?" };
    const both = outcomesOf({ formats: ["markdown", "json"], jsonOptions });
    const one = await both.outcomes.of(asked(0), answered(), signal);
    expect(one).to.have.property("jsonSource", `crawl.${both.job}.0.${both.turn}`);
    const alone = outcomesOf({ formats: ["json"], jsonOptions });
    const other = await alone.outcomes.of(asked(0), answered(), signal);
    const source = `crawl.${alone.job}.0.${alone.turn}.text`;
    expect(other).to.deep.include({ blobs: [], jsonSource: source });
    expect(await textOf(source)).to.contain("# Hello");
  });

  it("of() keeps the body of an error, and retries a temporary one", async () => {
    for (const [status, kind] of [
      [404, "fetched"],
      [503, "failed"],
    ] as const) {
      const { outcomes } = outcomesOf();
      const outcome = await outcomes.of(asked(0), answered({ status }), signal);
      expect(outcome).to.deep.include({ kind, browserMs: 12 });
      expect(outcome).to.have.property("reason", `The server answered with status ${status}`);
      expect(outcome).to.have.nested.property("metadata.status", status);
      const [blob] = blobsOf(outcome);
      expect(await textOf(blob?.name ?? "")).to.contain("Hello");
      if (kind === "failed") expect(outcome).to.have.property("retry", true);
    }
  });

  it("of() reports redirects and unmodified pages", async () => {
    const { outcomes } = outcomesOf({ modifiedSince: MODIFIED_AT / 1_000 });
    const to = "http://site.example/there";
    expect(
      await outcomes.of(asked(1), { kind: "redirect", to, status: 302, browserMs: 5 }, signal),
    ).to.deep.equal({ kind: "redirected", index: 1, to, status: 302, browserMs: 5 });
    const unmodified = { kind: "unmodified" as const, status: 304, browserMs: 5 };
    for (const [lastModifiedAt, reason] of [
      [undefined, "The server says it was not modified since 2026-11-01T00:00:00.000Z"],
      [MODIFIED_AT - 1, "Last modified 2026-10-31T23:59:59.999Z, before 2026-11-01T00:00:00.000Z"],
    ] as const) {
      const outcome = await outcomes.of(asked(1), { ...unmodified, lastModifiedAt }, signal);
      expect(outcome).to.deep.include({ kind: "skipped", index: 1, reason, browserMs: 5 });
      expect(outcome).to.have.nested.property("metadata.status", 304);
    }
  });

  it("of() reports why a page could not be loaded, in at most RECORD_REASON_CHARS_MAX characters", async () => {
    const { outcomes } = outcomesOf();
    for (const chars of [RECORD_REASON_CHARS_MAX, RECORD_REASON_CHARS_MAX + 1]) {
      const reason = "r".repeat(chars);
      const failed = { kind: "failed" as const, reason, retry: true, browserMs: 1 };
      expect(await outcomes.of(asked(0), { ...failed, status: undefined }, signal)).to.deep.equal({
        ...{ kind: "failed", index: 0, retry: true, blobs: [], browserMs: 1 },
        reason: "r".repeat(RECORD_REASON_CHARS_MAX),
      });
      const withStatus = await outcomes.of(asked(0), { ...failed, status: 200 }, signal);
      expect(withStatus).to.have.deep.property("metadata", { status: 200, url: URL_OF_PAGE });
    }
    const failed = { kind: "failed" as const, reason: "It is no text", retry: false, browserMs: 1 };
    for (const [status, reason] of [
      [399, "It is no text"],
      [400, "The server answered with status 400; It is no text"],
    ] as const) {
      expect(await outcomes.of(asked(0), { ...failed, status }, signal)).to.include({ reason });
    }
  });

  it("of() caches pages with status 200 for other crawls of the account, and nothing else", async () => {
    const first = outcomesOf();
    const others = [404, 203].map((status) => ({ ...asked(0), url: `${URL_OF_PAGE}?${status}` }));
    for (const [position, status] of [404, 203].entries()) {
      await first.outcomes.of(others[position] ?? asked(0), answered({ status }), signal);
    }
    await first.outcomes.of(asked(0), answered(), signal);
    const copy = await found(outcomesOf({}, first.account).outcomes);
    expect(copy.metadata).to.include({ status: 200, title: "A page" });
    // The pages with other statuses came first. If they had been cached, their entries would be visible by now.
    for (const other of others) expect(await first.outcomes.find(other)).to.equal(undefined);
    expect(await outcomesOf().outcomes.find(asked(0))).to.equal(undefined);
  });

  it("of() caches no page whose Markdown failed, because another crawl may succeed", async () => {
    const formats = ["html", "markdown"];
    const hasty = new MarkdownPool({ timeoutMs: 1 });
    const first = outcomesOf({ formats }, newId(), newId(), hasty);
    const outcome = await first.outcomes.of(asked(0), answered(), signal);
    await hasty.close();
    expect(outcome).to.have.property("reason").that.contains("Cannot make Markdown");
    const later = outcomesOf({ formats }, first.account);
    const whole = { ...asked(1), url: `${URL_OF_PAGE}?whole` };
    await later.outcomes.of(whole, answered(), signal);
    await until("the whole page is cached", () => later.outcomes.find(whole));
    expect(await later.outcomes.find(asked(0))).to.equal(undefined);
  });

  it("cached() copies a cached page to the job, and the copy outlives its original", async () => {
    const first = outcomesOf();
    await first.outcomes.of(asked(0), answered(), signal);
    const second = outcomesOf({}, first.account);
    const copy = await found(second.outcomes);
    const outcome = await second.outcomes.cached(asked(7), copy, signal);
    await blobs.removeAll(`crawl.${first.job}`);
    const name = `crawl.${second.job}.7.${second.turn}`;
    expect(outcome).to.deep.include({
      ...{ kind: "fetched", index: 7, browserMs: 0, links: ["http://site.example/next"] },
      metadata: { ...copy.metadata, cachedAt: copy.cachedAt },
      blobs: [{ name, bytes: copy.blobs[0]?.bytes }],
    });
    expect(await textOf(name)).to.contain("Hello");
    // The cached page names a record that is gone.
    const third = outcomesOf({}, first.account);
    expect(await third.outcomes.cached(asked(7), copy, signal)).to.equal(undefined);
  });

  it("cached() holds a few chunks of large pages, however many turns copy them", async () => {
    const [account, from, places, chunks] = [newId(), newId(), 3, 20];
    const original = Buffer.alloc(chunks * BLOB_CHUNK_BYTES, "\\u0001");
    await blobs.put(`crawl.${from}.0.t`, original);
    await blobs.put(`crawl.${from}.0.t.text`, original);
    const counted = countHeldBytes(blobs);
    const copyPlaces = new FairSemaphore({ places });
    const page: CachedPage = {
      ...{ cachedAt: clock.now(), links: [], metadata: { status: 200, url: URL_OF_PAGE } },
      blobs: [{ name: `crawl.${from}.0.t`, bytes: original.length }],
      jsonSource: `crawl.${from}.0.t.text`,
    };
    const request = CrawlRequest.parse({ url: URL_OF_PAGE, render: false });
    const store = { get: async () => page, put: async () => true };
    const parts = {
      ...{ markdown, markdownPlaces: new Semaphore(4), records: new RecordWriter(counted), clock },
      ...{ blobs: counted, copyPlaces, cache: new PageCache(store, account, request) },
    };
    const turns = [newId(), newId()].map((turn) => {
      const outcomes = new PageOutcomes(parts, { account, job: newId(), turn }, request);
      const judge = async (urls: string[]) => urls.map(() => ({ allowed: true as const }));
      const requests = Array.from({ length: 8 }, (_, index) => asked(index));
      return cachedPages(requests, { outcomes, judge, signal });
    });
    const copied = (await Promise.all(turns)).flatMap(({ used }) => used);
    expect(copied).to.have.length(16);
    for (const outcome of copied) {
      expect(blobsOf(outcome)[0]).to.have.property("bytes", original.length);
      const source = outcome.kind === "fetched" ? outcome.jsonSource : undefined;
      expect(await blobs.size(source ?? "")).to.equal(original.length);
    }
    expect(counted.heldMax / BLOB_CHUNK_BYTES).to.be.within(1, places * 3);
    expect(copyPlaces.free).to.equal(places);
  });

  it("cached() lets the model read the copy", async () => {
    const jsonOptions = { prompt: "What is it?" };
    for (const formats of [["markdown", "json"], ["json"]]) {
      const first = outcomesOf({ formats, jsonOptions });
      await first.outcomes.of(asked(0), answered(), signal);
      const second = outcomesOf({ formats, jsonOptions }, first.account);
      const copy = await found(second.outcomes);
      const outcome = await second.outcomes.cached(asked(0), copy, signal);
      await blobs.removeAll(`crawl.${first.job}`);
      const source = outcome?.kind === "fetched" ? outcome.jsonSource : undefined;
      expect(source).to.match(new RegExp(`^crawl\\.${second.job}\\.0\\.${second.turn}`));
      expect(await textOf(source ?? "")).to.contain("# Hello");
    }
  });

  it("cached() skips a page older than modifiedSince, and keeps one of that time", async () => {
    const first = outcomesOf();
    await first.outcomes.of(asked(0), answered({ lastModifiedAt: MODIFIED_AT }), signal);
    const since = (modifiedSince: number) => outcomesOf({ modifiedSince }, first.account).outcomes;
    const seconds = MODIFIED_AT / 1_000;
    const copy = await found(since(seconds));
    const same = await since(seconds).cached(asked(0), copy, signal);
    expect(same).to.have.property("kind", "fetched");
    const older = await since(seconds + 1).cached(asked(0), copy, signal);
    expect(older).to.deep.include({
      kind: "skipped",
      reason: "Last modified 2026-11-01T00:00:00.000Z, before 2026-11-01T00:00:01.000Z",
      links: ["http://site.example/next"],
    });
  });

  it("of() skips a page older than modifiedSince, and keeps its links", async () => {
    const request = { modifiedSince: MODIFIED_AT / 1_000, formats: ["html", "markdown"] };
    const { outcomes } = outcomesOf(request);
    const older = { lastModifiedAt: MODIFIED_AT - 1_000 };
    expect(await outcomes.of(asked(0), answered(older), signal)).to.deep.equal({
      kind: "skipped",
      index: 0,
      reason: "Last modified 2026-10-31T23:59:59.000Z, before 2026-11-01T00:00:00.000Z",
      metadata: {
        ...{ status: 200, title: "A page", url: URL_OF_PAGE, contentType: "text/html" },
        ...older,
      },
      links: ["http://site.example/next"],
      browserMs: 12,
    });
    const same = { lastModifiedAt: MODIFIED_AT };
    const fetched = await outcomes.of(asked(1), answered(same), signal);
    expect(fetched).to.have.property("kind", "fetched");
  });
});

/** Returns the store, which counts the bytes that were read and that nobody has begun to write yet. */
function countHeldBytes(blobs: BlobStore) {
  let held = 0;
  const counted = {
    heldMax: 0,
    async *get(...asked: Parameters<BlobStore["get"]>) {
      for await (const chunk of blobs.get(...asked)) {
        held += chunk.length;
        counted.heldMax = Math.max(held, counted.heldMax);
        yield chunk;
      }
    },
    async put(...[name, content, options]: Parameters<BlobStore["put"]>) {
      const taken = async function* () {
        for await (const chunk of content instanceof Uint8Array ? [content] : content) {
          yield chunk;
          held -= chunk.length;
        }
      };
      return blobs.put(name, taken(), options);
    },
    putAll: blobs.putAll.bind(blobs),
  };
  return counted;
}
