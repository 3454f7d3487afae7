/**
 * Benchmarks a crawl of real pages, the manual of PostgreSQL: compares rate, processor time and memory with other
 * crawlers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock as clock } from "../../../actors/runtime/lib/clock.ts";
import { alternate, type Benchmark, type Figure, median } from "../benchmark.ts";
import { Child } from "../child.ts";
import { Instance } from "../instance.ts";
import { processTree } from "../process-tree.ts";
import { unpackDebian } from "../unpack-debian.ts";
import { type Crawled, crawlBy } from "./crawl.ts";
import { startCrawlee } from "./crawlee-process.ts";
import { type CrawlCost, colly, scrapy } from "./other-crawlers.ts";

/** 1,169 pages of 14 kB. */
const MANUAL = { package: "postgresql-doc-15", folder: "usr/share/doc/postgresql-doc-15/html" };
/** Pause after the start. In it, the start's garbage is collected and the first leases are renewed. */
const SETTLE_MS = 10_000;
const POLL_MS = 50;
const MEMORY_LOOK_MS = 250;

export const crawlManual: Benchmark = {
  name: "crawl-manual",
  async run() {
    const scratch = mkdtempSync(join(tmpdir(), "trunkline-bench-"));
    try {
      return await measure(scratch);
    } finally {
      rmSync(scratch, { recursive: true });
    }
  },
};

async function measure(scratch: string): Promise<Figure[]> {
  const folder = process.env.TRUNKLINE_BENCH_PAGES ?? unpackDebian(scratch, MANUAL);
  const byColly = await colly();
  if (byColly === undefined) throw new Error("Cannot compare with colly: install Go");
  const byScrapy = scrapy();
  await using crawlee = await startCrawlee();
  await using site = await Child.start("crawl/folder-site-process", folder);
  const { url, pages } = await site.ask<{ url: string; pages: number }>({});
  await using instance = await Instance.start();
  await clock.wait(SETTLE_MS);
  const idleBytes = memoryOf(instance);
  const task = { url, pages: pages + 1, output: join(scratch, "pages.jsonl") };
  const crawl = (format: string) => costOf(instance, task, format);
  const { ours, reference } = await alternate(
    () => byColly(task),
    () => crawl("html"),
  );
  const byMarkdown = await crawl("markdown");
  const ofScrapy = await byScrapy?.(task);
  const ofCrawlee = await crawlee.ask<Crawled>({ url, pages: task.pages, render: false });
  const rate = median(ours.map(rateOf));
  const above = (costs: CrawlCost[]) =>
    (Math.max(...costs.map(({ peakBytes }) => peakBytes)) - idleBytes) / 1e6;
  const name = `crawl of ${pages} real pages`;
  const pace = { name, unit: "pages/s", ours: rate };
  return [
    {
      ...{ ...pace, name: `${name}, colly`, reference: median(reference.map(rateOf)) },
      target: { atLeast: 1 },
    },
    { ...pace, name: `${name}, Crawlee`, reference: rateOf(ofCrawlee), target: { atLeast: 10 } },
    ...(ofScrapy ? [{ ...pace, name: `${name}, Scrapy`, reference: rateOf(ofScrapy) }] : []),
    {
      name: `${name}, processor time of a page, colly`,
      unit: "ms",
      ours: median(ours.map(cpuOf)),
      reference: median(reference.map(cpuOf)),
      target: { atMost: 1.3 },
    },
    { name: `${name}, Markdown`, unit: "pages/s", ours: rateOf(byMarkdown) },
    {
      ...{ name: `${name}, memory above idle at most`, unit: "MB PSS" },
      ...{ ours: above(ours), target: { atMost: 250 } },
    },
    {
      ...{ name: `${name}, Markdown, memory above idle at most`, unit: "MB PSS" },
      ...{ ours: above([byMarkdown]), target: { atMost: 250 } },
    },
    ...[reference, ...(ofScrapy ? [[ofScrapy]] : [])].map((costs, index) => ({
      name: `${name}, memory of ${index === 0 ? "colly" : "Scrapy"}`,
      unit: "MB RSS",
      ours: Math.max(...costs.map(({ peakBytes }) => peakBytes)) / 1e6,
    })),
  ];
}

/** Runs one crawl through Trunkline's API, and measures the resources that the instance's processes use meanwhile. */
async function costOf(
  instance: Instance,
  { url, pages }: { url: string; pages: number },
  format: string,
): Promise<CrawlCost> {
  let peakBytes = 0;
  const look = () => {
    peakBytes = Math.max(peakBytes, memoryOf(instance));
  };
  const timer = setInterval(look, MEMORY_LOOK_MS);
  const before = processorOf(instance);
  try {
    const request = { url, limit: pages, render: false, formats: [format] };
    const crawled = await crawlBy(instance, request, POLL_MS);
    look();
    return { ...crawled, cpuMs: processorOf(instance) - before, peakBytes };
  } finally {
    clearInterval(timer);
  }
}

const rateOf = ({ pages, ms }: Crawled) => (pages / ms) * 1_000;
const cpuOf = ({ cpuMs, pages }: CrawlCost) => cpuMs / pages;
const memoryOf = ({ pid }: Instance) => processTree(pid).reduce((sum, { bytes }) => sum + bytes, 0);
const processorOf = ({ pid }: Instance) =>
  processTree(pid).reduce((sum, { cpuMs }) => sum + cpuMs, 0);
