/** How long a page is waited for that is to be printed or drawn as it is. */

/**
 * Chromium prints once images have loaded, or some 2 s later; what still hangs after this, or after half of the
 * print's own time, is cut off.
 */
export const LOAD_REST_MS = 10_000;
/**
 * How long a page with images on their way, which most have for less, is waited for before Chromium is asked to print
 * it.
 */
export const LOAD_SOON_MS = 1_000;
/** From the last image to the load event; a page that has none, or a script that hangs, is printed without. */
export const LOAD_EVENT_MS = 100;
/** Fonts that do not come in this time are replaced by others. */
export const FONTS_WAIT_MS = 5_000;
/**
 * For `networkidle2`: a page whose requests follow one another for this long, never more than two at a time, is
 * polling.
 */
export const NETWORK_POLLING_MS = 5_000;
/** Animations that have not ended by then are printed as they are; those of chart libraries take a second. */
export const DRAWING_SETTLE_MS = 2_000;
/** Two samples of what is drawn, this far apart, are compared: some frames also on a busy machine. */
export const DRAWING_SAMPLE_MS = 100;
/** Pixels of canvases that one sample reads, some 4 ms: a page with more is compared by the first of them. */
export const DRAWING_PIXELS_MAX = 4_000_000;
/** Smaller SVG images are icons, which most pages have and few pages move. */
export const DRAWING_SVG_PIXELS_MIN = 10_000;
/** How far a page is scrolled, in CSS pixels: some ninety sheets of paper, or the tallest picture. */
export const SCROLL_PX_MAX = 100_000;
