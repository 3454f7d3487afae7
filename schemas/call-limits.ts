/** Limits of the calls of one client. */

/** How long one try waits for a host that may stand still, before the call is sent again under the same id. */
export const CALL_TRY_MS = 1_500;
/** Calls a client may have in flight; past it they are refused. */
export const CLIENT_CALLS_MAX = 16_384;
/**
 * The first pause before a call is sent again to a shard that changes its owner. A call that was sent longer ago is
 * sent
 * again when a new owner opens the shard.
 */
export const CALL_RETRY_MS = 5;
/** The longest pause before a call that failed in passing is sent again. */
export const CALL_RETRY_MS_MAX = 250;
/** How often a client looks for calls past their time: a hundredth of the default deadline. */
export const CALL_SWEEP_MS = 100;
/** Calls in one message: more would save little, and wait for each other. */
export const CALL_BATCH_MAX = 128;
/** Bytes of joined calls or answers; larger ones go alone. */
export const CALL_BATCH_BYTES_MAX = 192 * 1024;
/**
 * How long a task waits for an actor that it could send mail to: if the host dies, a second call within this time
 * misses
 * it.
 */
export const TELL_MS_MAX = 2_000;
