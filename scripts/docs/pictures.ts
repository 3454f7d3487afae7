/**
 * Renews the pictures of the console in docs/images: `npm run docs:pictures`. The console's tests take a picture of
 * every page with its content; this program cuts the ones that documents show.
 */
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import puppeteer, { type Browser } from "puppeteer-core";
import { findChromium, REPOSITORY } from "../tools.ts";

/** The pictures of documents: the picture that a test takes, and the height that is kept. */
const PICTURES: Readonly<Record<string, readonly [taken: string, height: number]>> = {
  "console-agent": ["agent-1280-light", 900],
  "console-crawl": ["crawl-running-1280-light", 800],
  "console-home": ["home-1280-light", 800],
  "console-jobs": ["rendering-jobs-1280-light", 480],
  "console-narrow": ["home-menu-360-dark", 780],
  "console-oauth-client": ["client-1280-light", 1_000],
  "console-queues": ["operator-queues-1280-light", 900],
  "console-rendering": ["rendering-screenshot-1280-light", 800],
  "console-repository": ["repository-1280-light", 900],
  "console-webhook": ["delivery-1280-light", 900],
};

/** Runs the console's tests, which store their pictures in the folder. Throws if a test fails. */
function takePictures(folder: string): void {
  const runner = join(REPOSITORY, "scripts/testing/run-tests.ts");
  const { status } = spawnSync(process.execPath, [runner, "gateway/console"], {
    env: { ...process.env, PAGE_PICTURES: folder },
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("Cannot renew pictures: a test of the console failed");
}

async function cut(browser: Browser, from: string, to: string, heightMax: number): Promise<void> {
  const page = await browser.newPage();
  const text = `data:image/png;base64,${await readFile(from, "base64")}`;
  const [width, height] = (await page.evaluate(`(async () => {
    document.body.style.margin = 0;
    const image = Object.assign(new Image(), { src: ${JSON.stringify(text)} });
    await image.decode();
    image.style.display = "block";
    document.body.append(image);
    return [image.naturalWidth, image.naturalHeight];
  })()`)) as [number, number];
  await page.setViewport({ width, height });
  const clip = { x: 0, y: 0, width, height: Math.min(height, heightMax) };
  await page.screenshot({ path: to as `${string}.webp`, quality: 80, clip });
  await page.close();
}

/** A folder with pictures that the tests have stored may be given, so that they need not run again. */
const [given] = process.argv.slice(2);
const folder = given ?? (await mkdtemp(join(tmpdir(), "trunkline-pictures-")));
if (given === undefined) takePictures(folder);
const browser = await puppeteer.launch({
  executablePath: findChromium(process.env),
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
for (const [name, [taken, height]] of Object.entries(PICTURES)) {
  const to = join(REPOSITORY, `docs/images/${name}.webp`);
  await cut(browser, join(folder, `${taken}.png`), to, height);
}
await browser.close();
if (given === undefined) await rm(folder, { recursive: true });
