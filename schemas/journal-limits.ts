/** Limits of a host's journal: what it has committed and not yet written where it belongs. */

/**
 * Commits a journal holds before it must be written down: at 500 commits a second, those of a second; a takeover reads as many.
 */
export const JOURNAL_SLOTS = 512;
/** Bytes of one commit in the journal; nats-server takes messages of 1 MiB, headers included. */
export const JOURNAL_COMMIT_BYTES_MAX = 900_000;
/** Bytes of the commits that are not written down: what a takeover reads, within a second. */
export const JOURNAL_BYTES_MAX = 16_000_000;
/** Actors and outboxes that are not written down: a takeover asks what is stored of each. */
export const JOURNAL_OWNERS_MAX = 5_000;
/** Messages of one actor that only the journal holds: with the largest change there is they still fit one batch. */
export const JOURNAL_ACTOR_MESSAGES_MAX = 90;
/** How old the journal may get: as long may what operators read of an actor lag behind what is durable. */
export const CHECKPOINT_MS = 1_000;
/** A reminder that is due sooner does not wait for a checkpoint, which may take its time on a busy bus. */
export const REMINDER_SOON_MS = 3 * CHECKPOINT_MS;
/** Messages of one batch of a checkpoint: some 8 ms, for which commits wait. */
export const CHECKPOINT_MESSAGES_MAX = 256;
/** What a takeover asks the bus for at once. */
export const JOURNAL_READS_MAX = 64;
