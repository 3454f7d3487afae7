/** Computes which part of a page becomes the picture. Refuses an area that is too large or not visible. */
import { ActorError } from "../../../../schemas/errors.ts";
import {
  isPictureSize,
  isTallPicture,
  type PictureOptions,
  type ScreenshotRequest,
} from "../../../../schemas/rendering/http/screenshot.ts";
import {
  SCREENSHOT_PIXELS_MAX,
  SCREENSHOT_SIDE_PX_MAX,
  TALL_PICTURE_PIXELS_MAX,
  TALL_PICTURE_PX_MAX,
} from "../../../../schemas/rendering/limits.ts";
import { checkSelector } from "../../lib/browser/css-selector.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";

/** An area in CSS pixels, measured from the top left corner of the page. */
export interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
  scale: number;
}

interface Pictured extends Pick<ScreenshotRequest, "selector" | "viewport"> {
  screenshotOptions: PictureOptions;
}

/** Returns the area of the picture; undefined if the picture shows only the window. */
export async function pictureArea(
  context: RenderContext,
  { selector, screenshotOptions, viewport }: Pictured,
): Promise<Area | undefined> {
  const { clip, fullPage, captureBeyondViewport } = screenshotOptions;
  const element = selector === undefined ? undefined : await boxOf(context, selector);
  if (clip === undefined && element === undefined && !fullPage) return undefined;
  const { cssContentSize, cssVisualViewport } = await context.session.send("Page.getLayoutMetrics");
  const { x, y } = element ?? { x: 0, y: 0 };
  const area = rounded(
    clip ? { ...clip, x: x + clip.x, y: y + clip.y } : (element ?? cssContentSize),
    clip?.scale ?? 1,
  );
  const density = area.scale * (viewport?.deviceScaleFactor ?? 1);
  const isPossible =
    isPictureSize(area, density) || isTallPicture(area, density, screenshotOptions);
  if (!isPossible) throw tooLarge(area, density, screenshotOptions);
  if (clip && captureBeyondViewport === false) {
    const { pageX, pageY, clientWidth, clientHeight } = cssVisualViewport;
    const isSeen =
      area.x < pageX + clientWidth &&
      area.y < pageY + clientHeight &&
      area.x + area.width > pageX &&
      area.y + area.height > pageY;
    if (!isSeen) throw unseen();
  }
  return area;
}

/** Returns the area of the first element that matches the selector, after scrolling to it. */
async function boxOf(context: RenderContext, selector: string): Promise<Omit<Area, "scale">> {
  await checkSelector(context, selector, "/selector");
  using element = await context.page.$(selector);
  if (element === null) throw notFound(selector, "the page has no such element");
  await element.scrollIntoView();
  const box = await element.boundingBox();
  if (box === null || Math.round(box.width) < 1 || Math.round(box.height) < 1) {
    throw notFound(selector, "it takes no room on the page");
  }
  const { cssVisualViewport: window } = await context.session.send("Page.getLayoutMetrics");
  return { ...box, x: box.x + window.pageX, y: box.y + window.pageY };
}

/** Returns the area in whole CSS pixels, with at least one pixel on each side. */
function rounded({ x, y, width, height }: Omit<Area, "scale">, scale: number): Area {
  const [left, top] = [Math.round(x), Math.round(y)];
  const right = Math.round(x + width);
  const bottom = Math.round(y + height);
  return {
    x: left,
    y: top,
    width: Math.max(1, right - left),
    height: Math.max(1, bottom - top),
    scale,
  };
}

function notFound(selector: string, reason: string): ActorError {
  return new ActorError("element_not_found", `Cannot capture "${selector}": ${reason}`);
}

function tooLarge(
  { width, height }: Area,
  density: number,
  { fullPage }: PictureOptions,
): ActorError {
  const size = `${Math.ceil(width * density)} × ${Math.ceil(height * density)} device pixels`;
  const usual = `${SCREENSHOT_SIDE_PX_MAX} a side and ${SCREENSHOT_PIXELS_MAX} in all are the most`;
  const tall = `of a png, ${TALL_PICTURE_PX_MAX} down and ${TALL_PICTURE_PIXELS_MAX} in all`;
  const most = fullPage ? `${usual}; ${tall}` : usual;
  return new ActorError("page_not_printable", `Cannot capture the page: it is ${size}; ${most}`);
}

function unseen(): ActorError {
  const fault = {
    pointer: "/screenshotOptions/clip",
    message: "Expected an area of which some is in the window, or captureBeyondViewport",
  };
  const text = "Cannot capture the page: the clip is outside of the window";
  return new ActorError("invalid_request", text, { faults: [fault] });
}
