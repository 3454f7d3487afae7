/** Scrolls a page to its end and back, so that content which loads only when visible starts to load. */

import type { Limits } from "../../lib/browser/load-page.ts";
import { patiently } from "../../lib/browser/patiently.ts";
import type { PageRequest } from "../../lib/browser/prepare-page.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

/**
 * Maximum distance that a page is scrolled, in CSS pixels: about ninety sheets of paper, or more than the tallest
 * picture.
 */
const SCROLL_PX_MAX = 100_000;

/**
 * Scrolls the page. A page that keeps growing is scrolled at most SCROLL_PX_MAX pixels and at most `ms` milliseconds.
 */
export async function scrollThrough(
  context: Pick<RenderContext, "evaluate">,
  { setJavaScriptEnabled }: Pick<PageRequest, "setJavaScriptEnabled">,
  limits: Limits & { ms: number },
): Promise<void> {
  // Without JavaScript no scrolling is needed. Browsers then load lazy images immediately, so that sites cannot track
  // which part a user reads.
  if (setJavaScriptEnabled === false) return;
  await patiently(limits, () => context.evaluate(SCROLLING));
}

// Runs in the page. The browser detects newly visible elements within two frames, so each step waits for two frames.
const SCROLLING = `(async () => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const bottom = () => Math.min(document.documentElement.scrollHeight, ${SCROLL_PX_MAX});
  for (let y = 0; y < bottom(); y += innerHeight) {
    scrollTo({ top: y, behavior: "instant" });
    await frame();
  }
  await Promise.allSettled([...document.images].map((image) => image.complete || new Promise((resolve) => {
    image.addEventListener("load", resolve);
    image.addEventListener("error", resolve);
  })));
  scrollTo({ top: 0, behavior: "instant" });
  await frame();
})()`;
