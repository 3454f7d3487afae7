/**
 * Waits a limited time for content that a page is still loading. After that time the page is drawn with the content
 * it has.
 */
import { LOOK_MS } from "../../../../schemas/rendering/limits.ts";
import { OVER } from "../../../runtime/lib/clock.ts";
import { IS_STILL } from "../../lib/browser/drawing-settled.ts";
import type { Limits } from "../../lib/browser/load-page.ts";
import { patiently } from "../../lib/browser/patiently.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

/**
 * Maximum time from the last image to the load event. If the load event does not come, for example because a script
 * hangs, the page is printed without it.
 */
export const LOAD_EVENT_MS = 100;
/** Maximum wait for fonts. Fonts that do not load in this time are replaced by others. */
const FONTS_WAIT_MS = 5_000;

/** The state of a page at one check. */
export interface Look {
  /** Nothing is loading and nothing moves, so every wait below would end immediately. */
  isReady: boolean;
  /** The value of the caller's expression. */
  found: unknown;
}

/**
 * Checks in one evaluation all conditions for which the functions below wait, because each evaluation takes two round
 * trips and most pages are ready. Undefined if the page does not respond in time.
 */
export async function lookOnce(
  context: Pick<RenderContext, "evaluate">,
  limits: Limits & { ms: number },
  expression = "undefined",
): Promise<Look | undefined> {
  let look: Look | undefined;
  await patiently({ ...limits, ms: Math.min(LOOK_MS, limits.ms) }, async () => {
    const text = `({ isReady: ${IS_READY}, found: ${expression} })`;
    look = (await context.evaluate(text)) as Look;
  });
  return look;
}

/** Waits for fonts that are still loading, at most FONTS_WAIT_MS. */
export async function fontsReady(context: RenderContext, limits: Limits): Promise<void> {
  await patiently({ ...limits, ms: FONTS_WAIT_MS }, () => context.evaluate(LOADING_FONTS));
}

/**
 * Waits for images and all other resources that the document names. A print needs no such wait, because Chromium
 * itself waits for them.
 */
export async function contentReady(
  context: Pick<RenderContext, "page" | "evaluate">,
  limits: Limits & { ms: number },
): Promise<void> {
  const { page } = context;
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  const load = () => resolve();
  page.once("load", load);
  try {
    await patiently(limits, async () => {
      if ((await context.evaluate("document.readyState")) !== "complete") await loaded;
    });
  } finally {
    page.off("load", load);
  }
}

/**
 * Waits for the load event while images are loading, so that the effects of its handlers are printed. Chromium waits
 * for images when it prints. But if printing starts in the few milliseconds between the last image and the load
 * event, Chromium prints without that event.
 */
export async function loadedSoon(
  context: Pick<RenderContext, "page" | "evaluate">,
  limits: Limits & { ms: number },
): Promise<void> {
  const { page } = context;
  const loaded = new AbortController();
  const load = () => loaded.abort(OVER);
  page.once("load", load);
  try {
    await patiently(limits, async (signal) => {
      const over = AbortSignal.any([loaded.signal, signal]);
      for (let isWaited = true; isWaited && !over.aborted; ) {
        const loading = await context.evaluate(LOADING);
        if (loading === "nothing") return;
        isWaited = loading === "images";
        await limits.clock.wait(LOAD_EVENT_MS, over);
      }
    });
  } finally {
    page.off("load", load);
  }
}

// Runs in the page.
const LOADING = `
  document.readyState === "complete" ? "nothing"
    : [...document.images].some(({ complete }) => !complete) ? "images" : "others"`;

// An expression for the page. It forces a layout, which determines the fonts that are needed.
const IS_READY = `
  document.readyState === "complete"
    && (document.documentElement?.offsetHeight, true)
    && [...document.fonts].every(({ status }) => status !== "loading")
    && ${IS_STILL}`;

// Runs in the page. It forces a layout, which determines the fonts that are needed. `document.fonts.ready` is not
// used, because it would also wait for images and other resources.
const LOADING_FONTS = `
  document.documentElement?.offsetHeight;
  Promise.allSettled(
    [...document.fonts].filter(({ status }) => status === "loading").map(({ loaded }) => loaded),
  ).then(() => undefined)`;
