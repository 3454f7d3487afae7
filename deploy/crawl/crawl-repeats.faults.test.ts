/** Kills the worker of a fast crawl: no more pages are fetched twice than were in flight. */
import { expect } from "chai";
import { HOST_REQUESTS_IN_FLIGHT_MAX } from "../../schemas/crawl/limits.ts";
import { CrawlScene } from "../../scripts/testing/crawl-scene.ts";
import { CrawlSite } from "../../scripts/testing/crawl-site.ts";
import { until } from "../../scripts/testing/until.ts";

/**
 * Timeout of the crawl. The turn of a killed worker is missed only after a while, so each kill costs half a minute on
 * a busy machine.
 */
const JOB_MS_MAX = 300_000;
const PAGES = 900;
const KILLS = 3;

describe("a crawl whose worker is killed", function () {
  this.timeout(2 * JOB_MS_MAX);

  it("fetches no more pages twice than were in flight", async () => {
    await using site = await CrawlSite.start([
      { address: "127.0.21.1", pages: PAGES, sitemap: true, crawlDelay: 0, answerMs: 2 },
    ]);
    await using scene = await CrawlScene.start({ direct: true });
    const id = await scene.startCrawl({
      ...{ url: `${site.origins[0]}/`, limit: PAGES + 1, render: false, maxAge: 0 },
    });
    for (let kill = 1; kill <= KILLS; kill += 1) {
      const before = site.requests.length;
      const isFurther = async () => site.requests.length > before + PAGES / (2 * KILLS);
      await until("the crawl has gone on", isFurther, JOB_MS_MAX);
      await scene.killOne("browser");
    }
    const { status } = await scene.ended(id, JOB_MS_MAX);
    expect(status).to.equal("completed");
    const pages = site.requests.filter(({ path }) => !/^\/(robots\.txt|sitemap\.xml)$/.test(path));
    const twice = pages.length - new Set(pages.map(({ path }) => path)).size;
    console.log(`      ${twice} of ${pages.length} requests were made again after ${KILLS} kills`);
    expect(twice).to.be.at.most(KILLS * HOST_REQUESTS_IN_FLIGHT_MAX);
  });
});
