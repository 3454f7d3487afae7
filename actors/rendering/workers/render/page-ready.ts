/** Waits, with a bounded patience, for what a page shows and does not have yet; then it is drawn with what it has. */
import { LOOK_MS } from "../../../../schemas/rendering/limits.ts";
import { OVER } from "../../../runtime/lib/clock.ts";
import { IS_STILL } from "../../lib/browser/drawing-settled.ts";
import type { Limits } from "../../lib/browser/load-page.ts";
import { patiently } from "../../lib/browser/patiently.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

/** From the last image to the load event; a page that has none, or a script that hangs, is printed without. */
export const LOAD_EVENT_MS = 100;
/** Fonts that do not come in this time are replaced by others. */
const FONTS_WAIT_MS = 5_000;

/** A page as one look finds it. */
export interface Look {
  /** Nothing is on its way and nothing moves, so every wait below would end at once. */
  isReady: boolean;
  /** The value of the caller's expression. */
  found: unknown;
}

/**
 * Looks once at all that the waits below look at, since each look takes two round trips, and most pages are ready.
 * Undefined where the page does not answer in time.
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

/** Fonts that are still loading. */
export async function fontsReady(context: RenderContext, limits: Limits): Promise<void> {
  await patiently({ ...limits, ms: FONTS_WAIT_MS }, () => context.evaluate(LOADING_FONTS));
}

/** Images and all else that the document names: what Chromium itself waits for when it prints. */
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
 * The load event, while images are on their way, and what the page does at it. Chromium waits for images where it is
 * asked to print, but prints without that event where it is asked in the milliseconds between the last of them and
 * it.
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

// An expression for the page. Layout tells which fonts are needed.
const IS_READY = `
  document.readyState === "complete"
    && (document.documentElement?.offsetHeight, true)
    && [...document.fonts].every(({ status }) => status !== "loading")
    && ${IS_STILL}`;

// Runs in the page. Layout tells which fonts are needed. `document.fonts.ready` would wait for images and all else.
const LOADING_FONTS = `
  document.documentElement?.offsetHeight;
  Promise.allSettled(
    [...document.fonts].filter(({ status }) => status === "loading").map(({ loaded }) => loaded),
  ).then(() => undefined)`;
