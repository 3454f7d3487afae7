/** Limits of lanes that serve their keys in turn, and of the pages that run in them. */

/** Work that a key in turn is credited with each round: a page takes less as a rule, so turns change with each page. */
export const TURN_QUANTUM_MS = 1_000;
/** A worker looks for queues that it was not notified of, such as those of a worker that died, this often. */
export const TURN_LOOK_MS = 1_000;
/**
 * How long a pull from a key's queue holds a place of the worker where the queue is empty. A pull that does not wait at all
 * may miss tasks: after removals the server's count of what a consumer has left, which it answers such pulls by, may be 0 too early.
 */
export const TURN_PULL_MS = 50;
/** A key's consumer is removed after this without a request: longer than its last task may run (TASK_RUN_MS_MAX). */
export const TURN_CONSUMER_IDLE_MS = 30 * 60_000;
/** Keys whose last queueing time a client remembers, for Retry-After. */
export const QUEUE_TIMES_MAX = 1_000;

// --- Pages ---

/** How often a page that runs is held to its account's time: what it may use too much, for each page at a time. */
export const BROWSER_TIME_CHECK_MS = 2_000;
/** How often a page is asked whether it computes; most pages are done before the first time. */
export const COMPUTING_CHECK_MS = 250;
/** A page whose main thread answers later computes: an idle one answers within some milliseconds. */
export const COMPUTING_ANSWER_MS = 50;
/** Pages that a browser worker holds, for each that may compute: a page that waits costs some 30 MB. */
export const PAGES_PER_COMPUTING_PAGE = 3;
