/** Limits of rendering that clients see or several folders share. */

/**
 * Maximum wait for resources that hang, such as images: once for the load event, and once while a page is printed or
 * read. The second wait also takes at most half of that step's timeout. A print then stops all loading. Chromium
 * itself prints when images have loaded, or after about 2 s.
 */
export const LOAD_REST_MS = 10_000;

/** Default and maximum wait of `settled` after the load event. Charts take about a second to draw. */
export const SETTLE_MS = 2_000;
export const SETTLE_MS_MAX = 30_000;
/**
 * If no request began or ended for this time, the load event is no longer waited for, because a hanging request may
 * never end.
 */
export const LOAD_STALLED_MS = 2_000;
/**
 * Timeout of one evaluation in a document. If the document does not respond in this time, another document is
 * replacing it, or its scripts keep it busy.
 */
export const LOOK_MS = 2_000;
/**
 * Time without changes and requests after which a page with scripts has settled. Most timers that start new work are
 * shorter.
 */
export const QUIET_MS = 250;
/**
 * Replaces QUIET_MS if the page has changed after its load event. Such a page may change again, and a busy page needs
 * more time for that.
 */
export const QUIET_AFTER_CHANGE_MS = 300;
/** Replaces QUIET_MS if the page has workers, because their activity cannot be observed. */
export const QUIET_WITH_WORKERS_MS = 500;
/** Default interval between calls of the function of `waitForFunction`, in milliseconds. */
export const FUNCTION_POLLING_MS = 100;
export const FUNCTION_POLLING_MS_MIN = 10;
export const FUNCTION_POLLING_MS_MAX = 10_000;
export const FUNCTION_CHARS_MAX = 65_536;

/** Time for which a response is cached if the request does not specify one, as in the public API. */
export const RENDER_CACHE_SECONDS = 5;
export const RENDER_CACHE_SECONDS_MAX = 86_400;
/** Maximum bytes of a response that is cached. In base64 it still fits into one message of the bus. */
export const RENDER_CACHE_BYTES_MAX = 720_000;
/** Maximum entries of `failOnStatus`, more than the statuses in use. */
export const FAILING_STATUSES_MAX = 50;
/**
 * Memory limit of one renderer, which has one page with its frames of the same site: its heap of PAGE_HEAP_MIB_MAX,
 * and half as much for images and documents. A renderer above the limit is killed.
 */
export const RENDERER_MEMORY_BYTES_MAX = 1_600_000_000;
/** Maximum attempts for a page that crashes its renderer. One crash may be chance, two are not. */
export const RENDERER_TRIES_MAX = 2;
/** Time after which an unused browser is closed. */
export const BROWSER_IDLE_SECONDS = 60;

/** Maximum width and height of a picture in device pixels, which is the limit of WebP. */
export const SCREENSHOT_SIDE_PX_MAX = 16_383;
/**
 * Maximum device pixels of a picture: eight times the default window. Chromium does not respond while it compresses
 * them, which takes 3 to 4 s for noise. A browser that does not respond for BROWSER_PING_TIMEOUT_MS is killed.
 */
export const SCREENSHOT_PIXELS_MAX = 8 * 1_920 * 1_080;
/**
 * Maximum bytes of a picture. The browser sends a picture as base64 in one message, which then fits
 * CDP_MESSAGE_BYTES_MAX.
 */
export const SCREENSHOT_BYTES_MAX = 48_000_000;
/** Limits of the scale of a picture: the range in which devices differ. */
export const CLIP_SCALE_MIN = 0.1;
export const CLIP_SCALE_MAX = 10;
/** Maximum position of an area: Chromium's layout ends at 2^25 pixels. */
export const CLIP_PX_MAX = 33_554_432;
/** Maximum height, in device pixels, of a full-page png that is joined from pieces. Many programs cannot show taller pictures. */
export const TALL_PICTURE_PX_MAX = 65_535;
/**
 * Maximum device pixels of a picture that is joined from pieces: six pictures of the browser, or 51,840 rows in the
 * width of the default window.
 */
export const TALL_PICTURE_PIXELS_MAX = 6 * SCREENSHOT_PIXELS_MAX;
/**
 * The number of CSS pixel rows of a piece is a multiple of this. So the piece has whole device pixels if the device
 * scale factor has at most two decimals.
 */
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
/** Maximum bytes of the PDFs that are joined to one. A worker holds several copies of all of them in memory. */
export const JOINED_PDF_BYTES_MAX = 100_000_000;
/** Maximum characters of a title, an author, a subject, or of all keywords of a PDF together. */
export const METADATA_CHARS_MAX = 2_000;
/** Maximum keywords of a PDF, and maximum authors of a page. */
export const KEYWORDS_MAX = 100;

// --- Results as text ---

/**
 * Maximum bytes of one result: HTML, Markdown, or links, elements or a tree as JSON. It equals the limit for a page
 * of a crawl. Even with every character escaped, the result fits CDP_MESSAGE_BYTES_MAX.
 */
export const RESULT_BYTES_MAX = 10 * 1024 * 1024;
/** Maximum characters of a title in `meta`, as in a record of a crawl. */
export const META_TITLE_CHARS_MAX = 1_024;
/**
 * Maximum selectors of one scrape, as many as tags that a request may add. Each selector is searched in the whole
 * page.
 */
export const SCRAPE_SELECTORS_MAX = 100;
/**
 * Maximum elements and text nodes of a page whose accessibility tree is read: several times those of the largest
 * documentation pages. The tree is one message of the browser. It takes some seconds and fits CDP_MESSAGE_BYTES_MAX.
 */
export const ACCESSIBILITY_NODES_MAX = 100_000;

// --- Actions ---

/**
 * Maximum actions of one request, maximum characters that one action types or selects, and the default timeout of an
 * action.
 */
export const ACTIONS_MAX = 100;
export const ACTION_TEXT_CHARS_MAX = 5_000;
export const ACTION_MS = 5_000;

// --- Reports of pages ---

/**
 * Maximum entries in each list of a report, and maximum characters of an address or an error in it: more than people
 * read.
 */
export const REPORT_ENTRIES_MAX = 100;
export const REPORT_TEXT_CHARS_MAX = 1_000;
/** Maximum bytes of a document or picture in a response with a report: the same as for a picture. */
export const REPORTED_BYTES_MAX = SCREENSHOT_BYTES_MAX;

// --- Pages ---

/**
 * Interval at which a running page is checked against its account's browser time. A page may exceed the time by one
 * interval.
 */
export const BROWSER_TIME_CHECK_MS = 2_000;
/**
 * Maximum pages that a browser worker keeps open, for each page that may compute. A waiting page needs about 30 MB of
 * memory.
 */
export const PAGES_PER_COMPUTING_PAGE = 3;

// --- Jobs ---

/** Time for which a result is kept after its job has ended, and maximum time that a job waits for a browser. */
export const RENDER_JOB_KEPT_MS = 24 * 3_600_000;
/** Age at which the store itself removes an object: one hour after the last time at which the object can be read. */
export const RENDER_JOBS_STORE_MS = 25 * 3_600_000;
/** Limits the kept jobs of an account: one every 17 s, all day. Each is a row of about 1 kB in one actor. */
export const RENDER_JOBS_KEPT_MAX = 5_000;
/** Maximum jobs of an account that have not ended: as many as the synchronous calls that an account may queue. */
export const RENDER_JOBS_WAITING_MAX = 1_000;
/**
 * Maximum jobs of an account whose tasks are in the `interactive` lane at the same time. A synchronous call of the
 * account waits behind at most this number of jobs. A worker runs at most 6 pages of an account.
 */
export const RENDER_JOBS_AT_ONCE_MAX = 16;
/** Limits the bytes of all requests and results of jobs in the store. On a smaller disk the store is smaller. */
export const RENDER_JOBS_STORE_BYTES_MAX = 4 * 1024 ** 3;
/**
 * The part of the store that one account may use. Two accounts together leave half of the store to all other
 * accounts.
 */
export const RENDER_JOBS_ACCOUNT_SHARE = 1 / 4;
/** Bytes that a job reserves in one step for a result of unknown size. */
export const RENDER_JOB_RESERVED_BYTES = 16 * 1024 * 1024;
/**
 * If the task of a job sent no report for this time, the actor queues the job again. A task runs at most 3 times 10
 * minutes.
 */
export const RENDER_JOB_LOST_MS = 3_600_000;
/** How often a worker checks whether its job was cancelled. */
export const RENDER_JOB_CHECK_MS = 1_000;
/** Limits the address and secret of a job's webhook, far above the usual lengths. */
export const JOB_WEBHOOK_URL_CHARS_MAX = 2_048;
export const JOB_WEBHOOK_SECRET_CHARS_MAX = 512;
/** Maximum characters of the error message that is stored for a job. */
export const RENDER_JOB_ERROR_CHARS_MAX = 2_000;
