/** Captures a page that is too tall for one picture of the browser. It captures pieces and joins them. */
import { TILE_ROWS_UNIT } from "../../../../schemas/rendering/limits.ts";
import type { Area } from "./picture-area.ts";
import { StitchedPng } from "./stitch-pngs.ts";

/** Maximum device pixels of a piece. A piece uses 16 MB of memory while it is joined. */
const TILE_PIXELS_MAX = 4_000_000;

/**
 * Resolves to the picture. If the pieces so far have more than `bytesMax` bytes, resolves to the number of their
 * bytes instead.
 */
export async function captureTall(
  capture: (clip: Area) => Promise<string>,
  area: Area,
  { density, bytesMax }: { density: number; bytesMax: number },
): Promise<Buffer | number> {
  const rows = TILE_PIXELS_MAX / (area.width * density * density);
  const step = Math.max(TILE_ROWS_UNIT, Math.floor(rows / TILE_ROWS_UNIT) * TILE_ROWS_UNIT);
  const picture = new StitchedPng();
  for (let y = 0; y < area.height; y += step) {
    const height = Math.min(step, area.height - y);
    const piece = await capture({ ...area, y: area.y + y, height });
    await picture.add(Buffer.from(piece, "base64"));
    if (picture.bytes > bytesMax) return picture.bytes;
  }
  return await picture.finish();
}
