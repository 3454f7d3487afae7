/** Waits, with a bounded patience, for what a page shows and does not have yet; then it is drawn with what it has. */
import { FONTS_WAIT_MS } from "../../schemas/limits.ts";
import type { Limits } from "../browser/load-page.ts";
import type { RenderContext } from "../browser/render-context.ts";
import { within } from "../browser/time-limit.ts";

/** Fonts that are still loading. */
export async function fontsReady(context: RenderContext, limits: Limits): Promise<void> {
  await patiently({ ...limits, ms: FONTS_WAIT_MS }, () => context.evaluate(LOADING_FONTS));
}

/** Images and all else that the document names, and what the page does with it at its load. Whether they came. */
export async function contentReady(
  context: Pick<RenderContext, "page" | "evaluate">,
  limits: Limits & { ms: number },
): Promise<boolean> {
  const { page } = context;
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  const load = () => resolve();
  page.once("load", load);
  try {
    return await patiently(limits, async () => {
      if ((await context.evaluate("document.readyState")) !== "complete") await loaded;
    });
  } finally {
    page.off("load", load);
  }
}

/** Waits so long, and no longer: what does not come then is no failure. Whether it came. */
export async function patiently(
  { ms, signal, clock }: Limits & { ms: number },
  wait: () => Promise<unknown>,
): Promise<boolean> {
  const late = new Error("it did not come in time");
  try {
    await within({ ms, error: () => late, signal, clock }, wait);
    return true;
  } catch (error) {
    if (error !== late) throw error;
    return false;
  }
}

// Runs in the page. Layout tells which fonts are needed. `document.fonts.ready` would wait for images and all else.
const LOADING_FONTS = `
  document.documentElement?.offsetHeight;
  Promise.allSettled(
    [...document.fonts].filter(({ status }) => status === "loading").map(({ loaded }) => loaded),
  ).then(() => undefined)`;
