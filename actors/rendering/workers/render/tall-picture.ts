/** Captures a page that is taller than one picture of the browser can be, in pieces that are joined. */
import { TILE_ROWS_UNIT } from "../../../../schemas/rendering/limits.ts";
import type { Area } from "./picture-area.ts";
import { StitchedPng } from "./stitch-pngs.ts";

/** Device pixels of a piece: 16 MB while it is joined. */
const TILE_PIXELS_MAX = 4_000_000;

/** Resolves to the picture, or to the bytes of the pieces so far where these are more than `bytesMax`. */
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
