/** The reference for PDFs: puppeteer in a warm process, with the same browser and the same flags as Trunkline. */
import puppeteer, { type Browser } from "puppeteer-core";
import { Chromium } from "../../../actors/rendering/lib/browser/chromium.ts";
import { findChromium } from "../../tools.ts";
import { answerParent } from "../answer-parent.ts";
import { runLoad } from "../run-load.ts";

/** The page to print. */
type Page = { html: string } | { url: string };

const chromium = await Chromium.start({ executablePath: findChromium() });
const browser = await puppeteer.connect({ transport: chromium.transport });

answerParent({
  answer(question) {
    // The cast is safe, because only the PDF benchmarks send questions to this process.
    const { page, ...volume } = question as { page: Page; inFlight: number; ms: number };
    return runLoad(volume, () => print(browser, page));
  },
  close: () => chromium.kill(),
});

async function print(browser: Browser, printed: Page): Promise<void> {
  // Overrides the proxy, because the browser's flags name a proxy that does not exist here.
  const context = await browser.createBrowserContext({ proxyServer: "direct://" });
  try {
    const page = await context.newPage();
    if ("url" in printed) await page.goto(printed.url);
    else await page.setContent(printed.html);
    await page.pdf();
  } finally {
    await context.close();
  }
}
