/** Waits until what moves on a page has come to its end: a chart in mid-animation shows values that are false. */
import type { Clock } from "../../../runtime/lib/clock.ts";
import { patiently } from "./patiently.ts";
import type { RenderContext } from "./render-context.ts";

/** Animations that have not ended by then are printed as they are; those of chart libraries take a second. */
export const DRAWING_SETTLE_MS = 2_000;
/** Two samples of what is drawn, this far apart, are compared: some frames also on a busy machine. */
export const DRAWING_SAMPLE_MS = 100;
/** Pixels of canvases that one sample reads, some 4 ms: a page with more is compared by the first of them. */
const DRAWING_PIXELS_MAX = 4_000_000;
/** Smaller SVG images are icons, which most pages have and few pages move. */
const DRAWING_SVG_PIXELS_MIN = 10_000;

/**
 * Resolves when finite CSS and Web animations have ended and canvases and large SVG images stay the same, or
 * after DRAWING_SETTLE_MS: some pages never stop. A page that shows neither pays one question.
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
      // While an animation runs, no sample is the same as another.
      before = sample === MOVING ? undefined : sample;
      await clock.wait(DRAWING_SAMPLE_MS, signal);
    }
  });
}

/** Nothing on the page can move. */
export const STILL = "still";
/** A finite animation runs. */
export const MOVING = "moving";

// For the page: what can move there.
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

/** An expression for the page: whether DRAWING_SAMPLE would be STILL. */
export const IS_STILL = `(() => {
  ${DRAWINGS}
  return canvases.length + images.length === 0 && !document.getAnimations().some(isMoving);
})()`;

// An expression for the page: STILL, MOVING, or a text that differs when the drawings do. Two frames are drawn before a
// sample, so that on a busy machine two samples are equal only when the page had the chance to draw between them. A canvas with pixels of another site cannot be read, and one of WebGL reads as
// empty: neither is waited for.
export const DRAWING_SAMPLE = `(async () => {
  ${DRAWINGS}
  if (document.getAnimations().some(isMoving)) return "${MOVING}";
  if (canvases.length + images.length === 0) return "${STILL}";
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  let hash = 0;
  let pixelsLeft = ${DRAWING_PIXELS_MAX};
  const add = (value) => { hash = (Math.imul(hash, 31) + value) | 0; };
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
