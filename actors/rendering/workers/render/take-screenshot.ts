/** Runs one screenshot task, from its parameters to the bytes of the picture. */
import type { ScreenshotOptions } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import {
  isPictureSize,
  type PictureOptions,
  type ScreenshotRequest,
} from "../../../../schemas/rendering/http/screenshot.ts";
import { SCREENSHOT_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { definedOf } from "../../lib/browser/defined-of.ts";
import { drawingSettled } from "../../lib/browser/drawing-settled.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";
import { refusedByBrowser } from "./held-page.ts";
import type { LoadedPage, Output } from "./outputs/output.ts";
import { contentReady, fontsReady, lookOnce } from "./page-ready.ts";
import { type Area, pictureArea } from "./picture-area.ts";
import { type Rendered, type RenderTask, renderPage } from "./render-page.ts";
import { captureTall } from "./tall-picture.ts";

interface Screenshot extends Omit<Rendered<Buffer>, "answer"> {
  /** The picture, or its text in base64, as the request demands. */
  bytes: Buffer;
}

/** Takes a screenshot of a page. Rejects with the same errors as `printPdf`. */
export async function takeScreenshot(
  pool: BrowserPool,
  task: Omit<RenderTask<ScreenshotRequest>, "action">,
  { bytesMax, ...limits }: { signal: AbortSignal; clock: Clock; bytesMax?: number },
): Promise<Screenshot> {
  const shot = { ...limits, output: pictureOutput(bytesMax) };
  const { answer, ...known } = await renderPage(pool, { ...task, action: "capture" }, shot);
  return { bytes: answer, ...known };
}

/** `bytesMax` limits the bytes of the picture. */
export function pictureOutput(bytesMax?: number): Output<ScreenshotRequest, Buffer> {
  return async (page, parameters) => {
    await pictureReady(page);
    page.document.check();
    const base64 = await capture(page.context, parameters, bytesMax);
    const asText = parameters.screenshotOptions.encoding === "base64";
    return async () => Buffer.from(base64, asText ? "latin1" : "base64");
  };
}

/** Waits a limited time until the visible content of the page is complete and no animation runs. */
export async function pictureReady({ context, limits }: LoadedPage): Promise<void> {
  const look = await lookOnce(context, limits);
  if (look?.isReady) return;
  await contentReady(context, limits);
  await Promise.all([fontsReady(context, limits), drawingSettled(context, limits)]);
}

interface Shooting extends Pick<ScreenshotRequest, "viewport" | "selector"> {
  screenshotOptions: PictureOptions;
}

/** Resolves to the picture in base64. */
export async function capture(
  context: RenderContext,
  parameters: Shooting,
  bytesMax = SCREENSHOT_BYTES_MAX,
): Promise<string> {
  const picture = await captureAny(context, parameters, bytesMax);
  const bytes = Buffer.byteLength(picture, "base64");
  if (bytes > bytesMax) throw tooHeavy(bytes, bytesMax);
  return picture;
}

async function captureAny(
  context: RenderContext,
  parameters: Shooting,
  bytesMax: number,
): Promise<string> {
  const { fullPage, clip: _, fromSurface: _surface, ...options } = parameters.screenshotOptions;
  const area = await pictureArea(context, parameters);
  const density = parameters.viewport?.deviceScaleFactor ?? 1;
  if (area && !isPictureSize(area, area.scale * density)) {
    const tile = { ...options, encoding: "base64" as const };
    const piece = (clip: Area) => shoot(context, { ...tile, clip });
    const whole = await captureTall(piece, area, { density, bytesMax });
    if (typeof whole === "number") throw tooHeavy(whole, bytesMax);
    return whole.toString("base64");
  }
  // With `captureBeyondViewport: false` nothing outside the window may be drawn, so for a full page the window must
  // grow.
  const grows = fullPage === true && options.captureBeyondViewport === false;
  const part = { fullPage: grows || undefined, clip: grows ? undefined : area };
  return await shoot(context, { ...options, ...part, encoding: "base64" });
}

type Shot = Parameters<typeof definedOf<ScreenshotOptions & { encoding: "base64" }>>[0];

async function shoot(context: RenderContext, options: Shot): Promise<string> {
  try {
    return await context.page.screenshot(definedOf(options));
  } catch (cause) {
    throw refusedByBrowser(cause, "capture");
  }
}

function tooHeavy(bytes: number, bytesMax: number): ActorError {
  const reason = `its picture has ${bytes} bytes, and ${bytesMax} are the most`;
  return new ActorError("page_not_printable", `Cannot capture the page: ${reason}`);
}
