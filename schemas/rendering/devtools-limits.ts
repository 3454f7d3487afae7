/** Limits of DevTools sessions. */

/** Sessions of one account at a time, as on the free plan of the public API: each may fill its memory. */
export const DEVTOOLS_SESSIONS_MAX = 3;
/** Time that a session stays without a client, as in the public API. */
export const DEVTOOLS_KEEP_ALIVE_MS = 60_000;
export const DEVTOOLS_KEEP_ALIVE_MS_MAX = 600_000;
/** Below this a client that reconnects would find its session gone. */
export const DEVTOOLS_KEEP_ALIVE_MS_MIN = 1_000;
/** The longest session: a browser that runs for hours leaks memory, and a forgotten client would hold it for ever. */
export const DEVTOOLS_SESSION_MS_MAX = 3_600_000;
/** Memory of all processes of a session's browser: one renderer at its own limit, and its browser. */
export const DEVTOOLS_MEMORY_BYTES_MAX = 2_000_000_000;
/** How often the memory is read: a page fills half a gigabyte in this time. */
export const DEVTOOLS_MEMORY_CHECK_MS = 1_000;
/** Sessions of one worker: together they may take half of the machine's memory, and no more than this. */
export const DEVTOOLS_SESSIONS_PER_WORKER_MAX = 8;
/** Bytes that all pages of a session move, both ways together: a hundred heavy pages. */
export const DEVTOOLS_BYTES_MAX = 2_000_000_000;
/** How often a worker reports a session and its browser time: the account may exceed its time by as much. */
export const DEVTOOLS_RENEW_MS = 10_000;
/** A session that its worker has not reported for this long has ended with it. */
export const DEVTOOLS_LAPSE_MS = 3 * DEVTOOLS_RENEW_MS;
/** Ended sessions that an account can still read. */
export const DEVTOOLS_ENDED_KEPT = 20;
/** WebSockets of one session at a time: a few programs and viewers beside each other. */
export const DEVTOOLS_CLIENTS_MAX = 16;
/** Viewers of live views beside them: people who look on. */
export const DEVTOOLS_VIEWERS_MAX = 8;
/** Unclosed streams of one client, such as of PDFs: each is a file of the browser on the worker's disk. */
export const DEVTOOLS_STREAMS_MAX = 16;
/** One message of a client: a page's HTML for `setContent`, or a body for a request that it intercepts. */
export const DEVTOOLS_MESSAGE_BYTES_MAX = 16 * 1024 * 1024;
/** Commands of one client that wait for their answers: the worker remembers each. */
export const DEVTOOLS_COMMANDS_MAX = 10_000;
/** Pages, workers and frames that one client is attached to: a browser of this memory has fewer. */
export const DEVTOOLS_ATTACHED_MAX = 2_000;
/** Host patterns of `guardrails.allowedDomains`, as in the public API. */
export const DEVTOOLS_DOMAINS_MAX = 50;
/** How long the address of a live view is valid, as in the public API. */
export const LIVE_VIEW_MS = 300_000;
export const LIVE_VIEW_MS_MAX = 3_600_000;
export const LIVE_VIEW_MS_MIN = 1_000;
/** Valid live views of one session: a further one replaces the oldest. */
export const LIVE_VIEWS_MAX = 20;
/** A body of these routes: fifty host names. */
export const SESSION_BODY_BYTES_MAX = 64 * 1024;
