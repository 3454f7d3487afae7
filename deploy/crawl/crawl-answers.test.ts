/** Reads a crawl from the started program: responses of at most 10 MB, and live events. */
import { expect } from "chai";
import { CRAWL_ANSWER_BYTES_MAX } from "../../schemas/crawl/limits.ts";
import { CrawlScene, type WireCrawl } from "../../scripts/testing/crawl-scene.ts";
import { WebSite } from "../../scripts/testing/web-site.ts";

const MB = 1024 * 1024;
const PAGES = 5;
const PAGE_BYTES = 4 * MB;
/** Each quote is two bytes in JSON, so this page alone exceeds a response. */
const LARGE_PAGE_QUOTES = 8 * MB;

describe("crawl results and events", function () {
  this.timeout(180_000);
  let scene: CrawlScene;
  let site: WebSite;
  let id: string;
  let events: { event: string; data: Record<string, unknown> }[];

  before(async () => {
    site = await WebSite.start();
    scene = await CrawlScene.start();
    const paths = Array.from({ length: PAGES }, (_, index) => `/${index}`);
    const links = [...paths, "/large"].map((path) => `<a href="${path}">x</a>`);
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 0\n");
    site.page("/", links.join(""));
    for (const path of paths) site.page(path, `<p>${"x".repeat(PAGE_BYTES)}`);
    site.page("/large", `<p>${'"'.repeat(LARGE_PAGE_QUOTES)}`);
    id = await scene.startCrawl({ url: `${site.url}/`, render: false, limit: 20, maxAge: 0 });
    events = await follow(id);
  });
  after(async () => {
    await scene?.[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });

  it("events report the state, each page and the end, and then the stream ends", async () => {
    expect(events[0]).to.deep.include({ event: "status" });
    expect(events.at(-1)?.event).to.equal("finished");
    const whole = { id, status: "completed", total: PAGES + 2, finished: PAGES + 2 };
    expect(events.at(-1)?.data).to.deep.include(whole);
    // A client that starts to follow a crawl after its end still gets the event `finished`.
    expect((await follow(id)).at(-1)?.event).to.equal("finished");
  });

  it("responses have at most CRAWL_ANSWER_BYTES_MAX except a single larger record, and the cursor visits each record once", async () => {
    const urls: string[] = [];
    let answers = 0;
    for (let query = ""; ; ) {
      const response = await fetch(`${scene.crawlsUrl}/${id}${query}`, {
        headers: scene.authorization,
      });
      expect(response.status).to.equal(200);
      const body = Buffer.from(await response.arrayBuffer());
      const { records, cursor } = JSON.parse(body.toString()).result as WireCrawl;
      answers += 1;
      if (records.length !== 1) expect(body.length).to.be.at.most(CRAWL_ANSWER_BYTES_MAX);
      if (records.some(({ url }) => url.endsWith("/large"))) {
        expect(records).to.have.length(1);
        expect(body.length).to.be.above(CRAWL_ANSWER_BYTES_MAX);
        expect(records[0]?.html).to.have.length.of.at.least(LARGE_PAGE_QUOTES);
      }
      urls.push(...records.map(({ url }) => new URL(url).pathname));
      if (cursor === undefined) break;
      query = `?cursor=${cursor}`;
    }
    expect(urls.toSorted()).to.deep.equal(["/", "/0", "/1", "/2", "/3", "/4", "/large"]);
    expect(answers).to.be.at.least(4);
  });

  /** Follows a crawl until its event stream ends. Resolves with all its events. */
  async function follow(crawl: string) {
    const { authorization: headers, crawlsUrl } = scene;
    const response = await fetch(`${crawlsUrl}/${crawl}/events`, { headers });
    expect(response.headers.get("content-type")).to.contain("text/event-stream");
    const told = (await response.text()).matchAll(/event: (\w+)\n(?:id: .*\n)?data: (.*)\n\n/g);
    return [...told].map(([, event = "", data = ""]) => ({ event, data: JSON.parse(data) }));
  }
});
