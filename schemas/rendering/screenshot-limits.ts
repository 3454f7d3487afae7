/** Every bound of pictures that are taken of pages, with what it bridges. */

/** A side of a picture, in device pixels: WebP has no more. */
export const SCREENSHOT_SIDE_PX_MAX = 16_383;
/**
 * A picture's device pixels: the default window, eight times. While Chromium compresses them it answers nobody, for 3
 * to 4 s
 * where all of it is noise; a browser is ended when it does not answer for BROWSER_PING_TIMEOUT_MS.
 */
export const SCREENSHOT_PIXELS_MAX = 8 * 1_920 * 1_080;
/** A picture's bytes: as base64 it comes in one message of the browser, and fits CDP_MESSAGE_BYTES_MAX. */
export const SCREENSHOT_BYTES_MAX = 48_000_000;
/** What may be made of a pixel of the page, either way: as far as devices differ. */
export const CLIP_SCALE_MIN = 0.1;
export const CLIP_SCALE_MAX = 10;
/** Where an area of a page may begin: Chromium lays nothing out beyond 2^25 pixels. */
export const CLIP_PX_MAX = 33_554_432;
/** Height of a png of a full page that is joined from pieces: many programs show no taller picture. */
export const TALL_PICTURE_PX_MAX = 65_535;
/** Its device pixels: six pictures of the browser, 51,840 rows of the default window. */
export const TALL_PICTURE_PIXELS_MAX = 6 * SCREENSHOT_PIXELS_MAX;
/** Rows of a piece are a multiple of this, so that they are whole device pixels at a density of two decimals. */
export const TILE_ROWS_UNIT = 100;
