/** Limits of the calls of one client. */

/** The longest pause before a call that failed in passing is sent again. */
export const CALL_RETRY_MS_MAX = 250;
/** Calls in one message: more would save little, and wait for each other. */
export const CALL_BATCH_MAX = 128;
/**
 * How long a task waits for an actor that it could send mail to: if the host dies, a second call within this time
 * misses
 * it.
 */
export const TELL_MS_MAX = 2_000;
