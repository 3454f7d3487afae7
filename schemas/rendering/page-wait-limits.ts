/** How long a page is waited for that is to be printed or drawn as it is. */

/**
 * Chromium prints once images have loaded, or some 2 s later; what still hangs after this, or after half of the
 * print's own time, is cut off.
 */
export const LOAD_REST_MS = 10_000;
