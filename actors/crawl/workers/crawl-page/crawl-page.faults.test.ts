import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { CRAWL_BODY_BYTES_MAX } from "../../../../schemas/crawl/limits.ts";
import { WebSite } from "../../../../scripts/testing/web-site.ts";
import { CrawlWorld } from "./testing/crawl-world.ts";

describe("crawl-page and hostile sites", function () {
  this.timeout(240_000);

  it("fetchTurn() always ends, whatever the site does", async () => {
    await using world = await CrawlWorld.start();
    await using site = await WebSite.start();
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    const body =
      (bytes: Uint8Array | string, headers = {}) =>
      (path: string) =>
        site.page(path, (_, response) => response.writeHead(200, headers).end(bytes));
    const bomb = gzipSync(Buffer.alloc(100_000_000, "<p>"));
    const urls = [
      site.page("/drip", async (_, response) => {
        for (; !response.destroyed; await new Promise((done) => setTimeout(done, 50))) {
          response.write("x");
        }
      }),
      site.page("/hang", () => {}),
      body(bomb, { "Content-Encoding": "gzip" })("/bomb"),
      body(Buffer.alloc(20_000_000, "<a href=x>"))("/huge"),
      body(Buffer.from([0xff, 0x3c, 0x70, 0x3e, 0xc3, 0x28]), {
        "Content-Type": "text/html; charset=utf-8",
      })("/broken"),
      body("", { "Content-Encoding": "br" })("/empty"),
      body("<title>\ud800</title>".repeat(3))("/surrogate"),
      `${site.url}/${"a".repeat(8_000)}`,
    ];
    const requests = urls.map((url, index) => ({ type: "page" as const, index, url, attempt: 1 }));
    const job = await world.crawl({ url: site.url, ...{ formats: ["html"] } }, requests);
    const outcomes = await world.outcomes(job, urls.length);
    const kinds = outcomes.map((one) =>
      one.kind === "fetched" ? (one.metadata.truncated ?? false) : one.kind,
    );
    expect(kinds.slice(0, 5)).to.deep.equal(["failed", "failed", true, true, false]);
    const record = await world.record(outcomes[2]);
    expect(record.html).to.have.length(CRAWL_BODY_BYTES_MAX);
    expect(await world.record(outcomes[4])).to.deep.equal({ html: "\ufffd<p>\ufffd(" });
  });
});
