/** Every bound that was chosen, with what it bridges. */

// --- Placement ---

/** Units of placement. Fixed for the life of a store: keys hash to them, and nats.conf repeats the number. */
export const SHARDS = 64;
/** A dead host's lease ends after this; with the takeover its actors answer again within 5 s. */
export const LEASE_TTL_MS = 3_000;
/** Three renewals a lease, so that one lost message costs nothing. */
export const LEASE_RENEW_MS = 1_000;
/** Taken off a lease before a host trusts it for reads: clocks of two machines drift, timers come late. */
export const LEASE_MARGIN_MS = 500;

// --- Messages ---

/** Characters of a key in its encoded form; with kind, bucket and row it stays well below a subject's practical 1 KiB. */
export const KEY_CHARS_MAX = 512;
/** One message on the bus: nats.conf's max_payload is 1 MiB, the rest is headers. */
export const MESSAGE_BYTES_MAX = 1_000_000;
/** An actor's value in the store; beyond it a kind needs rows. */
export const STATE_BYTES_MAX = 900_000;
export const ROW_BYTES_MAX = 256_000;
/** Rows one transition may change: an atomic batch has at most 1,000 messages. */
export const TRANSITION_ROWS_MAX = 500;
/** Sends of one transition, and their bytes: a shard's outbox is one value. */
export const TRANSITION_SENDS_MAX = 256;
export const TRANSITION_SEND_BYTES_MAX = 300_000;
/** Unsent bytes of a shard at which its actors wait with sending more. */
export const OUTBOX_BYTES_MAX = 600_000;
/** Reminders of one transition. */
export const TRANSITION_REMINDERS_MAX = 16;
/** Messages of one atomic batch (nats-server refuses more). */
export const BATCH_MESSAGES_MAX = 1_000;
/** Bytes of one atomic batch, so that a commit stays short. */
export const BATCH_BYTES_MAX = 4_000_000;
/** Dirty actors up to which single fenced puts are quicker than a batch (research: 2.5 ms a batch, whatever its size). */
export const SINGLE_PUTS_MAX = 8;

// --- Calls ---

/** What a call may take when its caller names no deadline. */
export const CALL_DEADLINE_MS = 10_000;
export const CALL_DEADLINE_MS_MAX = 120_000;
/** How long one try waits for a host that may be frozen before it is sent again under the same id. */
export const CALL_TRY_MS = 1_500;
/** Calls a client may have in flight; past it they are refused. */
export const CLIENT_CALLS_MAX = 16_384;
/** Messages waiting for one key. */
export const MAILBOX_MAX = 2_048;
/** Messages in flight on one host. */
export const HOST_CALLS_MAX = 32_768;
/** Unsettled replies an actor keeps for one client. */
export const REPLIES_PER_CLIENT_MAX = 4_096;
/** A client's replies are forgotten this long after its last call: no call lives longer, clocks differ less. */
export const REPLIES_KEPT_MS = 2 * CALL_DEADLINE_MS_MAX;

// --- Activations ---

/** An actor that heard nothing for so long leaves memory. */
export const ACTIVATION_IDLE_MS = 60_000;
export const ACTIVATIONS_MAX = 20_000;

// --- Mail and reminders ---

/** Tries of one mail before it becomes a dead letter, and the pauses between them. */
export const MAIL_TRIES_MAX = 8;
export const MAIL_RETRY_MS = 250;
export const MAIL_RETRY_MS_MAX = 30_000;
/** Mail of one shard under way in a host's memory. */
export const MAIL_IN_FLIGHT_MAX = 1_000;
/** Dead letters wait so long for an operator. */
export const DEAD_LETTER_DAYS = 30;

// --- Tasks ---

/** Waiting and running tasks of one lane; one more is refused at once. */
export const LANE_TASKS_MAX = 1_000;
/** A worker that is not heard from for so long is taken for dead, and its task goes to another. */
export const TASK_ACK_WAIT_MS = 6_000;
export const TASK_HEARTBEAT_MS = 2_000;
export const TASK_TRIES_MAX = 3;
export const TASK_RETRY_MS = 500;
/** Streamed replies travel in chunks of this size, so many unacknowledged at once. */
export const CHUNK_BYTES = 128 * 1024;
export const CHUNKS_IN_FLIGHT = 8;

// --- Stopping ---

export const SHUTDOWN_SECONDS = 20;
