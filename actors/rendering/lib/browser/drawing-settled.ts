/**
 * Waits until the animations of a page have ended, because a chart in the middle of its animation shows false values.
 */
import type { Clock } from "../../../runtime/lib/clock.ts";
import { patiently } from "./patiently.ts";
import type { RenderContext } from "./render-context.ts";

/**
 * Maximum wait. Animations that are still running then are printed as they are. Those of chart libraries take about a
 * second.
 */
export const DRAWING_SETTLE_MS = 2_000;
/**
 * Time between two samples of the drawings that are compared. Even a busy machine draws several frames in this time.
 */
export const DRAWING_SAMPLE_MS = 100;
/**
 * Maximum canvas pixels that one sample reads, which takes about 4 ms. If the canvases of a page have more pixels
 * together, only the first canvases are compared.
 */
const DRAWING_PIXELS_MAX = 4_000_000;
/**
 * Minimum pixels of an SVG image that is compared. Smaller ones are icons: most pages have some, but few pages
 * animate them.
 */
const DRAWING_SVG_PIXELS_MIN = 10_000;

/**
 * Resolves when finite CSS and Web animations have ended and canvases and large SVG images no longer change. Resolves
 * in any case after DRAWING_SETTLE_MS, because some pages never stop. A page without animations, canvases and large
 * SVG images costs only one evaluation.
 */
export async function drawingSettled(
  context: Pick<RenderContext, "evaluate">,
  limits: { signal: AbortSignal; clock: Clock },
): Promise<void> {
  const { clock } = limits;
  await patiently({ ...limits, ms: DRAWING_SETTLE_MS }, async (signal) => {
    let before: unknown;
    while (!signal.aborted) {
      const sample = await context.evaluate(DRAWING_SAMPLE);
      if (sample === STILL || sample === before) return;
      // While an animation runs, a sample equals no other sample.
      before = sample === MOVING ? undefined : sample;
      await clock.wait(DRAWING_SAMPLE_MS, signal);
    }
  });
}

/** Nothing on the page can move. */
export const STILL = "still";
/** A finite animation runs. */
export const MOVING = "moving";

// Code for the page: finds the animations, canvases and large SVG images that can move.
const DRAWINGS = `
  const isMoving = (animation) =>
    animation.playState === "running" && animation.timeline === document.timeline &&
    Number.isFinite(animation.effect?.getComputedTiming().endTime);
  const isLarge = (element) => {
    const { width, height } = element.getBoundingClientRect();
    return width * height >= ${DRAWING_SVG_PIXELS_MIN};
  };
  const canvases = [...document.querySelectorAll("canvas")];
  const images = [...document.querySelectorAll("svg")].filter(isLarge);`;

/** An expression for the page. Its value is true if DRAWING_SAMPLE would return STILL. */
export const IS_STILL = `(() => {
  ${DRAWINGS}
  return canvases.length + images.length === 0 && !document.getAnimations().some(isMoving);
})()`;

// An expression for the page. It returns STILL, MOVING, or a text that changes when the drawings change. It waits for
// two frames before a sample. So even on a busy machine two samples are equal only if the page could draw between
// them. A canvas with pixels of another site cannot be read, and a WebGL canvas reads as empty, so both are ignored.
export const DRAWING_SAMPLE = `(async () => {
  ${DRAWINGS}
  if (document.getAnimations().some(isMoving)) return "${MOVING}";
  if (canvases.length + images.length === 0) return "${STILL}";
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  let hash = 0;
  let pixelsLeft = ${DRAWING_PIXELS_MAX};
  // The rotation lets every bit of a value reach all bits of the hash. A black pixel has ones in its highest bits alone.
  const add = (value) => { hash = Math.imul(((hash << 13) | (hash >>> 19)) ^ value, 0x5bd1e995); };
  for (const { width, height } of canvases) add(width * 65_537 + height);
  for (const canvas of canvases) {
    pixelsLeft -= canvas.width * canvas.height;
    if (pixelsLeft < 0) break;
    if (canvas.width === 0 || canvas.height === 0) continue;
    try {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      for (const value of new Uint32Array(data.buffer)) add(value);
    } catch {}
  }
  for (const { outerHTML } of images) for (let i = 0; i < outerHTML.length; i++) add(outerHTML.charCodeAt(i));
  return "drawn " + hash;
})()`;
