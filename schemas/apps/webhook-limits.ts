/** Every bound of webhooks, in and out, that was chosen, with what it bridges. */

// --- In ---

/** The largest body of an event; GitHub's own bound is 25 MB, that of the others 5 MiB or less. */
export const WEBHOOK_BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Repeats of an event are recognised for this long. No provider repeats for more than three days. */
export const EVENT_IDS_KEPT_MS = 7 * 86_400_000;
/** Ids one agent remembers, at 14 bytes each; past it those of the oldest day go before their time. */
export const EVENT_IDS_MAX = 1_000_000;
export const EVENT_ID_CHARS_MAX = 256;
export const EVENT_TYPE_CHARS_MAX = 128;
/** Events that wait for one agent; past it a sender hears 429. */
export const EVENTS_WAITING_MAX = 10_000;
/** A body that stands in the inbox's rows: most events of GitHub and Stripe. Past it it is a blob. */
export const EVENT_INLINE_BYTES_MAX = 8_192;
/** An event without its body, or with one that stands in it: what mail and rows carry, far below ROW_BYTES_MAX. */
export const EVENT_REQUEST_CHARS_MAX = 65_536;
/** Events that go to a busy agent together. A record costs more than a further event in it. */
export const DELIVERIES_TOGETHER_MAX = 64;
/** Characters kept of why a delivery failed. */
export const DELIVERY_ERROR_CHARS_MAX = 1_000;
/** Entries of a log that leave it in one step, and that one listing looks at. */
export const DELIVERIES_TRIMMED_AT_ONCE = 100;
export const DELIVERIES_SCANNED_MAX = 5_000;
/** Entries of one answer that lists a log. */
export const DELIVERIES_LISTED_MAX = 100;

// --- Out ---

/** A payload that stands in the rows of the queue; past it it is a blob. */
export const OUTGOING_INLINE_BYTES_MAX = 8_192;
/** Webhooks of one agent that have not arrived; past it `this.webhook` is refused. */
export const OUTGOING_WAITING_MAX = 1_000;
/** The longest pause that a receiver may ask for by Retry-After. */
export const OUTGOING_RETRY_AFTER_MS_MAX = 86_400_000;
/** However often its endpoint's breaker was open: then it has failed. Twice what the tries take. */
export const OUTGOING_AGE_MS_MAX = 3 * 86_400_000;
/** What is kept of an answer, and what is read of it at all. */
export const OUTGOING_ANSWER_CHARS_KEPT = 1_000;
/** A sealed secret in base64: APP_SECRET_BYTES_MAX, nonce and tag. */
export const SEALED_CHARS_MAX = 12_000;
/** Number and age of ended webhooks in the log of outgoing webhooks. */
export const OUTGOING_KEPT_MAX = 1_000;
export const OUTGOING_KEPT_MS = 30 * 86_400_000;
/** Secrets that sign one webhook while receivers go over from one to the next: each is a signature of 47 characters. */
export const OUTGOING_SECRETS_MAX = 3;
