/**
 * The limits of crawling that clients see or that several folders use. Each comment names what the value depends on.
 */

/**
 * Length of an address that a crawl follows. Browsers stopped at 2,083 for decades, so a longer address is a trap or
 * broken.
 */
export const CRAWL_URL_CHARS_MAX = 8_192;
/** Bytes of a robots.txt that are read. RFC 9309, section 2.5, requires at least this. */
export const ROBOTS_BYTES_MAX = 500 * 1024;
/** Sitemaps of one robots.txt. */
export const ROBOTS_SITEMAPS_MAX = 1_000;
/**
 * Longest Crawl-delay that is obeyed: one day, with which a job of seven days fetches seven pages. A longer delay
 * must be a mistake.
 */
export const CRAWL_DELAY_MS_MAX = 86_400_000;
/** Redirects of a robots.txt that are followed (RFC 9309, section 2.3.1.2). */
export const ROBOTS_REDIRECTS_MAX = 5;
/** Characters of one include or exclude pattern, and the number of patterns of each sort. */
export const CRAWL_PATTERN_CHARS_MAX = 1_024;
export const CRAWL_PATTERNS_MAX = 100;
/** Links taken from one page, from its beginning. The richest real pages have a few thousand. */
export const PAGE_LINKS_MAX = 10_000;
export const PAGE_TITLE_CHARS_MAX = 1_024;
/** Stored length of a page's content type. Real ones have about 50 characters. */
export const CONTENT_TYPE_CHARS_MAX = 256;
/**
 * Maximum length of a record's reason: one or two sentences. ANSWER_SHOWN_CHARS limits the text of a server that a
 * reason quotes.
 */
export const RECORD_REASON_CHARS_MAX = 1_000;
export const ANSWER_SHOWN_CHARS = 100;
/** Decompressed bytes of one sitemap, as sitemaps.org limits them. */
export const SITEMAP_BYTES_MAX = 50 * 1024 * 1024;
/**
 * Characters of a class attribute in which the language of a code block is searched. Real attributes have about 50.
 */
export const CODE_CLASS_CHARS_MAX = 256;
/**
 * Pages that wait for the Markdown threads. Past this limit the caller must retry later. It is more than the pages and
 * JSON tasks that a worker runs at the same time, because accounts take turns only inside the queue.
 */
export const MARKDOWN_QUEUE_MAX = 128;
/** Delay between two requests to a host whose robots.txt sets none. */
export const CRAWL_DELAY_MS = 500;
/** Concurrent requests to a host without a delay. */
export const HOST_REQUESTS_IN_FLIGHT_MAX = 8;
/**
 * Maximum requests of one turn at a host without a delay; a fast site serves them in about 0.3 s. A message for each
 * single request would cost more than the page.
 */
export const TURN_REQUESTS_MAX = 256;
/**
 * A turn that has not begun this long after its earliest start is overdue: its worker must be busy or dead. The site
 * then grants another turn in addition.
 */
export const TURN_OVERDUE_MS = 1_000;
/**
 * Lifetime of a turn after its begin. Its last request leaves by TURN_STARTS_MS_MAX and takes up to
 * CRAWL_RENDER_MS_MAX: 230 s, plus a margin.
 */
export const TURN_MS_MAX = 240_000;
/**
 * How long before its start time a turn is granted. The task needs this time to reach a worker, but the worker should
 * not hold the turn for long.
 */
export const TURN_LEAD_MS = 5_000;
/**
 * Longest time by which a request may leave after its start time. The start time is counted from the worker's call to
 * the site.
 */
export const TURN_LATE_MS = 1_000;
/**
 * Delay after which a job asks a site again that had too many jobs, and the maximum number of such sites of one job.
 * One more ends the job. All of them are in the job's state.
 */
export const SITE_FULL_RETRY_MS = 60_000;
export const SITES_FULL_MAX = 100;
/** Maximum characters of sitemap addresses in all messages that a site sends to crawl jobs in one transition. */
export const SITE_TELL_CHARS_MAX = 200_000;
/** Limits the running crawls of one account. A crawl takes little memory, because it mostly waits for its sites. */
export const CRAWLS_RUNNING_MAX = 100;
/**
 * Maximum hosts at which one crawl wants requests at the same time, if it is the only one of its account. Each further
 * running crawl of the account has half as many as the one before, and at least one.
 */
export const CRAWL_HOSTS_MAX = 75;
/** Crawls of one account, ended ones included while they are kept. A read holds the whole list in memory. */
export const CRAWLS_KEPT_MAX = 10_000;
/**
 * A job reports the bytes of its results whenever they have grown by this part of the bytes that its account may store.
 * So CRAWLS_RUNNING_MAX jobs together have never more than 10 % of these bytes unreported. Pages that are being stored
 * when the account reaches its limit come on top.
 */
export const CRAWL_BYTES_STEP_SHARE = 1 / 1_024;
/** Bytes between two reports of a job that an older version started, or whose account has no limit. */
export const CRAWL_BYTES_STEP = 8 * 1024 * 1024;
/** Pages of one crawl, and links from its start to a page. The public API has the same limits. */
export const CRAWL_PAGES_MAX = 100_000;
export const CRAWL_DEPTH_MAX = 100_000;
/** Records of one listing. Their addresses and metadata fit one message. */
export const CRAWL_LIST_MAX = 100;
/**
 * Maximum pages of one report. A worker reports pages while others are still loading, so that a slow page does not
 * delay them.
 */
export const REPORT_PAGES_MAX = 64;
/** Addresses of a sitemap in one message. They fit one commit together with their rows. */
export const SITEMAP_REPORT_URLS_MAX = 200;
/** Default page limit of a crawl, as in the public API. */
export const CRAWL_PAGES = 10;
/** Default and highest age of a cached page that replaces a request. */
export const CRAWL_MAX_AGE_S = 86_400;
export const CRAWL_MAX_AGE_S_MAX = 604_800;
/**
 * Bytes of a crawl's request. Every worker of the job holds it; the largest script libraries that people inline fit.
 */
export const CRAWL_REQUEST_BYTES_MAX = 10 * 1024 * 1024;
/** Length of the prompt, and of the JSON Schema of the answer. A model reads both with every page. */
export const JSON_PROMPT_CHARS_MAX = 16_384;
export const JSON_SCHEMA_BYTES_MAX = 64 * 1024;
/** Models that a request may name, and the length of a model's name. */
export const CUSTOM_MODELS_MAX = 10;
export const MODEL_CHARS_MAX = 256;
/** Decoded bytes of one page that are kept. The rest is not read. */
export const CRAWL_BODY_BYTES_MAX = 10 * 1024 * 1024;
/**
 * A body above this size needs one of LARGE_BODIES_MAX places in memory. Most pages are much smaller; a hostile page
 * may be as large as allowed.
 */
export const LARGE_BODY_BYTES = 512 * 1024;
/** Pause after a 429 or 503 without Retry-After. It doubles with each further such response. */
export const HOST_AWAY_MS = 5_000;
/** Longest pause that a Retry-After can set. One request a day burdens no host. */
export const HOST_AWAY_MS_MAX = 86_400_000;
/** Bytes of pages or addresses in one message. The rest of the message fits below MESSAGE_BYTES_MAX. */
export const REPORT_BYTES_MAX = 900_000;
/** Failed attempts, or lost fetches, of a robots.txt before the site counts as closed (RFC 9309, section 2.3.1.4). */
export const ROBOTS_TRIES_MAX = 3;
/**
 * Wait of a robots.txt fetch for which no lookup of the host's name could start, because lookups of other names held
 * all slots. The wait doubles each time up to the maximum, so that such fetches rarely hold a place at a worker.
 */
export const ROBOTS_LOOKUP_WAIT_MS = 5_000;
export const ROBOTS_LOOKUP_WAIT_MS_MAX = 60_000;
/** Longest Retry-After of a robots.txt that a fetch waits for. Past it the file counts as unavailable. */
export const ROBOTS_AWAY_MS_MAX = 3_600_000;
/** Bytes of one response with records, as in the public API. A larger record comes alone. */
export const CRAWL_ANSWER_BYTES_MAX = 10 * 1024 * 1024;
/** Concurrent responses with records of one gateway. Each holds about 8 MB for a client that reads slowly. */
export const CRAWL_READS_MAX = 64;
/** Concurrent responses with records of one account. */
export const CRAWL_READS_OF_ACCOUNT_MAX = 16;
/**
 * Timeout of one response with records: 10 MB at about 17 kB per second. A slower client must request fewer records.
 */
export const CRAWL_READ_MS_MAX = 600_000;
/**
 * Maximum open event streams of one gateway, and of one account at a gateway. Each stream reads its job's state at
 * intervals.
 */
export const EVENT_STREAMS_MAX = 1_000;
export const EVENT_STREAMS_OF_ACCOUNT_MAX = 100;
/**
 * The part of these two limits of a gateway that an account with its own limit leaves to other accounts. Without it,
 * a few accounts could take all reads or streams. An account that has fewer leaves less.
 */
export const CRAWL_SHARE_KEPT_FREE = 0.25;
/** Pages of one live update of a job. Their addresses fit the live message of one commit. */
export const CRAWL_NEWS_PAGES_MAX = 100;

// --- A crawl job ---

/** Lifetime of a crawl, and how long its results are kept after its end. The public API has the same values. */
export const CRAWL_MS_MAX = 7 * 86_400_000;
export const CRAWL_KEPT_MS = 14 * 86_400_000;
/** Redirects of one page. Each is a request with a turn of its own. Browsers follow 20. */
export const CRAWL_REDIRECTS_MAX = 10;
/** Attempts of one page or sitemap, where a retry makes sense. */
export const CRAWL_TRIES_MAX = 3;
/** Characters of an address in a message about a job. */
export const CRAWL_MESSAGE_URL_CHARS = 200;
/** Highest number of rows of known addresses. Jobs of the first release have it. */
export const KNOWN_ROWS_MAX = 16_384;
/**
 * Maximum length of a host as the key of its site. Names in DNS have at most 253 characters. A row of a job is named
 * after the host too.
 */
export const HOST_KEY_CHARS_MAX = 400;
/**
 * Records per row of status letters. A listing of 100,000 records reads 50 rows, and each settled page rewrites 2 KB.
 */
export const LETTERS_PER_ROW = 2_000;
/** Timeout for reading the HTML of a loaded page. 10 MB take 0.3 s, and an endless script takes for ever. */
export const READ_HTML_MS = 10_000;
