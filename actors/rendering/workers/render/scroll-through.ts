/** Scrolls a page to its end and back, so that what loads only on sight begins to. */

import type { Limits } from "../../lib/browser/load-page.ts";
import { patiently } from "../../lib/browser/patiently.ts";
import type { PageRequest } from "../../lib/browser/prepare-page.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

/** Distance that a page is scrolled, in CSS pixels: some ninety sheets of paper, or the tallest picture. */
const SCROLL_PX_MAX = 100_000;

/** A page that keeps growing is scrolled as far as SCROLL_PX_MAX, and no longer than `ms`. */
export async function scrollThrough(
  context: Pick<RenderContext, "evaluate">,
  { setJavaScriptEnabled }: Pick<PageRequest, "setJavaScriptEnabled">,
  limits: Limits & { ms: number },
): Promise<void> {
  // Without JavaScript, browsers load lazy images at once, so that pages cannot watch what people read.
  if (setJavaScriptEnabled === false) return;
  await patiently(limits, () => context.evaluate(SCROLLING));
}

// Runs in the page. What comes into sight is known with the frame after the next.
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
