/** Crawls a site by Crawlee, once for each question, and keeps the same of each page as ours: address, title and HTML. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheerioCrawler, Configuration, Dataset, log } from "@crawlee/cheerio";
import { PuppeteerCrawler } from "@crawlee/puppeteer";
import puppeteer from "puppeteer";

log.setLevel(log.LEVELS.ERROR);
const folder = await mkdtemp(join(tmpdir(), "trunkline-bench-crawlee-"));
let runs = 0;

process.on("message", async ({ url, pages, render, chromium }) => {
  process.env.CRAWLEE_STORAGE_DIR = join(folder, String(++runs));
  const configuration = new Configuration({ persistStorage: true, purgeOnStart: true });
  const dataset = await Dataset.open(`pages-${runs}`, { config: configuration });
  const common = { maxRequestsPerCrawl: pages, respectRobotsTxtFile: false };
  const crawler = render
    ? new PuppeteerCrawler(
        {
          ...common,
          maxConcurrency: 8,
          launchContext: {
            launcher: puppeteer,
            launchOptions: { executablePath: chromium, headless: "shell", args: ["--no-sandbox"] },
          },
          async requestHandler({ page, request, enqueueLinks }) {
            const [title, html] = [await page.title(), await page.content()];
            await dataset.pushData({ url: request.loadedUrl, title, html });
            await enqueueLinks();
          },
        },
        configuration,
      )
    : new CheerioCrawler(
        {
          ...common,
          maxConcurrency: 50,
          async requestHandler({ $, body, request, enqueueLinks }) {
            const title = $("title").text();
            await dataset.pushData({ url: request.loadedUrl, title, html: body.toString() });
            await enqueueLinks();
          },
        },
        configuration,
      );
  const before = performance.now();
  await crawler.run([url]);
  const ms = performance.now() - before;
  const { itemCount } = await dataset.getInfo();
  process.send({ pages: itemCount, ms });
});
process.once("disconnect", end);
process.once("SIGTERM", end);
process.send("ready");

async function end() {
  await rm(folder, { recursive: true, force: true });
  process.exit();
}
