/** Kills everything that a crawl stands on while it runs: no page is lost, none is fetched twice, no host is hurried. */
import { expect } from "chai";
import { systemClock as clock } from "../actors/runtime/clock.ts";
import { LEASE_TTL_MS } from "../schemas/limits.ts";
import { crawlFaults, type JobToCheck, requestsMissing } from "../scripts/testing/crawl-check.ts";
import { CrawlScene } from "../scripts/testing/crawl-scene.ts";
import { CrawlSite } from "../scripts/testing/crawl-site.ts";
import { SeededRandom } from "../scripts/testing/seeded-random.ts";

const JOB_MS_MAX = 90_000;

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("crawl under faults", function () {
  this.timeout(180_000);
  before(() => console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`));

  let scene: CrawlScene;
  let site: CrawlSite;
  beforeEach(async () => {
    site = await CrawlSite.start([
      { address: "127.0.20.1", pages: 24, sitemap: true, crawlDelay: 0.4, answerMs: 20 },
      { address: "127.0.20.2", pages: 24, sitemap: false, answerMs: 5 },
      { address: "127.0.20.3", pages: 60, sitemap: true, crawlDelay: 0, answerMs: 100 },
    ]);
    scene = await CrawlScene.start({ seed, actors: 2, browsers: 2 });
  });
  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      console.log(scene.errorLines.slice(-40).join("\n"));
    }
    await scene[Symbol.asyncDispose]();
    await site[Symbol.asyncDispose]();
  });

  it("processes are killed one after the other, and all at once", async () => {
    const job = await start("walk");
    await quiet();
    await scene.killOne("browser");
    await quiet();
    await scene.killOne("actors");
    await quiet();
    await scene.killOne("gateway");
    await scene.killAll();
    await expectWhole(job);
  });

  it("the bus is killed, and connections are cut and stall", async () => {
    const job = await start("walk");
    await quiet();
    await scene.killBus(scene.random.integer(0, 500));
    await quiet();
    await scene.killBus(LEASE_TTL_MS + 500);
    await quiet();
    await scene.cutOff("browser", scene.random.integer(0, 1_500), "cut");
    await scene.cutOff("actors", scene.random.integer(0, 1_500), "cut");
    await scene.cutOff("browser", scene.random.integer(500, LEASE_TTL_MS + 2_000), "stall");
    await scene.cutOff("actors", scene.random.integer(500, LEASE_TTL_MS + 2_000), "stall");
    await expectWhole(job);
  });

  async function start(name: string): Promise<JobToCheck> {
    const id = await scene.startCrawl({
      url: `${site.origins[0]}/`,
      render: false,
      limit: 1_000,
      maxAge: 0,
      options: { includeExternalLinks: true },
      setExtraHTTPHeaders: { "x-job": name },
    });
    return { id, name, hosts: site.hosts.map((_, host) => host) };
  }

  async function expectWhole(job: JobToCheck): Promise<void> {
    const { status, messages } = await scene.ended(job.id, JOB_MS_MAX);
    expect(status, messages.join("; ")).to.equal("completed");
    const faults = [
      ...(await crawlFaults(scene, site, job)),
      ...requestsMissing(site, job).map((url) => `${url} was not asked for`),
      ...site.paceFaults(),
    ];
    expect(faults).to.deep.equal([]);
  }

  const quiet = () => clock.wait(scene.random.integer(200, 2_000));
});
