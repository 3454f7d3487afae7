/** Limits of rendering that clients see or several folders share. */

/**
 * Chromium prints once images have loaded, or some 2 s later; what still hangs after this, or after half of the
 * print's own time, is cut off.
 */
export const LOAD_REST_MS = 10_000;

/** Default and highest wait of `settled` past the load event. Charts take a second to draw. */
export const SETTLE_MS = 2_000;
export const SETTLE_MS_MAX = 30_000;
/** A load event is waited for until no request began or ended for this long: what hangs may hang for ever. */
export const LOAD_STALLED_MS = 2_000;
/** A document that does not answer a look in this time is replaced by another, or computes. */
export const LOOK_MS = 2_000;
/** Silence after which a page with scripts has settled: timers that begin something are mostly shorter. */
export const QUIET_MS = 250;
/** Where something has changed since its load event: it may go on, and a busy page takes its time for that. */
export const QUIET_AFTER_CHANGE_MS = 300;
/** Where workers compute, which nobody sees. */
export const QUIET_WITH_WORKERS_MS = 500;
/** How often the function of `waitForFunction` is called, in milliseconds. */
export const FUNCTION_POLLING_MS = 100;
export const FUNCTION_POLLING_MS_MIN = 10;
export const FUNCTION_POLLING_MS_MAX = 10_000;
export const FUNCTION_CHARS_MAX = 65_536;

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

/** A side of a picture, in device pixels: WebP has no more. */
export const SCREENSHOT_SIDE_PX_MAX = 16_383;
/**
 * Device pixels of an image: eight times the default window. Chromium does not respond while it compresses them, for
 * 3 to 4 s if they are noise. A browser without a response for BROWSER_PING_TIMEOUT_MS is ended.
 */
export const SCREENSHOT_PIXELS_MAX = 8 * 1_920 * 1_080;
/** A picture's bytes: as base64 it comes in one message of the browser, and fits CDP_MESSAGE_BYTES_MAX. */
export const SCREENSHOT_BYTES_MAX = 48_000_000;
/** Limits of the scale of a picture: as far as devices differ. */
export const CLIP_SCALE_MIN = 0.1;
export const CLIP_SCALE_MAX = 10;
/** Limit of an area's position: Chromium lays nothing out beyond 2^25 pixels. */
export const CLIP_PX_MAX = 33_554_432;
/** Height of a png of a full page that is joined from pieces: many programs show no taller picture. */
export const TALL_PICTURE_PX_MAX = 65_535;
/** Device pixels of such a picture: six pictures of the browser, 51,840 rows of the default window. */
export const TALL_PICTURE_PIXELS_MAX = 6 * SCREENSHOT_PIXELS_MAX;
/** Rows of a piece are a multiple of this, so that they are whole device pixels at a density of two decimals. */
export const TILE_ROWS_UNIT = 100;

// --- Documents from files ---

/**
 * Limits the files of one page: a documentation site has some hundred. Each file is a part of a form or an entry of a
 * list.
 */
export const FILES_MAX = 500;
/** Limits the characters of a file's path: several folders deep, with names as long as file systems allow. */
export const FILE_NAME_CHARS_MAX = 1_024;
/** Limits the documents of one PDF: the chapters of a book. A browser loads each as a page, one after the other. */
export const SOURCES_MAX = 100;
/** Limits the bytes of the PDFs that become one. A worker holds all of them in memory, several times over. */
export const JOINED_PDF_BYTES_MAX = 100_000_000;
/** Characters of a title, an author, a subject, or of all keywords of a PDF. */
export const METADATA_CHARS_MAX = 2_000;
/** Keywords of a PDF, and authors of a page. */
export const KEYWORDS_MAX = 100;

// --- Results as text ---

/**
 * Bytes of one result: of its HTML or Markdown, or of its links, elements or tree as JSON. As much as a crawl keeps of
 * a page, and with every character escaped it still fits CDP_MESSAGE_BYTES_MAX.
 */
export const RESULT_BYTES_MAX = 10 * 1024 * 1024;
/** Characters of a title in `meta`: those of a crawl's record. */
export const META_TITLE_CHARS_MAX = 1_024;
/** Selectors of one scrape: as many tags as a page may get. Each is searched in the whole page. */
export const SCRAPE_SELECTORS_MAX = 100;
/**
 * Elements and texts of a page whose accessibility tree is read: several times the largest pages of documentation. The
 * tree is one message of the browser, which takes some seconds and fits CDP_MESSAGE_BYTES_MAX.
 */
export const ACCESSIBILITY_NODES_MAX = 100_000;

// --- Actions ---

/** Actions of one request, what one types or selects, and how long one takes where it does not say. */
export const ACTIONS_MAX = 100;
export const ACTION_TEXT_CHARS_MAX = 5_000;
export const ACTION_MS = 5_000;

// --- Reports of pages ---

/** Entries of each list of a report, and characters of an address or an error in it: more than people read. */
export const REPORT_ENTRIES_MAX = 100;
export const REPORT_TEXT_CHARS_MAX = 1_000;
/** Bytes of a document or picture that stands in an answer with its report: a picture's most. */
export const REPORTED_BYTES_MAX = SCREENSHOT_BYTES_MAX;

// --- Pages ---

/** How often a running page is checked against its account's browser time. A page may exceed its time by as much. */
export const BROWSER_TIME_CHECK_MS = 2_000;
/** Pages that a browser worker holds for each page that may compute: a waiting page costs some 30 MB. */
export const PAGES_PER_COMPUTING_PAGE = 3;

// --- Jobs ---

/** How long a result is kept after its job has ended, and how long a job may wait for a browser. */
export const RENDER_JOB_KEPT_MS = 24 * 3_600_000;
/** Age at which the store itself removes an object: an hour after the latest possible read. */
export const RENDER_JOBS_STORE_MS = 25 * 3_600_000;
/** Limits the kept jobs of an account: one every 17 s, all day. Each is a row of about 1 kB in one actor. */
export const RENDER_JOBS_KEPT_MAX = 5_000;
/** Limits the jobs of an account that have not ended, to as many as its synchronous calls may queue. */
export const RENDER_JOBS_WAITING_MAX = 1_000;
/**
 * Limits the jobs of an account in the lane of pages. Synchronous calls of the account wait behind these jobs at most;
 * a worker runs at most 6 pages of an account.
 */
export const RENDER_JOBS_AT_ONCE_MAX = 16;
/** Limits the bytes of all requests and results of jobs in the store. On a smaller disk the store is smaller. */
export const RENDER_JOBS_STORE_BYTES_MAX = 4 * 1024 ** 3;
/** The part of the store that one account may fill: two accounts leave half of it to others. */
export const RENDER_JOBS_ACCOUNT_SHARE = 1 / 4;
/** Bytes that a job reserves at a time for a result whose size is not known yet. */
export const RENDER_JOB_RESERVED_BYTES = 16 * 1024 * 1024;
/** An actor queues a job again that sent no report for this time: a task runs at most 3 times 10 minutes. */
export const RENDER_JOB_LOST_MS = 3_600_000;
/** How often a worker checks whether its job was cancelled. */
export const RENDER_JOB_CHECK_MS = 1_000;
/** Limits the address and secret of a job's webhook, far above the usual lengths. */
export const JOB_WEBHOOK_URL_CHARS_MAX = 2_048;
export const JOB_WEBHOOK_SECRET_CHARS_MAX = 512;
/** Characters of the error that a job keeps. */
export const RENDER_JOB_ERROR_CHARS_MAX = 2_000;
