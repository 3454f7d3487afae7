/** Every bound of crawling that was chosen, with what it bridges. */

/** Addresses that are followed: longer ones are traps or broken, and browsers' own bound was 2,083 for decades. */
export const CRAWL_URL_CHARS_MAX = 8_192;
/** What is read of a robots.txt; RFC 9309 asks for at least this (section 2.5). */
export const ROBOTS_BYTES_MAX = 500 * 1024;
/** What is read of one line: eight times the longest address browsers took. */
export const ROBOTS_LINE_BYTES_MAX = 2_083 * 8;
/** Characters kept of one file, rules and sitemaps: what 500 KiB of the shortest rules come to, within an actor's state. */
export const ROBOTS_KEPT_CHARS_MAX = 700_000;
/** Rules with a star: each costs every address of the site a walk (5,000 × 8 KiB take some 0.1 s). */
export const ROBOTS_WILDCARDS_MAX = 5_000;
export const ROBOTS_SITEMAPS_MAX = 1_000;
/** A longer Crawl-delay is a slip of the pen: a day for each page lets a job of seven days fetch as many. */
export const CRAWL_DELAY_MS_MAX = 86_400_000;
/** A robots.txt is used for no longer (RFC 9309, section 2.4). */
export const ROBOTS_KEPT_MS = 24 * 3_600_000;
/** One that could not be had is tried again after this. */
export const ROBOTS_RETRY_MS = 60_000;
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
/** Elements nested in a sitemap: real ones stay below 10, and each open one is held in memory. */
export const SITEMAP_DEPTH_MAX = 64;
/** Pieces in which a sitemap is read: what is found in one is handed over together. */
export const SITEMAP_CHUNK_BYTES = 64 * 1024;
/** Where a page may say its charset: HTML asks for the first 1,024 bytes, pages keep to it loosely. */
export const CHARSET_PRESCAN_BYTES = 4_096;
/** What a charset is guessed from. */
export const CHARSET_SAMPLE_BYTES = 32 * 1024;
/** HTML that is made into Markdown: the bytes kept of a page, each at most one character. */
export const MARKDOWN_HTML_CHARS_MAX = 10 * 1024 * 1024;
/** Time for one page: 2 MB of real HTML take 1 s on a busy core. */
export const MARKDOWN_TIMEOUT_MS = 15_000;
/** Memory of the thread: a page of 10 MB that is all links needs some 500 MiB. */
export const MARKDOWN_HEAP_MIB_MAX = 640;
/** Elements open at once while Markdown is made: browsers keep 512 levels, real pages have fewer than 100. Tags past it are ignored, their text is kept. */
export const MARKDOWN_DEPTH_MAX = 512;
/** Columns that one `colspan` covers, and rows that one `rowspan` does: browsers take 1,000 and 65,534, real tables stay below 100. */
export const MARKDOWN_SPAN_MAX = 100;
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
/** Requests of one turn of a job that is alone at a host with a delay: a fifth of the messages, and few beside those that may be under way. */
export const TURN_SPACED_REQUESTS_MAX = 5;
/** No more than those of so long, for which a worker holds the turn. */
export const TURN_SPAN_MS = 2_500;
/** A turn that has not begun so long after it could: its worker is busy or dead, so another one is granted beside it. */
export const TURN_OVERDUE_MS = 1_000;
/** Turns that wait to begin at one host. */
export const TURNS_AHEAD_MAX = 4;
/** A turn is forgotten so long after it began. Its last request leaves by TURN_STARTS_MS_MAX and takes CRAWL_RENDER_MS_MAX: 230 s, and a margin. */
export const TURN_MS_MAX = 240_000;
/** How long before it is due a turn is granted: enough for its task to reach a worker, little for a worker to hold it. */
export const TURN_LEAD_MS = 5_000;
/** How long ahead a worker is told when to start: with a lease's time less than what a task waits to be given to another. */
export const TURN_GO_MS_MAX = 2_000;
/** A worker that asked to begin starts no later than this after the wait it was told, counted from its question. */
export const TURN_LATE_MS = 1_000;
/** A turn told to go that was not heard to have started so long after its time never will: that lateness, and a call's way. */
export const TURN_UNHEARD_MS = TURN_LATE_MS + 250;
/** Pause before a worker that waits for its turn asks again: what a call takes on a busy machine, a tenth of the delay. */
export const TURN_ASK_MS = 50;
/** The same where there is no delay, and each pause is time in which the host could serve. */
export const TURN_ASK_SOON_MS = 15;
/** A place that others could use is not held through a longer wait than this. */
export const TURN_HELD_WAIT_MS = 250;
/** So long before its moment a request has its place and begins to connect: TCP and TLS with a host 100 ms away. */
export const TURN_AHEAD_MS = 200;
/** So long before it a browser is told to load the page: it takes some 10 ms to ask for it. */
export const GOTO_AHEAD_MS = 20;
/** A request is counted as if it had been so long on its way, and the next as if it took no time: the host sees both arrive. */
export const ARRIVAL_MS = 4;
/** While a request connects, its moment is asked for again so long before it has passed: a call's way on a busy machine. */
export const TURN_AGAIN_MS = 500;
/** The longest such pause, where turns take long. */
export const TURN_ASK_LATE_MS = 1_000;
/**
 * Requests of one host that have started and are not finished: at the usual delay pages may take 8 s before this slows them.
 * A host that takes longer is overloaded, or drips; a worker has 64 places for all.
 */
export const TURNS_STARTED_MAX = 16;
/** A worker whose site's robots.txt is being fetched asks again after this: most come within it. */
export const TURN_ASK_ROBOTS_MS = 250;
/** Rules a turn's addresses are held against, one by one: some 0.1 s, for which the site answers nobody. */
export const TURN_RULE_CHECKS_MAX = 50_000;
/** Turns at once for a site's own robots.txt and for those of others that redirect to it: all go before its pages. */
export const SITE_VISITS_MAX = 16;
/** Jobs that take turns at one site, in its state; more wait in rows until one of these is done. */
export const SITE_JOBS_MAX = 1_000;
/** Jobs that wait so; past it they are refused, since a site that is asked by all of them answers none within its week. */
export const SITE_JOBS_WAITING_MAX = 10_000;
/** A job whose site is full asks again after this, and ends when so many of its sites are: each of them is in its state. */
export const SITE_FULL_RETRY_MS = 60_000;
export const SITES_FULL_MAX = 100;
/** A job goes on at a host so long after a fault of ours, and after twice as long each time, up to SITE_FULL_RETRY_MS. */
export const FAULT_RETRY_MS = 5_000;
/** A job ends when turns have ended by faults of ours for so long and no page has come: a full store, browsers that do not start. */
export const JOB_FAULTS_MS_MAX = 600_000;
/** Jobs told of a site's robots.txt in one transition, and the characters of sitemaps in it: an outbox holds both. */
export const SITE_TELLS_MAX = 100;
export const SITE_TELL_CHARS_MAX = 200_000;
/** Characters of a verdict's reason: with one for each address of a turn the answer can still be kept. */
export const VERDICT_REASON_CHARS_MAX = 200;
/** Crawls of one account that run at once: a crawl waits for its sites most of the time, and costs a node some memory. */
export const CRAWLS_RUNNING_MAX = 100;
/** Crawls an account has at a time, ended ones for as long as they are kept: their list is in memory while it is read. */
export const CRAWLS_KEPT_MAX = 10_000;
/** A crawl that was admitted and has not started by then never will. */
export const CRAWL_ADMITTED_MS = 60_000;
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
/** Characters of a page that a model reads: some 25,000 tokens, which fit the smaller contexts in use (32,768). */
export const JSON_PAGE_CHARS_MAX = 100_000;
/** One question to a model: the largest need half a minute for a long answer. */
export const JSON_TRY_MS = 60_000;
/** All questions about one page, so that a row of slow models holds no slot for an hour. */
export const JSON_PAGE_MS_MAX = 300_000;
/** The longest that a model which is asked too often is waited for (Retry-After); past it the next one is asked. */
export const JSON_RETRY_MS_MAX = 20_000;
/** Pause before the second try where a model does not say how long to wait. */
export const JSON_RETRY_MS = 1_000;
/** Answer of a model with all that is around it: ten times what it may have read. */
export const JSON_ANSWER_BYTES_MAX = 1_000_000;
/** What is repeated of what a provider says of an error: a sentence. */
export const JSON_QUOTED_CHARS_MAX = 200;
/** Models known to take no schema, the latest: each that is forgotten costs one question more. */
export const SCHEMALESS_MODELS_MAX = 256;
/** Time and memory for holding an answer to its schema: both are written by strangers, and honest ones take 1 ms. */
export const JSON_CHECK_MS = 5_000;
export const JSON_CHECK_HEAP_MIB_MAX = 128;
/** Faults of an answer that the model is told, and characters of them. */
export const JSON_FAULTS_MAX = 20;
export const JSON_FAULT_CHARS_MAX = 2_000;
/** What is kept of one page, after decoding; the rest is not read. */
export const CRAWL_BODY_BYTES_MAX = 10 * 1024 * 1024;
/** One request by HTTP alone, from its start to its last byte: as long as a browser waits for a page by default. */
export const CRAWL_FETCH_MS_MAX = 30_000;
/** A body past this needs one of a few places in memory: most pages stay far below, hostile ones fill it. */
export const LARGE_BODY_BYTES = 512 * 1024;
/** Each takes some six times its size while it becomes a record: 0.5 GB in all. */
export const LARGE_BODIES_MAX = 8;
/** A host that answers 429 or 503 and names no time is left alone for so long, and for twice as long each time it does so again. */
export const HOST_AWAY_MS = 5_000;
/** But no longer than this: a page has three tries, and a job of seven days a thousand such pauses. */
export const HOST_AWAY_UNSAID_MS_MAX = 600_000;
/** A host is left alone for no longer at its word (Retry-After): one request a day is no burden. */
export const HOST_AWAY_MS_MAX = 86_400_000;
/** No request of a turn starts later than this after it began: with its longest it is within TURN_MS_MAX. The job gives what is left to another turn. */
export const TURN_STARTS_MS_MAX = 60_000;
/** Turns that a worker holds, two for each host with a delay; one that waits costs a few kilobytes. */
export const FETCH_TURNS_MAX = 128;
/** Fewer: a browser loads some tens of pages a second, whatever waits. */
export const RENDER_TURNS_MAX = 64;
export const ROBOTS_TURNS_MAX = 32;
/** Jobs whose blobs a worker removes at once: the store does it, and hosts that answer nobody must not keep a request's secrets there. */
export const JOB_PURGES_MAX = 4;
/** Pages of one job that models are asked about at once: two workers' worth, so that a large crawl fills no lane and others go on. */
export const JOB_JSON_TASKS_MAX = 16;
/** Pages a worker asks models about at once: each waits for seconds and computes nothing. */
export const JSON_TASKS_MAX = 8;
/** Pages that a worker fetches, reads or writes at once by HTTP: eight busy hosts, at a few hundred kilobytes each. */
export const FETCH_PAGES_MAX = 64;
/** Jobs whose connections or browser context a worker keeps between turns, and for how long after the last. */
export const JOBS_KEPT_MAX = 64;
export const JOB_KEPT_MS = 30_000;
/** Bytes of requests among them, past which those that nobody uses go: a dozen of the largest. */
export const JOBS_KEPT_BYTES_MAX = 12 * CRAWL_REQUEST_BYTES_MAX;
/** How often a worker asks whether a job still runs while nobody answers, after it may have missed the job's end. */
export const JOB_WATCH_RETRY_MS = 500;
/** Connections of one job that are kept while nothing is asked over them, of each scheme and over all its hosts. */
export const JOB_CONNECTIONS_MAX = 64;
/** One message with pages or addresses, below MESSAGE_BYTES_MAX with what is around them. */
export const REPORT_BYTES_MAX = 900_000;
/** Small records written together: with their bytes they fit one batch. */
export const RECORD_GROUP_MAX = 256;
/** Pages that come in within this time are reported together; nobody sees the difference. */
export const REPORT_GATHER_MS = 20;
/** Links of one page in its report, in bytes: the first ones; 10,000 of real length fit. */
export const PAGE_LINKS_BYTES_MAX = 700_000;
/** Copies of pages that are looked for, or taken, at once for one turn: each is a round trip to the bus. */
export const CACHE_LOOKS_AT_ONCE = 16;
/** A page with more to say than this is not kept for other crawls. */
export const CACHED_PAGE_BYTES_MAX = 256 * 1024;
/** One sitemap, from the request to its last byte: 50 MB at 3 Mbit/s. */
export const SITEMAP_FETCH_MS_MAX = 120_000;
/** Until its head has come, as of a page: links wait for sitemaps, and one that does not answer is asked for three times. */
export const SITEMAP_ANSWER_MS_MAX = 30_000;
/** One request for a robots.txt; a host that takes longer cannot be crawled either. */
export const ROBOTS_FETCH_MS_MAX = 15_000;
/** How long a worker waits for the place of one such request; where that is further off, the fetch goes on in another turn. */
export const ROBOTS_WAIT_MS_MAX = 60_000;
/** None leaves later than this after its turn began, so that its end is heard within TURN_MS_MAX; another turn makes the others. */
export const ROBOTS_STARTS_MS_MAX = 120_000;
/** Tries of a robots.txt that could not be had, and fetches of it that came to no end, before the site is taken as closed (RFC 9309, section 2.3.1.4). */
export const ROBOTS_TRIES_MAX = 3;
/** A host is waited for no longer at its word (Retry-After) before the next try: past this its robots.txt cannot be had. */
export const ROBOTS_AWAY_MS_MAX = 3_600_000;
/** What one answer with records may hold, as in the public API; a larger record comes alone. */
export const CRAWL_ANSWER_BYTES_MAX = 10 * 1024 * 1024;
/** Bodies of records read ahead of the client: with what a blob reads ahead by itself, a third of what a read may take. */
export const CRAWL_READ_AHEAD_BYTES_MAX = 4 * 1024 * 1024;
export const CRAWL_READ_AHEAD_MAX = 16;
/** Answers with records that one gateway writes at once: each holds some 8 MB for a client that reads slowly. */
export const CRAWL_READS_MAX = 64;
/** Of one account there: a quarter, so that one with slow clients does not close the way for the others. */
export const CRAWL_READS_OF_ACCOUNT_MAX = 16;
/** How long one such answer may take: 10 MB at some 17 kB a second. Who is slower asks for fewer records. */
export const CRAWL_READ_MS_MAX = 600_000;
/** How long a start waits for a robots.txt that is not known, as the API has it, and how often it asks. */
export const CRAWL_START_WAIT_MS = 5_000;
export const CRAWL_CONSULT_MS = 500;
/** A job's request outlives its 7 days and the 14 for which its results are kept, even when nobody removes it. */
export const CRAWL_REQUEST_KEPT_S = 22 * 86_400;
/** Open event streams of one gateway, and of one account there: each asks for its job's state at intervals. */
export const EVENT_STREAMS_MAX = 1_000;
export const EVENT_STREAMS_OF_ACCOUNT_MAX = 100;
/** How often a stream asks for what live messages may have missed, and whether its token still holds. */
export const EVENTS_POLL_MS = 5_000;
/** Proxies close what is silent for 30 s and more. */
export const EVENTS_KEEP_ALIVE_MS = 15_000;
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
/** A page that sends its reader on within these seconds is a redirect: "you are being redirected" is shown for 5, sometimes 10. Later, it is a page. */
export const REFRESH_S_MAX = 10;
/** Browsers of a worker with one page that may have ended the last one: each takes some 150 MB, and they are rarely needed. */
export const BROWSERS_APART_MAX = 1;
/** Tries of one page or sitemap, where another one makes sense. */
export const CRAWL_TRIES_MAX = 3;
/** What is told of a job as a whole, and how much of an address that is named there. */
export const CRAWL_MESSAGES_MAX = 20;
export const CRAWL_MESSAGE_URL_CHARS = 200;
/** Records of skipped addresses, and places given back for disallowed ones, at a small limit; at a larger one as many as that. */
export const RECORDS_SPARE_MIN = 1_000;
/**
 * Rows that tell which addresses a job knows, and pages of its limit for each. A row is written whole for each more: 150 bytes
 * at so many, 3 kB where as many as may be are skipped and every page is redirected ten times.
 */
export const KNOWN_PER_ROW = 8;
export const KNOWN_ROWS_MIN = 64;
export const KNOWN_ROWS_MAX = 16_384;
/** Sitemaps of one crawl: an index for each of a thousand sections, twice; at two a second they take a quarter of an hour. */
export const CRAWL_SITEMAPS_MAX = 2_000;
/** Levels of sitemaps in sitemaps, redirects among them: real ones have two, and two redirects on the way. */
export const SITEMAP_NESTING_MAX = 10;
/** Sitemaps that are queued or under way at once: the others wait until the job has room for their pages. */
export const SITEMAPS_OPEN_MAX = 32;
/** Hosts at which one job wants requests at once: those that answer nobody hold up a lane for all, some two minutes for so many. */
export const JOB_HOSTS_MAX = 100;
/** Characters of a host's name as the key of its site: names in DNS have 253, and a row has the name as well. */
export const HOST_KEY_CHARS_MAX = 400;
/** Patterns of one row of a job: the longest of them fit ROW_BYTES_MAX however they are written. */
export const PATTERNS_PER_ROW = 25;
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
/** Steps of some nanoseconds that looking at addresses may take: 2,500 plain ones, some 20 ms. */
export const STEP_WORK_MAX = 10_000_000;
/** Addresses that wait to be looked at are kept in rows of so many characters, at most so many rows. */
export const BACKLOG_ROW_CHARS_MAX = 50_000;
export const BACKLOG_ROWS_MAX = 1_000;
/** Records of one listing, below MESSAGE_BYTES_MAX with what is around them. */
export const RECORD_LIST_BYTES_MAX = 800_000;
/** Rows kept of a job whose limit is reached: a page that turns out to be disallowed makes room for another. */
export const BACKLOG_SPARE_ROWS_MAX = 16;
/** Links wait for sitemaps that are read first, but no more than this. */
export const BACKLOG_HELD_ROWS_MAX = 64;
/** A page in a browser, whatever its parameters wait for: with TURN_STARTS_MS_MAX before it less than TURN_MS_MAX. */
export const CRAWL_RENDER_MS_MAX = 170_000;
/**
 * Browser time that a worker's turns have used of an account is told when so much has come together. What is asked before
 * each page knows of what its own worker has not told: a limit is passed by the pages that are in browsers when it is
 * reached, and by less than this for each further worker.
 */
export const BROWSER_TIME_TOLD_MS = 10_000;
/** Taking the HTML of a page that is ready: 10 MB take 0.3 s, and a script that never ends takes for ever. */
export const TAKE_HTML_MS = 10_000;
/** Bytes that pages of one browser context may move together, from when one begins in it alone: five heavy pages. */
export const RENDER_BYTES_MAX = 200_000_000;
/** Where they have moved so much, the next begin in another context: so those that overlap without end are not cut for it. */
export const CRAWL_CONTEXT_BYTES_MAX = RENDER_BYTES_MAX / 2;
/**
 * A page that is done is stopped, to be used again; one that is not stopped by then is closed, which takes another 0.5 s where
 * it hangs: so 2 s after it is done, or was taken back, nothing of it is connected. Most are stopped in 10 ms.
 */
export const PAGE_RESET_MS = 1_000;
/** A job's browser context is given back when nothing was loaded for so long: its pages hold some 15 MB each. */
export const CRAWL_CONTEXT_IDLE_MS = 10_000;
/** A context is exchanged for a new one after so many pages, or so long: a browser that is replaced waits for it. */
export const CRAWL_CONTEXT_PAGES_MAX = 500;
export const CRAWL_CONTEXT_AGE_MS_MAX = 5 * 60_000;
