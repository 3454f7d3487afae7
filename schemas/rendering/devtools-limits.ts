/** Limits of DevTools sessions. */

/**
 * Maximum running sessions of one account, as on the free plan of the public API. Each session may use its full
 * memory limit.
 */
export const DEVTOOLS_SESSIONS_MAX = 3;
/** Default time after which a session without a client ends, as in the public API. */
export const DEVTOOLS_KEEP_ALIVE_MS = 60_000;
export const DEVTOOLS_KEEP_ALIVE_MS_MAX = 600_000;
/** The minimum keep-alive time. With a shorter one, the session would end before a client can reconnect. */
export const DEVTOOLS_KEEP_ALIVE_MS_MIN = 1_000;
/**
 * Maximum duration of a session. A browser that runs for hours leaks memory. A client that never ends its session
 * would occupy a browser permanently.
 */
export const DEVTOOLS_SESSION_MS_MAX = 3_600_000;
/**
 * Memory limit for all processes of a session's browser: enough for one renderer at its own limit and for the browser
 * process.
 */
export const DEVTOOLS_MEMORY_BYTES_MAX = 2_000_000_000;
/** Interval between memory checks. A page can allocate half a gigabyte in this time. */
export const DEVTOOLS_MEMORY_CHECK_MS = 1_000;
/**
 * Maximum sessions of one worker. In addition, all sessions together may use at most half of the machine's memory.
 */
export const DEVTOOLS_SESSIONS_PER_WORKER_MAX = 8;
/** Sessions of each worker that one account leaves to other accounts. A worker with a single session has none. */
export const DEVTOOLS_SESSIONS_KEPT_FREE = 1;
/** Maximum bytes that all pages of a session send and receive together: a hundred heavy pages. */
export const DEVTOOLS_BYTES_MAX = 2_000_000_000;
/**
 * Interval at which a worker reports a session and its browser time. The account may exceed its limit of browser time
 * by one interval.
 */
export const DEVTOOLS_RENEW_MS = 10_000;
/**
 * If a session was not reported by its worker for this time, it counts as ended, because the worker is assumed dead.
 */
export const DEVTOOLS_LAPSE_MS = 3 * DEVTOOLS_RENEW_MS;
/** Number of ended sessions that an account can still read. */
export const DEVTOOLS_ENDED_KEPT = 20;
/** Maximum open WebSockets of one session: enough for several programs at the same time. */
export const DEVTOOLS_CLIENTS_MAX = 16;
/** Maximum viewers of live views of one session, in addition to its clients. */
export const DEVTOOLS_VIEWERS_MAX = 8;
/**
 * Maximum unclosed streams of one client, for example of PDFs. Each is a file of the browser on the worker's disk.
 */
export const DEVTOOLS_STREAMS_MAX = 16;
/**
 * Maximum bytes of one message of a client: enough for the HTML of a page in `setContent`, or the body of an
 * intercepted request.
 */
export const DEVTOOLS_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Maximum bytes of messages that the clients of one account have not read, in one gateway: two of the largest messages.
 * Without it, the clients of all sessions of an account could pin 3 GB by not reading.
 */
export const DEVTOOLS_UNREAD_BYTES_MAX = 128 * 1024 * 1024;
/** Maximum commands of one client that wait for a response. The worker stores an entry for each. */
export const DEVTOOLS_COMMANDS_MAX = 10_000;
/**
 * Maximum pages, workers and frames to which one client is attached. With the memory limit of a session, a browser
 * has fewer.
 */
export const DEVTOOLS_ATTACHED_MAX = 2_000;
/** Maximum host patterns in `guardrails.allowedDomains`, as in the public API. */
export const DEVTOOLS_DOMAINS_MAX = 50;
/** Default time for which the address of a live view is valid, as in the public API. */
export const LIVE_VIEW_MS = 300_000;
export const LIVE_VIEW_MS_MAX = 3_600_000;
export const LIVE_VIEW_MS_MIN = 1_000;
/** Maximum valid live views of one session. A further one replaces the oldest. */
export const LIVE_VIEWS_MAX = 20;
/** Maximum bytes of the body of a request about DevTools sessions: enough for fifty host names. */
export const SESSION_BODY_BYTES_MAX = 64 * 1024;
