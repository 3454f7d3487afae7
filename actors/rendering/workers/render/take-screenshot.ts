/** One screenshot task from its parameters to its bytes. */
import type { ScreenshotOptions } from "puppeteer-core";
import { ActorError } from "../../../../schemas/errors.ts";
import { PRINT_TIMEOUT_MS } from "../../../../schemas/limits.ts";
import {
  isPictureSize,
  type ScreenshotRequest,
} from "../../../../schemas/rendering/http/screenshot.ts";
import { LOAD_REST_MS, SCREENSHOT_BYTES_MAX } from "../../../../schemas/rendering/limits.ts";
import type { Clock } from "../../../runtime/lib/clock.ts";
import { within } from "../../../runtime/lib/time-limit.ts";
import type { BrowserPool } from "../../lib/browser/browser-pool.ts";
import { VIEWPORT } from "../../lib/browser/context-page.ts";
import { definedOf } from "../../lib/browser/defined-of.ts";
import type { RenderContext } from "../../lib/browser/render-context.ts";
import { drawingSettled } from "./drawing-settled.ts";
import { HeldPage, type PageTask, refusedByBrowser } from "./held-page.ts";
import { contentReady, fontsReady } from "./page-ready.ts";
import { type Area, pictureArea } from "./picture-area.ts";
import { scrollThrough } from "./scroll-through.ts";
import { captureTall } from "./tall-picture.ts";

interface ScreenshotTask extends Omit<PageTask, "action"> {
  parameters: ScreenshotRequest;
}

interface Screenshot {
  /** The picture, or its text in base64, as was asked for. */
  bytes: Buffer;
  /** Wall-clock milliseconds a browser was held. */
  browserMs: number;
  /** The status that the page's site answered. Undefined for a submitted document. */
  status: number | undefined;
}

/** Rejects as `printPdf` does. */
export async function takeScreenshot(
  pool: BrowserPool,
  { parameters, deadlineAt, hold, setWaiting }: ScreenshotTask,
  limits: { signal: AbortSignal; clock: Clock; bytesMax?: number },
): Promise<Screenshot> {
  await using held = await HeldPage.open(
    pool,
    { action: "capture", deadlineAt, hold, setWaiting },
    limits,
  );
  const { bytesMax = SCREENSHOT_BYTES_MAX } = limits;
  const { picture: base64, status } = await held.explained(async () => {
    using document = await held.load({ ...parameters, viewport: parameters.viewport ?? VIEWPORT });
    const { signal, clock } = held.limits;
    const ms = Math.min(PRINT_TIMEOUT_MS, parameters.actionTimeout ?? Number.POSITIVE_INFINITY);
    const error = () =>
      new ActorError("wait_timed_out", `Cannot capture the page: it took longer than ${ms} ms`);
    const picture = await within({ ms, error, signal, clock }, async (limited) => {
      const patience = { ms: Math.min(LOAD_REST_MS, ms / 2), signal: limited, clock };
      await contentReady(held.context, patience);
      if (parameters.scrollPage) await scrollThrough(held.context, parameters, patience);
      await Promise.all([
        fontsReady(held.context, patience),
        drawingSettled(held.context, patience),
      ]);
      document.check();
      return await capture(held.context, parameters, bytesMax);
    });
    const bytes = Buffer.byteLength(picture, "base64");
    if (bytes <= bytesMax) return { picture, status: document.status };
    throw tooHeavy(bytes, bytesMax);
  });
  held.leave();
  const asText = parameters.screenshotOptions.encoding === "base64";
  const encoded = Buffer.from(base64, asText ? "latin1" : "base64");
  return { bytes: encoded, browserMs: held.browserMs, status };
}

/** In base64. */
async function capture(
  context: RenderContext,
  parameters: ScreenshotRequest,
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
  // If nothing beyond the window may be drawn, the window has to grow for a full page.
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
