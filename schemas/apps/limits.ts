/** Limits of apps, agents and webhooks that clients see or several folders share. */

/** Limits of one account. */
export const APPS_MAX = 500;
/**
 * Ports for apps on a single machine, by default and at most. Each takes two descriptors of the gateway, and all of
 * them stand in one actor's state at 130 bytes each.
 */
export const APP_PORTS_PRESET = 100;
export const APP_PORTS_MAX = 1_000;
/** Versions kept for a rollback; older ones go with their bundles. */
export const APP_VERSIONS_MAX = 20;
/** A bundled script in UTF-8: what people know from platforms of this kind. */
export const APP_BUNDLE_BYTES_MAX = 10_000_000;
/** Configuration as JSON. The app's state holds one for each of APP_VERSIONS_MAX versions. */
export const APP_CONFIG_BYTES_MAX = 24_000;
export const APP_VARS_MAX = 64;
export const APP_VAR_BYTES_MAX = 5_000;
export const APP_SECRETS_MAX = 64;
/** A secret's value in UTF-8: a private key in PEM fits. */
export const APP_SECRET_BYTES_MAX = 5_000;
export const APP_AGENT_CLASSES_MAX = 32;
export const APP_WEBHOOKS_MAX = 64;
export const APP_EVENT_RULES_MAX = 64;

/** Default for the agents of one account: the store holds this many with a log of 200 kB each. */
export const AGENTS_PER_ACCOUNT = 10_000;
/**
 * The highest valid setting. One actor counts an account's agents in rows, which it keeps in memory and reads when
 * its host changes.
 */
export const AGENTS_PER_ACCOUNT_MAX = 100_000;
/** Default for the bytes of an account's agents and their webhooks' bodies: half of AGENTS_STORE_BYTES_MAX. */
export const AGENT_BYTES_PER_ACCOUNT = 1024 ** 3;
/** The unit in which agents ask for room: small ones ask once, others each time they have grown by a quarter. */
export const AGENT_ROOM_BYTES = 16 * 1024;

/**
 * Characters of an agent's name: with account, app and class its key stays below KEY_CHARS_MAX where it needs no
 * encoding.
 */
export const AGENT_NAME_CHARS_MAX = 256;
/** An agent's database: its image is in memory twice, in the app's process. */
export const AGENT_DATABASE_BYTES_MAX = 64 * 1024 * 1024;
/** A record of changed pages, compressed, that goes as one message; past it the image becomes a blob. */
export const AGENT_RECORD_BYTES_MAX = 900_000;
/** Requests and answers of apps, held in memory whole. */
export const APP_REQUEST_BYTES_MAX = 10_000_000;
export const APP_ANSWER_BYTES_MAX = 10_000_000;
/** Answers of one process that are still being made. */
export const APP_STREAMS_MAX = 1_000;
/** Bytes of one part of a streamed answer. The parts of APP_STREAMS_MAX answers stay within APP_HELD_BYTES_MAX. */
export const APP_STREAM_PART_BYTES_MAX = 64 * 1024;
/** How long a host holds a request for the next part before it replies that none is ready. */
export const APP_STREAM_WAIT_MS = 10_000;
/** A streamed answer without a read for this long is abandoned: its reader died or hangs. */
export const APP_STREAM_UNREAD_MS = 60_000;
/** A turn that takes longer is refused. A turn that blocks the process for this long ends it. */
export const AGENT_TURN_MS_MAX = 30_000;
export const AGENT_CPU_MS_MAX = 10_000;
/** A method of a schedule, the queue or a submission, which nobody waits for: past it that try has failed. */
export const AGENT_WORK_MS_MAX = 15 * 60_000;
/** Turns that wait for one agent; past it callers hear `busy`. */
export const AGENT_TURNS_MAX = 1_000;
/** An agent that nothing came to leaves memory. */
export const AGENT_IDLE_MS = 60_000;
/** Write-ahead files that one process has open a second time, to read them, of the agents that were last at work. */
export const APP_WAL_FILES_MAX = 64;
/** A process whose agents are all gone ends. */
export const APP_PROCESS_IDLE_MS = 120_000;
/**
 * Time for a process to load its bundle and report that it is ready: some 10 s when six processes compete for each
 * processor.
 */
export const APP_START_MS_MAX = 20_000;
/** The heap of one app's process, and all that it may be resident. */
export const APP_HEAP_MB_MAX = 256;
export const APP_RESIDENT_MB_MAX = 768;
/** Processes of apps on one host, at some 50 MB each. */
export const APP_PROCESSES_MAX = 100;
/** How long a gateway caches an app. A notification of a change ends it earlier. */
export const APP_SERVING_KEPT_MS = 5_000;
/** Characters of a token that an app looks up. Valid tokens have 79. */
export const APP_TOKEN_CHARS_MAX = 1_024;
/**
 * Bytes that a process sent and its host holds until they are durable, sent or done. Past it the process is ended.
 */
export const APP_HELD_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Log lines of one process per second. The log says how many further lines are missing. The process keeps this limit,
 * and its host enforces it.
 */
export const APP_LOG_LINES_A_SECOND_MAX = 500;

/** Characters of a stack that are kept: an answer of an app and a line of its log have room for them. */
export const APP_STACK_CHARS_MAX = 4_000;
/** The name of an error that code of an app threw: that of a class. */
export const APP_ERROR_NAME_CHARS_MAX = 100;
/** Tags per connection. Below: characters of a tag, and of a connection id that a client chooses. */
export const CONNECTION_TAGS_MAX = 9;
export const CONNECTION_TAG_CHARS_MAX = 256;
/** Sockets of one agent. */
export const AGENT_CONNECTIONS_MAX = 10_000;
/** Timers, queued calls and tables in one response about an agent, each. */
export const AGENT_LISTED_MAX = 100;
/** Characters of the state as JSON in one response. Escaped, it still fits in a bus message. */
export const AGENT_STATE_SHOWN_CHARS_MAX = 100_000;
/** Rows of one query, and characters of all its values: with their escapes they fit a message of the bus. */
export const AGENT_QUERY_ROWS_MAX = 500;
export const AGENT_QUERY_CHARS_MAX = 120_000;
/** Characters of one value of a query; past it its start is shown. */
export const AGENT_QUERY_CELL_CHARS_MAX = 4_000;
export const AGENT_QUERY_SQL_CHARS_MAX = 10_000;
/** Bytes that wait for one reader; past it only the latest state is kept, past twice as many it is closed. */
export const SOCKET_WAITING_BYTES_MAX = 1_000_000;
/** Lines of one answer, and how long it waits for one: shorter than what proxies allow. */
export const APP_LOG_LINES_SHOWN_MAX = 1_000;
export const APP_LOG_WAIT_S_MAX = 25;
export const APP_LOG_LINE_CHARS_MAX = 8_000;
export const AGENTS_STORE_BYTES_MAX = 2 * 1024 ** 3;
/** A request to an app, with the start of its process. */
export const APP_REQUEST_MS_MAX = AGENT_TURN_MS_MAX + APP_START_MS_MAX + 5_000;

// --- In ---

/** The largest body of an event; GitHub's own bound is 25 MB, that of the others 5 MiB or less. */
export const WEBHOOK_BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Repeats of an event are recognised for this long. No provider repeats for more than three days. */
export const EVENT_IDS_KEPT_MS = 7 * 86_400_000;
/** Event ids that one agent remembers, 14 bytes each. Past it the ids of the oldest day are dropped early. */
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
/** A webhook fails at this age even if its endpoint's breaker was open. Twice the time of all attempts. */
export const OUTGOING_AGE_MS_MAX = 3 * 86_400_000;
/** Stored characters of a response, and bytes of it that are read. */
export const OUTGOING_ANSWER_CHARS_KEPT = 1_000;
/** A sealed secret in base64: APP_SECRET_BYTES_MAX, nonce and tag. */
export const SEALED_CHARS_MAX = 12_000;
/** Number and age of ended webhooks in the log of outgoing webhooks. */
export const OUTGOING_KEPT_MAX = 1_000;
export const OUTGOING_KEPT_MS = 30 * 86_400_000;
/** Secrets that sign one webhook while receivers go over from one to the next: each is a signature of 47 characters. */
export const OUTGOING_SECRETS_MAX = 3;
