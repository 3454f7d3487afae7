/** The reference for PDFs: puppeteer in a warm process, with the same browser and the same flags. */
import puppeteer, { type Browser } from "puppeteer-core";
import { Chromium } from "../../../actors/rendering/lib/browser/chromium.ts";
import { findChromium } from "../../tools.ts";
import { answerParent } from "../answer-parent.ts";
import { runLoad } from "../run-load.ts";

const chromium = await Chromium.start({ executablePath: findChromium() });
const browser = await puppeteer.connect({ transport: chromium.transport });

answerParent({
  answer(question) {
    // Asked by the benchmark of PDFs alone.
    const { html, ...volume } = question as { html: string; inFlight: number; ms: number };
    return runLoad(volume, () => print(browser, html));
  },
  close: () => chromium.kill(),
});

async function print(browser: Browser, html: string): Promise<void> {
  const context = await browser.createBrowserContext();
  try {
    const page = await context.newPage();
    await page.setContent(html);
    await page.pdf();
  } finally {
    await context.close();
  }
}
