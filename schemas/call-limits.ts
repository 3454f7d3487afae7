/** Limits of the calls of one client. */

/** How long one try waits for a host that may be frozen before it is sent again under the same id. */
export const CALL_TRY_MS = 1_500;
/** Calls a client may have in flight; past it they are refused. */
export const CLIENT_CALLS_MAX = 16_384;
/** First pause before a call is sent again to a shard that is changing its owner. */
export const CALL_RETRY_MS = 5;
/** The longest pause before what failed in passing is tried again. */
export const CALL_RETRY_MS_MAX = 250;
/** How often a client looks for calls past their time: a hundredth of the default deadline. */
export const CALL_SWEEP_MS = 100;
/** Calls that go in one message: more would save little, and wait for each other. */
export const CALL_BATCH_MAX = 128;
/** Bytes of calls or answers that are joined; larger ones go alone, as they would with no other. */
export const CALL_BATCH_BYTES_MAX = 192 * 1024;
/** How long a task waits for an actor that it could send mail to: a host that dies is missed by a second call within it. */
export const TELL_MS_MAX = 2_000;
