/** Limits of rendered answers, and of what one page may take of its browser. */

/** How long an answer is kept where the request does not say, as in the public API. */
export const RENDER_CACHE_SECONDS = 5;
export const RENDER_CACHE_SECONDS_MAX = 86_400;
/** Bytes of an answer that is kept: with its base64 it is one message of the bus. */
export const RENDER_CACHE_BYTES_MAX = 720_000;
/** Entries of `failOnStatus`: more than there are statuses in use. */
export const FAILING_STATUSES_MAX = 50;
/**
 * Memory of one renderer, which has one page with its frames of the same site: its heap of PAGE_HEAP_MIB_MAX, and half
 * as much for images and documents.
 */
export const RENDERER_MEMORY_BYTES_MAX = 1_600_000_000;
/** Tries of a page that crashes its renderer: a crash may be chance, two are not. */
export const RENDERER_TRIES_MAX = 2;
/** A browser that nobody used for this long is ended. */
export const BROWSER_IDLE_SECONDS = 60;
