/** Measures how much slower a crawl requests pages of its hosts when the process that schedules them is killed. */
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { CrawlScene } from "../../testing/crawl-scene.ts";
import { CrawlSite } from "../../testing/crawl-site.ts";
import type { Benchmark } from "../benchmark.ts";
import { shareOfPace } from "./crawl.ts";

/** Number of crawled hosts. It is high enough that the killed process schedules some of them. */
const HOSTS = 8;
const REQUESTS = 100;
/** Number of requests to a host before the kill, so the kill happens in the middle of the 100 requests. */
const REQUESTS_BEFORE = 30;
/** Target: the crawl is at most 5 % slower than its delays allow. */
const SHARE_MIN = 0.952;
const POLL_MS = 100;

export const crawlDeath: Benchmark = {
  name: "crawl-death",
  async run() {
    await using site = await CrawlSite.start(
      Array.from({ length: HOSTS }, (_, index) => ({
        ...{ address: `127.0.31.${index + 1}`, pages: REQUESTS + 10 },
        ...{ sitemap: true, answerMs: 5 },
      })),
    );
    await using scene = await CrawlScene.start({ actors: 2, direct: true });
    for (const [host, origin] of site.origins.entries()) {
      await scene.startCrawl({
        ...{ url: `${origin}/`, limit: REQUESTS + 10 },
        ...{ render: false, maxAge: 0, setExtraHTTPHeaders: { "x-job": `host ${host}` } },
      });
    }
    const timesOf = (host: number) =>
      site.requests.filter((request) => request.host === host).map(({ at }) => at);
    const hosts = [...site.origins.keys()];
    const untilEachHas = async (count: number) => {
      while (hosts.some((host) => timesOf(host).length <= count)) await clock.wait(POLL_MS);
    };
    await untilEachHas(REQUESTS_BEFORE);
    await scene.killOne("actors");
    await untilEachHas(REQUESTS);
    const shares = hosts.map((host) => shareOfPace(timesOf(host).slice(0, REQUESTS + 1)));
    const name = `${REQUESTS} requests to a host while a node dies, share of their pace`;
    return [
      {
        name: `${name}, worst of ${HOSTS}`,
        unit: "",
        ours: Math.min(...shares),
        target: { atLeast: SHARE_MIN },
      },
      { name: `${name}, best`, unit: "", ours: Math.max(...shares) },
    ];
  },
};
