/** Every bound of crawling that was chosen, with what it bridges. */

/** Addresses that are followed: longer ones are traps or broken, and browsers' own bound was 2,083 for decades. */
export const CRAWL_URL_CHARS_MAX = 8_192;
/** What is read of a robots.txt; RFC 9309 asks for at least this (section 2.5). */
export const ROBOTS_BYTES_MAX = 500 * 1024;
/** Rules with a star: each costs every address of the site a walk (5,000 × 8 KiB take some 0.1 s). */
export const ROBOTS_WILDCARDS_MAX = 5_000;
export const ROBOTS_SITEMAPS_MAX = 1_000;
/** A longer Crawl-delay is a slip of the pen: a day for each page lets a job of seven days fetch as many. */
export const CRAWL_DELAY_MS_MAX = 86_400_000;
/** Redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2). */
export const ROBOTS_REDIRECTS_MAX = 5;
/** Characters of one include or exclude pattern, and how many of each a crawl may have. */
export const CRAWL_PATTERN_CHARS_MAX = 1_024;
export const CRAWL_PATTERNS_MAX = 100;
/** Links taken from one page, the first ones: the richest of real pages have a few thousand. */
export const PAGE_LINKS_MAX = 10_000;
export const PAGE_TITLE_CHARS_MAX = 1_024;
/** What is kept of a page's content type: those in use have some 50. */
export const CONTENT_TYPE_CHARS_MAX = 256;
/** Why a record is not completed: a sentence or two, with what a server said cut to the next. */
export const RECORD_REASON_CHARS_MAX = 1_000;
export const ANSWER_SHOWN_CHARS = 100;
/** Bounds of one sitemap as sitemaps.org sets them, the bytes after decoding. */
export const SITEMAP_URLS_MAX = 50_000;
export const SITEMAP_BYTES_MAX = 50 * 1024 * 1024;
/** Of the classes of a code block, where its language is looked for: classes in use have some 50. */
export const CODE_CLASS_CHARS_MAX = 256;
/** Pages that wait for the thread; past it the caller is told to come back. */
export const MARKDOWN_QUEUE_MAX = 64;
/** Between two requests to a host, where its robots.txt does not say otherwise. */
export const CRAWL_DELAY_MS = 500;
/** Requests at once to a host that asks for no delay. */
export const HOST_REQUESTS_IN_FLIGHT_MAX = 8;
/** Requests of one turn at such a host: a message for each would cost more than the page. Some 0.3 s of a fast site. */
export const TURN_REQUESTS_MAX = 256;
/** A turn that has not begun so long after it could: its worker is busy or dead, so another one is granted beside it. */
export const TURN_OVERDUE_MS = 1_000;
/** A turn is forgotten so long after it began. Its last request leaves by TURN_STARTS_MS_MAX and takes CRAWL_RENDER_MS_MAX: 230 s, and a margin. */
export const TURN_MS_MAX = 240_000;
/** How long before it is due a turn is granted: enough for its task to reach a worker, little for a worker to hold it. */
export const TURN_LEAD_MS = 5_000;
/** A worker that asked to begin starts no later than this after the wait it was told, counted from its question. */
export const TURN_LATE_MS = 1_000;
/** Jobs that wait so; past it they are refused, since a site that is asked by all of them answers none within its week. */
export const SITE_JOBS_WAITING_MAX = 10_000;
/** A job whose site is full asks again after this, and ends when so many of its sites are: each of them is in its state. */
export const SITE_FULL_RETRY_MS = 60_000;
export const SITES_FULL_MAX = 100;
/** Jobs told of a site's robots.txt in one transition, and the characters of sitemaps in it: an outbox holds both. */
export const SITE_TELLS_MAX = 100;
export const SITE_TELL_CHARS_MAX = 200_000;
/** Crawls of one account that run at once: a crawl waits for its sites most of the time, and costs a node some memory. */
export const CRAWLS_RUNNING_MAX = 100;
/** Crawls an account has at a time, ended ones for as long as they are kept: their list is in memory while it is read. */
export const CRAWLS_KEPT_MAX = 10_000;
/** Pages of one crawl, and links from its start to a page, as in the public API. */
export const CRAWL_PAGES_MAX = 100_000;
export const CRAWL_DEPTH_MAX = 100_000;
/** Records listed at once: their addresses and metadata stay within one message. */
export const CRAWL_LIST_MAX = 100;
/** Pages of one report; a worker sends what has come in, so a slow page holds up no other. */
export const REPORT_PAGES_MAX = 64;
/** Addresses of a sitemap in one message: with their rows they fit one commit. */
export const SITEMAP_REPORT_URLS_MAX = 200;
/** Pages of a crawl that names no limit, as in the public API. */
export const CRAWL_PAGES = 10;
/** Age of a cached page that is used in place of a request, where none is named, and the most one may name. */
export const CRAWL_MAX_AGE_S = 86_400;
export const CRAWL_MAX_AGE_S_MAX = 604_800;
/** A crawl's request: every worker of the job holds it, and the largest script libraries people inline fit. */
export const CRAWL_REQUEST_BYTES_MAX = 10 * 1024 * 1024;
/** What a model is told, and the schema of its answer: both go with every page, whose text needs the room. */
export const JSON_PROMPT_CHARS_MAX = 16_384;
export const JSON_SCHEMA_BYTES_MAX = 64 * 1024;
/** Models tried in order, and the characters of one's name. */
export const CUSTOM_MODELS_MAX = 10;
export const MODEL_CHARS_MAX = 256;
/** What is kept of one page, after decoding; the rest is not read. */
export const CRAWL_BODY_BYTES_MAX = 10 * 1024 * 1024;
/** A body past this needs one of a few places in memory: most pages stay far below, hostile ones fill it. */
export const LARGE_BODY_BYTES = 512 * 1024;
/** A host that answers 429 or 503 and names no time is left alone for so long, and for twice as long each time it does so again. */
export const HOST_AWAY_MS = 5_000;
/** A host is left alone for no longer at its word (Retry-After): one request a day is no burden. */
export const HOST_AWAY_MS_MAX = 86_400_000;
/** One message with pages or addresses, below MESSAGE_BYTES_MAX with what is around them. */
export const REPORT_BYTES_MAX = 900_000;
/** Tries of a robots.txt that could not be had, and fetches of it that came to no end, before the site is taken as closed (RFC 9309, section 2.3.1.4). */
export const ROBOTS_TRIES_MAX = 3;
/** A host is waited for no longer at its word (Retry-After) before the next try: past this its robots.txt cannot be had. */
export const ROBOTS_AWAY_MS_MAX = 3_600_000;
/** What one answer with records may hold, as in the public API; a larger record comes alone. */
export const CRAWL_ANSWER_BYTES_MAX = 10 * 1024 * 1024;
/** Answers with records that one gateway writes at once: each holds some 8 MB for a client that reads slowly. */
export const CRAWL_READS_MAX = 64;
/** Of one account there: a quarter, so that one with slow clients does not close the way for the others. */
export const CRAWL_READS_OF_ACCOUNT_MAX = 16;
/** How long one such answer may take: 10 MB at some 17 kB a second. Who is slower asks for fewer records. */
export const CRAWL_READ_MS_MAX = 600_000;
/** Open event streams of one gateway, and of one account there: each asks for its job's state at intervals. */
export const EVENT_STREAMS_MAX = 1_000;
export const EVENT_STREAMS_OF_ACCOUNT_MAX = 100;
/** How soon a client should come back to a stream that broke off. */
export const EVENTS_RETRY_MS = 2_000;
/** Pages of one update to those who follow a job: their addresses fit what one commit may show. */
export const CRAWL_NEWS_PAGES_MAX = 100;
/** Bytes that wait for a slow client, past which pages are only counted. */
export const EVENTS_WAITING_BYTES_MAX = 256 * 1024;

// --- A crawl job ---

/** A crawl ends after this, and its results are kept for so long after its end, as in the public API. */
export const CRAWL_MS_MAX = 7 * 86_400_000;
export const CRAWL_KEPT_MS = 14 * 86_400_000;
/** Redirects of one page that are followed, each a request with a turn of its own; browsers follow 20. */
export const CRAWL_REDIRECTS_MAX = 10;
/** Tries of one page or sitemap, where another one makes sense. */
export const CRAWL_TRIES_MAX = 3;
/** What is told of a job as a whole, and how much of an address that is named there. */
export const CRAWL_MESSAGES_MAX = 20;
export const CRAWL_MESSAGE_URL_CHARS = 200;
/**
 * Rows that tell which addresses a job knows, and pages of its limit for each. A row is written whole for each more: 150 bytes
 * at so many, 3 kB where as many as may be are skipped and every page is redirected ten times.
 */
export const KNOWN_PER_ROW = 8;
export const KNOWN_ROWS_MIN = 64;
export const KNOWN_ROWS_MAX = 16_384;
/** Characters of a host's name as the key of its site: names in DNS have 253, and a row has the name as well. */
export const HOST_KEY_CHARS_MAX = 400;
/** Records whose status is one letter each of a row: a listing of 100,000 reads 50 rows, a page's end rewrites 2 KB. */
export const LETTERS_PER_ROW = 2_000;
/**
 * Rows one message of a job changes before it leaves further addresses for later; each adds five at most, and what is
 * left over takes up to 84, so that TRANSITION_ROWS_MAX holds. Likewise bytes of rows, hosts that are told of, bytes of sends.
 */
export const STEP_ROWS_MAX = 360;
export const STEP_BYTES_MAX = 500_000;
export const STEP_HOSTS_MAX = 140;
export const STEP_SEND_BYTES_MAX = 150_000;
/** Taking the HTML of a page that is ready: 10 MB take 0.3 s, and a script that never ends takes for ever. */
export const TAKE_HTML_MS = 10_000;
