/**
 * The reference for the settled pages: plain puppeteer loads a page, waits five seconds, and takes the HTML and a
 * picture.
 */
import { setTimeout as sleep } from "node:timers/promises";
import puppeteer from "puppeteer-core";
import { Chromium } from "../../../../actors/rendering/lib/browser/chromium.ts";
import { findChromium } from "../../../tools.ts";
import { answerParent } from "../../answer-parent.ts";
import type { Taken } from "../settled.ts";

const WAIT_MS = 5_000;

const chromium = await Chromium.start({ executablePath: findChromium() });
const browser = await puppeteer.connect({ transport: chromium.transport });

answerParent({
  answer: (question) => take((question as { url: string }).url),
  close: () => chromium.kill(),
});

async function take(url: string): Promise<Taken> {
  const startedAt = performance.now();
  const context = await browser.createBrowserContext({ proxyServer: "direct://" });
  try {
    const page = await context.newPage();
    await page.setViewport({ width: 1280, height: 720 });
    await page.goto(url, { waitUntil: "load" });
    await sleep(WAIT_MS);
    const html = await page.content();
    const picture = Buffer.from(await page.screenshot()).toString("base64");
    return { html, picture, ms: performance.now() - startedAt };
  } finally {
    await context.close();
  }
}
