/** Limits of a host's journal, which holds the commits that are not written to their keys yet. */

/** Bytes of one commit in the journal; nats-server takes messages of 1 MiB, headers included. */
export const JOURNAL_COMMIT_BYTES_MAX = 900_000;
/** Messages of one actor that only the journal holds: with the largest change they still fit one batch. */
export const JOURNAL_ACTOR_MESSAGES_MAX = 90;
/** The age of the oldest commit in the journal. The values that operators read lag behind as long. */
export const CHECKPOINT_MS = 1_000;
/** A reminder that is due sooner does not wait for a checkpoint, which may be late on a busy bus. */
export const REMINDER_SOON_MS = 3 * CHECKPOINT_MS;
