/** Takes screenshots in a test with a client's parameters, and decodes the images with a browser. */
import type { z } from "zod";
import type { BrowserPool } from "../../actors/rendering/lib/browser/browser-pool.ts";
import { takeScreenshot } from "../../actors/rendering/workers/render/take-screenshot.ts";
import { systemClock } from "../../actors/runtime/lib/clock.ts";
import { ScreenshotRequest } from "../../schemas/rendering/http/screenshot.ts";

const DEADLINE_MS = 60_000;

export interface CameraOptions {
  signal?: AbortSignal;
  deadlineMs?: number;
  bytesMax?: number;
}

/** Takes a screenshot. Resolves to its `bytes` and to `browserMs`. */
export async function capture(
  pool: BrowserPool,
  request: z.input<typeof ScreenshotRequest>,
  {
    signal = new AbortController().signal,
    deadlineMs = DEADLINE_MS,
    ...limits
  }: CameraOptions = {},
) {
  const parameters = ScreenshotRequest.parse(request);
  const endsAt = systemClock.monotonic() + deadlineMs;
  const given = { signal, clock: systemClock, ...limits };
  return await takeScreenshot(pool, { account: "a", parameters, endsAt }, given);
}

export interface Seen {
  type: string | undefined;
  width: number;
  height: number;
  /** Red, green, blue and opacity of each requested point. */
  colors: number[][];
}

const BEGINNINGS: Record<string, RegExp> = {
  png: /^\x89PNG\r\n/,
  jpeg: /^\xff\xd8\xff/,
  webp: /^RIFF....WEBP/s,
};

export async function look(
  pool: BrowserPool,
  bytes: Buffer,
  ...points: [x: number, y: number][]
): Promise<Seen> {
  await using context = await pool.newContext(new AbortController().signal);
  const picture = bytes.toString("base64");
  const decoded = await context.evaluate(`(async () => {
    const blob = await (await fetch("data:;base64,${picture}")).blob();
    const image = await createImageBitmap(blob);
    const { width, height } = image;
    const drawn = new OffscreenCanvas(width, height).getContext("2d");
    drawn.drawImage(image, 0, 0);
    const colors = ${JSON.stringify(points)}.map(([x, y]) => [...drawn.getImageData(x, y, 1, 1).data]);
    return { width, height, colors };
  })()`);
  const text = bytes.subarray(0, 16).toString("latin1");
  const type = Object.keys(BEGINNINGS).find((name) => BEGINNINGS[name]?.test(text));
  return { type, ...(decoded as Omit<Seen, "type">) };
}
