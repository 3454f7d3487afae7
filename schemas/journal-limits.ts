/** Limits of a host's journal, which holds the commits that are not written to their keys yet. */

/**
 * Commits in a journal before they must be written: those of a second, at 500 commits a second. A takeover reads as
 * many.
 */
export const JOURNAL_SLOTS = 512;
/** Bytes of one commit in the journal; nats-server takes messages of 1 MiB, headers included. */
export const JOURNAL_COMMIT_BYTES_MAX = 900_000;
/** Bytes of commits without a checkpoint. A takeover reads them within a second. */
export const JOURNAL_BYTES_MAX = 16_000_000;
/** Actors and outboxes that are not written: a takeover reads the stored value of each. */
export const JOURNAL_OWNERS_MAX = 5_000;
/** Messages of one actor that only the journal holds: with the largest change they still fit one batch. */
export const JOURNAL_ACTOR_MESSAGES_MAX = 90;
/** The age of the oldest commit in the journal. The values that operators read lag behind as long. */
export const CHECKPOINT_MS = 1_000;
/** A reminder that is due sooner does not wait for a checkpoint, which may be late on a busy bus. */
export const REMINDER_SOON_MS = 3 * CHECKPOINT_MS;
/** Messages of one checkpoint batch: some 8 ms, for which commits wait. */
export const CHECKPOINT_MESSAGES_MAX = 256;
/** Reads of a takeover at once. */
export const JOURNAL_READS_MAX = 64;
