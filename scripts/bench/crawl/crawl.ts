/**
 * Benchmarks the crawl of a fast site against Crawlee, with the same data stored of each page. Also compares a crawl
 * of many hosts with the pace that the delays of the hosts allow.
 */
import { setTimeout } from "node:timers/promises";
import type { Arrival } from "../../testing/arrivals.ts";
import { findChromium } from "../../tools.ts";
import { alternate, type Benchmark, type Figure, median } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { startCrawlee } from "./crawlee-process.ts";
import { HOST_PAGES, HOSTS, SITE_PAGES, type SiteFacts } from "./site-facts.ts";

const DELAY_MS = 500;
/**
 * Number of pages to crawl with a browser. It is lower, because a page in a browser takes both crawlers at least ten
 * times as long.
 */
const RENDERED_PAGES = 100;
const POLL_MS = 20;
/**
 * Interval between status requests for a crawl that waits for its delays. More frequent requests would slow the crawl
 * down.
 */
const SLOW_POLL_MS = 250;
const CRAWL_MS_MAX = 180_000;

export interface Crawled {
  pages: number;
  ms: number;
}

export const crawl: Benchmark = {
  name: "crawl",
  async run() {
    await using instance = await Instance.start();
    await using site = await Child.start("crawl/site-process");
    await using crawlee = await startCrawlee();
    const facts = await site.ask<SiteFacts>({});
    const chromium = findChromium();
    const figures: Figure[] = [];
    for (const { render, pages, target } of [
      { render: false, pages: SITE_PAGES, target: 5 },
      { render: true, pages: RENDERED_PAGES, target: 3 },
    ]) {
      const rounds = await alternate(
        () => crawlee.ask<Crawled>({ url: facts.site, pages, render, chromium }),
        () => crawlBy(instance, { url: facts.site, limit: pages, render }),
      );
      const rate = ({ pages, ms }: Crawled) => (pages / ms) * 1_000;
      figures.push({
        name: `crawl of ${pages} pages, render: ${render}`,
        unit: "pages/s",
        ours: median(rounds.ours.map(rate)),
        reference: median(rounds.reference.map(rate)),
        target: { atLeast: target },
      });
    }
    await site.ask<SiteFacts>({});
    const hosts = {
      url: facts.hosts,
      limit: HOSTS * HOST_PAGES + 1,
      render: false,
      options: { includeExternalLinks: true },
    };
    await crawlBy(instance, hosts, SLOW_POLL_MS);
    const { arrivals } = await site.ask<SiteFacts>({});
    figures.push({
      name: `crawl of ${HOSTS} hosts, share of the pace their delays allow`,
      unit: "",
      ours: median(arrivals.map((came) => shareOfPace(came.map(({ at }) => at)))),
      target: { atLeast: 0.98 },
    });
    figures.push({
      name: "shortest time between two requests to a host, at most",
      unit: "ms",
      ours: Math.min(...arrivals.flatMap(gaps)),
      target: { atLeast: DELAY_MS },
    });
    return figures;
  },
};

/** Runs a crawl through the API and waits until the job is completed. */
export async function crawlBy(
  instance: Instance,
  request: object,
  pollMs = POLL_MS,
): Promise<Crawled> {
  const ask = instance.requester();
  const before = performance.now();
  const body = { formats: ["html"], maxAge: 0, ...request };
  const started = await ask("POST", "browser-rendering/crawl", body);
  const { result: id } = (await started.json()) as { result: string };
  for (const giveUpAt = before + CRAWL_MS_MAX; performance.now() < giveUpAt; ) {
    const answer = await ask("GET", `browser-rendering/crawl/${id}?limit=1`);
    const { result } = (await answer.json()) as { result: { status: string; finished: number } };
    if (result.status === "completed") {
      return { pages: result.finished, ms: performance.now() - before };
    }
    if (result.status !== "running") throw new Error(`Cannot crawl: the job is ${result.status}`);
    await setTimeout(pollMs);
  }
  throw new Error(`Cannot crawl: the job still runs after ${CRAWL_MS_MAX} ms`);
}

/**
 * Returns upper bounds of the gaps between requests. One process serves 50 hosts, so it may notice a request some
 * time after the arrival.
 */
const gaps = (came: Arrival[]) =>
  came.slice(1).map(({ at }, index) => at - (came[index]?.since ?? Number.NaN));

/**
 * Returns the minimum time that the delays between a host's requests require, divided by the measured time from its
 * first to its last request.
 */
export function shareOfPace(times: number[]): number {
  const took = (times.at(-1) ?? 0) - (times[0] ?? 0);
  return ((times.length - 1) * DELAY_MS) / took;
}
