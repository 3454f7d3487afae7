/** The body of a screenshot request: a page, the captured part, and the image format. */
import { z } from "zod";
import { shapedLike } from "../../http/shaped-like.ts";
import { SELECTOR_CHARS_MAX } from "../../limits.ts";
import {
  CLIP_PX_MAX,
  CLIP_SCALE_MAX,
  CLIP_SCALE_MIN,
  SCREENSHOT_PIXELS_MAX,
  SCREENSHOT_SIDE_PX_MAX,
  TALL_PICTURE_PIXELS_MAX,
  TALL_PICTURE_PX_MAX,
  TILE_ROWS_UNIT,
} from "../limits.ts";
import {
  documentFields,
  normalizePage,
  pageParameterFields,
  pageRules,
} from "./page-parameters.ts";

const PICTURE_TYPES = ["png", "jpeg", "webp"] as const;

const Clip = z
  .strictObject(
    {
      x: z.number().min(0).max(CLIP_PX_MAX),
      y: z.number().min(0).max(CLIP_PX_MAX),
      width: z.number().min(1).max(CLIP_PX_MAX),
      height: z.number().min(1).max(CLIP_PX_MAX),
      scale: z.number().min(CLIP_SCALE_MIN).max(CLIP_SCALE_MAX).optional().meta({ default: 1 }),
    },
    { error: shapedLike({ x: 0, y: 0, width: 800, height: 600 }) },
  )
  .describe(
    "The part to capture, in CSS pixels from the corner of the page, or of the element where there is a selector",
  );

/** The options of a picture, without `encoding`. */
const pictureFields = {
  type: z.enum(PICTURE_TYPES).default("png").describe("Image format"),
  quality: z
    .int()
    .min(0)
    .max(100)
    .optional()
    .describe("Quality of a jpeg or webp image; not valid with png"),
  fullPage: flag(false).describe("Captures the whole page instead of the window"),
  clip: Clip.optional(),
  omitBackground: flag(false).describe(
    "Transparent where the page has no background; without effect on a jpeg",
  ),
  captureBeyondViewport: flag(true).describe(
    "Draw what lies outside of the window as it is. If not, a clip is cut off at the window, and for a full page the window grows",
  ),
  optimizeForSpeed: flag(false).describe("Encodes faster into a larger file"),
  fromSurface: z.boolean().optional().describe("Accepted but has no effect"),
};

/** The options of a picture that is part of a larger response. Its encoding is always base64. */
export const PictureOptions = z
  .strictObject(pictureFields)
  .superRefine(pictureRules)
  .meta({ title: "PictureOptions" });
export type PictureOptions = z.output<typeof PictureOptions>;

export const ScreenshotOptions = z
  .strictObject({
    ...pictureFields,
    encoding: z
      .enum(["binary", "base64"])
      .default("binary")
      .describe("Image bytes, or base64 text"),
  })
  .superRefine(pictureRules)
  .meta({ title: "ScreenshotOptions" });
export type ScreenshotOptions = z.output<typeof ScreenshotOptions>;

function pictureRules(
  {
    type,
    quality,
    fullPage,
    clip,
  }: {
    type: string;
    quality?: number | undefined;
    fullPage?: boolean | undefined;
    clip?: object | undefined;
  },
  context: z.core.$RefinementCtx,
): void {
  const refused = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  if (type === "png" && quality !== undefined) {
    refused(
      "quality",
      "Expected no quality with type png: set type to jpeg or webp, or remove quality",
    );
  }
  if (fullPage && clip !== undefined) refused("clip", "Expected at most one of clip and fullPage");
}

export const ScreenshotRequest = z
  .strictObject({
    ...pageParameterFields,
    ...documentFields,
    selector: z
      .string()
      .min(1)
      .max(SELECTOR_CHARS_MAX)
      .optional()
      .describe("CSS selector of the one element to capture, once the page is ready"),
    screenshotOptions: ScreenshotOptions.prefault({}).describe(
      "The area to capture and the image format",
    ),
  })
  .check(pageRules)
  .check(pictureSizeRules)
  .check(({ value, issues }) => {
    if (value.selector === undefined || !value.screenshotOptions?.fullPage) return;
    const message = "Expected at most one of selector and fullPage";
    issues.push({ code: "custom", path: ["selector"], message, input: value });
  })
  .meta({ example: { html: "<h1>Hello</h1>", screenshotOptions: { type: "png" } } })
  .transform(normalizePage);
export type ScreenshotRequest = z.output<typeof ScreenshotRequest>;

interface Sized {
  viewport?: { width: number; height: number; deviceScaleFactor?: number | undefined } | undefined;
  screenshotOptions?: { clip?: z.output<typeof Clip> | undefined } | undefined;
}

/** Refuses a window or a clip that is too large for a picture. Use it as a `check` of an endpoint's object. */
export function pictureSizeRules({ value, issues }: z.core.ParsePayload<Sized>): void {
  const refused = (path: string[], message: string) =>
    issues.push({ code: "custom", path, message, input: value });
  const { viewport, screenshotOptions: options } = value;
  const density = viewport?.deviceScaleFactor ?? 1;
  const most = `at most ${SCREENSHOT_SIDE_PX_MAX} device pixels a side and ${SCREENSHOT_PIXELS_MAX} in all`;
  // The whole window is drawn, even if only a part of it is captured.
  if (viewport && !isPictureSize(viewport, density)) {
    refused(["viewport"], `Expected a window of ${most}`);
  }
  const clip = options?.clip;
  if (clip && !isPictureSize(clip, density * (clip.scale ?? 1))) {
    refused(["screenshotOptions", "clip"], `Expected an area of ${most}`);
  }
}

/** Whether a picture may have this area in CSS pixels at this device scale factor. */
export function isPictureSize(area: { width: number; height: number }, density: number): boolean {
  const [width, height] = [area.width * density, area.height * density];
  return (
    Math.max(width, height) <= SCREENSHOT_SIDE_PX_MAX && width * height <= SCREENSHOT_PIXELS_MAX
  );
}

/** Whether a picture that is too large for the browser may be joined from pieces. */
export function isTallPicture(
  area: { width: number; height: number },
  density: number,
  { fullPage, type, captureBeyondViewport }: PictureOptions,
): boolean {
  if (!fullPage || type !== "png" || captureBeyondViewport === false) return false;
  const [width, height] = [area.width * density, area.height * density];
  return (
    Number.isInteger(density * TILE_ROWS_UNIT) &&
    width <= SCREENSHOT_SIDE_PX_MAX &&
    height <= TALL_PICTURE_PX_MAX &&
    width * height <= TALL_PICTURE_PIXELS_MAX
  );
}

/** Possible media types of the response. The first is the default. */
export const PICTURE_MEDIA_TYPES = [...PICTURE_TYPES.map((type) => `image/${type}`), "text/plain"];

export function mediaTypeOf({ type, encoding }: ScreenshotOptions): string {
  return encoding === "base64" ? "text/plain" : `image/${type}`;
}

/**
 * An optional boolean that stays undefined if absent. The default here is only documentation; the capturing code
 * applies it.
 */
function flag(whenAbsent: boolean) {
  return z.boolean().optional().meta({ default: whenAbsent });
}
