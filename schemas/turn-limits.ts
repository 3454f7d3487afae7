/** Limits of lanes that serve their keys in turn, and of the pages that run in them. */

/**
 * Credit of a key in each round, in milliseconds of work. A page usually takes less, so turns change with each page.
 */
export const TURN_QUANTUM_MS = 1_000;
/** How often a worker looks for queues that it was not notified of, such as those of a worker that died. */
export const TURN_LOOK_MS = 1_000;
/**
 * How long a pull from an empty queue holds a place of the worker. A pull that does not wait at all may miss tasks:
 * after
 * removals the server may count too few remaining messages for a consumer.
 */
export const TURN_PULL_MS = 50;
/** A key's consumer is removed after this without a request: longer than its last task may run (TASK_RUN_MS_MAX). */
export const TURN_CONSUMER_IDLE_MS = 30 * 60_000;
/** Keys whose last queueing time a client remembers, for Retry-After. */
export const QUEUE_TIMES_MAX = 1_000;

// --- Pages ---

/** How often a running page is checked against its account's browser time. A page may exceed its time by as much. */
export const BROWSER_TIME_CHECK_MS = 2_000;
/** How often a page is asked whether it computes; most pages end before the first time. */
export const COMPUTING_CHECK_MS = 250;
/** A page whose main thread answers later than this computes: an idle one answers within some milliseconds. */
export const COMPUTING_ANSWER_MS = 50;
/** Pages that a browser worker holds for each page that may compute: a waiting page costs some 30 MB. */
export const PAGES_PER_COMPUTING_PAGE = 3;
