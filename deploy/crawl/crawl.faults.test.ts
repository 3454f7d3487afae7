/** Kills every process of a running crawl: no page is lost or fetched twice, and no host gets a request early. */
import { expect } from "chai";
import { TURNS_AHEAD_MAX } from "../../actors/crawl/site/host-capacity.ts";
import { systemClock as clock } from "../../actors/runtime/lib/clock.ts";
import { LEASE_TTL_MS } from "../../schemas/limits.ts";
import {
  crawlFaults,
  type JobToCheck,
  requestsMissing,
} from "../../scripts/testing/crawl-check.ts";
import { CrawlScene } from "../../scripts/testing/crawl-scene.ts";
import { CrawlSite } from "../../scripts/testing/crawl-site.ts";
import { SeededRandom } from "../../scripts/testing/seeded-random.ts";
import { until } from "../../scripts/testing/until.ts";

/** Timeout of a job. A job takes half a minute, and four times as long on a busy machine. */
const JOB_MS_MAX = 300_000;
const START_PAUSE_MS = 300;
const FAST_HOST = 2;
const RENDERED_HOST = 3;
const ALL_HOSTS = [0, 1, FAST_HOST, RENDERED_HOST];

const seed = Number(process.env.TRUNKLINE_TEST_SEED ?? SeededRandom.newSeed());

describe("crawl under faults", function () {
  this.timeout(900_000);
  let scene: CrawlScene;
  let site: CrawlSite;
  before(async () => {
    console.log(`    TRUNKLINE_TEST_SEED=${seed} repeats the choices of this run`);
    scene = await CrawlScene.start({ seed, actors: 2, browsers: 2 });
  });
  after(() => scene?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    // With the same seed a test makes the same choices alone as after the others. A test that failed may have left
    // processes and connections down.
    await scene.prepare(seed);
    // Clears the faults of earlier tests: they must not excuse a repeated request in this test.
    scene.faults.length = 0;
    site = await CrawlSite.start([
      { address: "127.0.20.1", pages: 24, sitemap: true, crawlDelay: 0.4, answerMs: 20 },
      { address: "127.0.20.2", pages: 24, sitemap: false, answerMs: 5 },
      { address: "127.0.20.3", pages: 60, sitemap: true, crawlDelay: 0, answerMs: 100 },
      { address: "127.0.20.4", pages: 8, sitemap: true, crawlDelay: 0.3 },
    ]);
  });
  afterEach(async function () {
    if (this.currentTest?.state === "failed") {
      console.log(scene.errorLines.slice(-40).join("\n"));
    }
    await site?.[Symbol.asyncDispose]();
  });

  it("kills processes one after the other, and all at once", async () => {
    const job = await start("walk");
    await further(job);
    await scene.killOne("browser");
    await further(job);
    await scene.killOne("actors");
    await further(job);
    await scene.killOne("gateway");
    await scene.killAll();
    await expectWhole(job);
  });

  it("kills the bus, and cuts and stalls connections", async () => {
    const job = await start("walk");
    await further(job);
    await scene.killBus(scene.random.integer(0, 500));
    await further(job);
    await scene.killBus(LEASE_TTL_MS + 500);
    await further(job);
    await scene.cutOff("browser", scene.random.integer(0, 1_500), "cut");
    await scene.cutOff("actors", scene.random.integer(0, 1_500), "cut");
    await scene.cutOff("browser", scene.random.integer(500, LEASE_TTL_MS + 2_000), "stall");
    await scene.cutOff("actors", scene.random.integer(500, LEASE_TTL_MS + 2_000), "stall");
    await expectWhole(job);
  });

  it("keeps acknowledged results of crawls that are started, rendered, read and cancelled meanwhile", async () => {
    const rendered = await start("rendered", [RENDERED_HOST], { render: true });
    const small = startMany();
    await scene.killOne("browser");
    const seen = readAll(rendered.id);
    const cancelled = await start("cancelled");
    await further(cancelled);
    // The cancel does not wait until the killed process is replaced: by then the crawl would have ended.
    const killed = scene.killOne("actors");
    const cancelledAt = await cancel(cancelled.id);
    await killed;
    await scene.killBus(scene.random.integer(0, 1_500));
    const before = small.ids.length;
    await until("more is started", () => small.ids.length > before, JOB_MS_MAX);
    await scene.killOne("gateway");
    const ids = await small.stop();
    console.log(`      ${ids.length} small crawls were acknowledged`);
    for (const id of ids) {
      const { status, messages } = await scene.ended(id, JOB_MS_MAX);
      expect(status, messages.join("; ")).to.equal("completed");
    }
    const { status } = await scene.summary(cancelled.id);
    expect(status).to.equal("cancelled_by_user");
    for (const record of await scene.records(cancelled.id)) {
      expect(record.status, record.url).to.not.equal("queued");
    }
    // A worker may learn of the cancel late, because the bus is killed too. Then it may still make the few requests
    // that were granted at a host with a delay.
    const after = site.requests.filter(
      ({ job, host, at }) => job === cancelled.name && host !== FAST_HOST && at > cancelledAt,
    );
    for (const [host, requests] of Map.groupBy(after, ({ host }) => host)) {
      expect(requests.length, `host ${host}`).to.be.at.most(TURNS_AHEAD_MAX + 1);
    }
    await expectWhole(rendered);
    const urls = await seen;
    expect(new Set(urls).size, "records read twice").to.equal(urls.length);
  });

  async function start(name: string, hosts = ALL_HOSTS, more: object = {}): Promise<JobToCheck> {
    const id = await scene.startCrawl({
      url: `${site.origins[hosts[0] ?? 0]}/`,
      render: false,
      limit: 1_000,
      maxAge: 0,
      options: { includeExternalLinks: hosts.length > 1 },
      setExtraHTTPHeaders: { "x-job": name },
      ...more,
    });
    return { id, name, hosts };
  }

  /** Starts crawls of two pages one after another. Unacknowledged starts do not count. */
  function startMany() {
    const ids: string[] = [];
    const stopping = new AbortController();
    const run = async () => {
      while (!stopping.signal.aborted) {
        const url = `${site.origins[FAST_HOST]}/`;
        const answer = await scene
          .ask("", "POST", { url, render: false, limit: 2 })
          .catch(() => {});
        if (answer?.status === 200) ids.push((answer.json as { result: string }).result);
        await clock.wait(START_PAUSE_MS, stopping.signal);
      }
    };
    const running = run();
    return {
      ids: ids as readonly string[],
      async stop() {
        stopping.abort();
        await running;
        return ids;
      },
    };
  }

  /**
   * Cancels a crawl. Resolves with the time at which the cancel was acknowledged. If the reply of the first attempt
   * was lost, the next attempt gets a conflict, which counts too.
   */
  function cancel(id: string): Promise<number> {
    const look = async () => {
      const answer = await scene.ask(`/${id}`, "DELETE").catch(() => {});
      return (answer?.status === 200 || answer?.status === 409) && Date.now();
    };
    return until(`crawl ${id} is cancelled`, look, JOB_MS_MAX);
  }

  /** Lists completed records while the crawl runs and adds more. */
  async function readAll(id: string): Promise<string[]> {
    return (await scene.records(id, "limit=2&status=completed")).map(({ url }) => url);
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

  /** Waits until a host with a delay has had more requests, or all of them, so that the kill hits a running crawl. */
  async function further(job: JobToCheck): Promise<void> {
    const slow = () =>
      site.requests.filter((one) => one.job === job.name && one.host !== FAST_HOST).length;
    const enough = slow() + scene.random.integer(1, 8);
    const isFurther = () => slow() >= enough || requestsMissing(site, job).length === 0;
    await until(`${job.name} goes on`, isFurther, JOB_MS_MAX);
  }
});
