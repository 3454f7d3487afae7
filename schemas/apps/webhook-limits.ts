/** Every bound of webhooks, in and out, that was chosen, with what it bridges. */

// --- In ---

/** The largest body of an event; GitHub's own bound is 25 MB, that of the others 5 MiB or less. */
export const WEBHOOK_BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Bodies of events on their way through one gateway: some fifty of the largest. */
export const WEBHOOK_BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Repeats of an event are recognised for this long. No provider repeats for more than three days. */
export const EVENT_IDS_KEPT_MS = 7 * 86_400_000;
/** Ids one agent remembers, at 14 bytes each; past it those of the oldest day go before their time. */
export const EVENT_IDS_MAX = 1_000_000;
export const EVENT_ID_CHARS_MAX = 256;
export const EVENT_TYPE_CHARS_MAX = 128;
/** Events that wait for one agent; past it a sender hears 429. */
export const EVENTS_WAITING_MAX = 10_000;
/** When a sender that was refused should come back: an agent takes hundreds of events in that time. */
export const EVENTS_WAITING_RETRY_S = 30;
/** A body that stands in the inbox's rows: most events of GitHub and Stripe. Past it it is a blob. */
export const EVENT_INLINE_BYTES_MAX = 8_192;
/** An event without its body, or with one that stands in it: what mail and rows carry, far below ROW_BYTES_MAX. */
export const EVENT_REQUEST_CHARS_MAX = 65_536;
/** What the rows of one inbox hold of bodies: it is in memory while events come. Past it they are blobs as well. */
export const EVENT_INLINE_TOTAL_BYTES_MAX = 8_000_000;
/**
 * Inboxes of which a gateway knows that they have enough of bodies; one that is not known is asked about by its next
 * event.
 */
export const HEAVY_INBOXES_KEPT_MAX = 1_000;
/** Signatures of one event that are looked at: a sender that goes over to another secret has two or three. */
export const SIGNATURES_READ_MAX = 16;
/** Pauses after each try of a delivery that failed: what comes behind it waits 13 minutes at most. */
export const DELIVERY_PAUSES_MS: readonly number[] = [1_000, 5_000, 30_000, 120_000, 600_000];
export const DELIVERY_TRIES_MAX = DELIVERY_PAUSES_MS.length + 1;
/** Events that go to a busy agent together. A record costs more than a further event in it. */
export const DELIVERIES_TOGETHER_MAX = 64;
/** Characters of their requests: what goes together is no larger than one alone may be. */
export const DELIVERIES_TOGETHER_CHARS_MAX = EVENT_REQUEST_CHARS_MAX;
/**
 * No further event of a round begins after this time. Finished ones are reported, and slow code gets its events one
 * by one.
 */
export const DELIVERIES_TOGETHER_MS_MAX = 1_000;
/**
 * One mail drives rounds for this long at most, because it delays the removal of later mail. Then another mail
 * continues.
 */
export const DELIVERIES_OF_MAIL_MS_MAX = 3_000;
/**
 * What they write becomes one record, and another from here on: far below what one message holds, compressed or not.
 */
export const DELIVERIES_UNRECORDED_BYTES_MAX = 256 * 1024;
/**
 * Events of one record run without a pause for this long at most, so that they delay other agents of the app no
 * longer than one event does.
 */
export const DELIVERIES_UNRECORDED_MS_MAX = 100;
/** Share of its time that a host is at work, from which on agents are given more events at once, and less often. */
export const DELIVERIES_GATHER_LOAD = 0.8;
/** Between two looks at that. */
export const DELIVERY_LOAD_MS = 250;
/**
 * How long an inbox then waits to hear that they are taken, and gathers meanwhile what comes: as long as a queue of
 * them would.
 */
export const DELIVERIES_GATHER_MS = 1_000;
/** An agent that is silent for this long did not get the mail. Mail is tried for two minutes, and may wait before. */
export const DELIVERY_ANSWER_MS_MAX = 300_000;
/** Time to report results to an inbox by call. After that they are sent by mail, and a shutdown continues. */
export const DELIVERY_SETTLED_MS_MAX = 1_000;
/** Characters kept of why a delivery failed. */
export const DELIVERY_ERROR_CHARS_MAX = 1_000;
/** Runs of numbers that wait: replays of failed ones leave gaps between them. */
export const DELIVERY_RUNS_MAX = 1_000;
/** Entries of a log that leave it in one step, and that one listing looks at. */
export const DELIVERIES_TRIMMED_AT_ONCE = 100;
export const DELIVERIES_SCANNED_MAX = 5_000;
/** Events that wait because they were replayed: what comes in has room beside them. */
export const REPLAYS_WAITING_MAX = 5_000;
/** Entries of one answer that lists a log. */
export const DELIVERIES_LISTED_MAX = 100;

// --- Out ---

/** A payload as text. */
export const OUTGOING_PAYLOAD_BYTES_MAX = 1_000_000;
/** A payload that stands in the rows of the queue; past it it is a blob. */
export const OUTGOING_INLINE_BYTES_MAX = 8_192;
/** Webhooks of one agent that have not arrived; past it `this.webhook` is refused. */
export const OUTGOING_WAITING_MAX = 1_000;
/** Webhooks of one agent under way at once: their tasks fit one transition. */
export const OUTGOING_AT_ONCE_MAX = 5;
/** When it is tried, each after the one before: now, 5 s, 5 m, 30 m, 2 h, 5 h, 10 h, 10 h. */
export const OUTGOING_PAUSES_MS: readonly number[] = [
  5_000, 300_000, 1_800_000, 7_200_000, 18_000_000, 36_000_000, 36_000_000,
];
export const OUTGOING_TRIES_MAX = OUTGOING_PAUSES_MS.length + 1;
/** The longest pause that a receiver may ask for by Retry-After. */
export const OUTGOING_RETRY_AFTER_MS_MAX = 86_400_000;
/** However often its endpoint's breaker was open: then it has failed. Twice what the tries take. */
export const OUTGOING_AGE_MS_MAX = 3 * 86_400_000;
/** From the first byte sent to the end of the answer. */
export const OUTGOING_TIMEOUT_MS = 15_000;
/** What is kept of an answer, and what is read of it at all. */
export const OUTGOING_ANSWER_CHARS_KEPT = 1_000;
export const OUTGOING_ANSWER_BYTES_MAX = 64 * 1024;
/**
 * A try that is not heard of for so long is taken for lost: a full lane of endpoints that do not answer takes half of
 * it.
 */
export const OUTGOING_TRY_MS_MAX = 900_000;
/** Tries that are shown of one webhook. */
export const OUTGOING_TRIES_KEPT = 10;
/** Webhooks that one worker posts at once; most of the time of each is waiting. */
export const OUTGOING_SLOTS = 32;
export const PURGE_SLOTS = 2;
/** A sealed secret in base64: APP_SECRET_BYTES_MAX, nonce and tag. */
export const SEALED_CHARS_MAX = 12_000;
/** Number and age of ended webhooks in the log of outgoing webhooks. */
export const OUTGOING_KEPT_MAX = 1_000;
export const OUTGOING_KEPT_MS = 30 * 86_400_000;
/** Secrets that sign one webhook while receivers go over from one to the next: each is a signature of 47 characters. */
export const OUTGOING_SECRETS_MAX = 3;
/** Failures in a row at which an endpoint's breaker opens, and how long it stays so, doubled each time. */
export const BREAKER_FAILURES_MAX = 5;
export const BREAKER_OPEN_MS = 30_000;
/** Less than an actor without news stays in memory, where all of a breaker is. */
export const BREAKER_OPEN_MS_MAX = 300_000;
/** A probe whose outcome nobody told is given to another. */
export const BREAKER_PROBE_MS_MAX = 60_000;
/** Reports that would be known if they came twice. */
export const BREAKER_REPORTS_KEPT = 32;
