/** Limits of apps, agents and webhooks that clients see or several folders share. */

/** Limit of the apps of one account. */
export const APPS_MAX = 500;
/**
 * Default and maximum number of ports for apps on a single machine. Each port takes two descriptors of the gateway.
 * One actor's state holds all ports, at 130 bytes each.
 */
export const APP_PORTS_PRESET = 100;
export const APP_PORTS_MAX = 1_000;
/** Number of versions that are kept for a rollback. Older versions are deleted with their bundles. */
export const APP_VERSIONS_MAX = 20;
/** Limit of a bundled script in UTF-8. Users know this limit from similar platforms. */
export const APP_BUNDLE_BYTES_MAX = 10_000_000;
/** Limit of a configuration as JSON. The app's state holds one for each of APP_VERSIONS_MAX versions. */
export const APP_CONFIG_BYTES_MAX = 24_000;
export const APP_VARS_MAX = 64;
export const APP_VAR_BYTES_MAX = 5_000;
export const APP_SECRETS_MAX = 64;
/** Limit of a secret's value in UTF-8. A private key in PEM fits. */
export const APP_SECRET_BYTES_MAX = 5_000;
export const APP_AGENT_CLASSES_MAX = 32;
export const APP_WEBHOOKS_MAX = 64;
export const APP_EVENT_RULES_MAX = 64;

/** Default limit of the agents of one account. The store can hold this many with a log of 200 kB each. */
export const AGENTS_PER_ACCOUNT = 10_000;
/**
 * The highest valid setting of AGENTS_PER_ACCOUNT. One actor counts an account's agents in rows. It keeps them in
 * memory, and reads them again when it moves to another host.
 */
export const AGENTS_PER_ACCOUNT_MAX = 100_000;
/**
 * Default limit of the bytes of an account's agents and of their webhooks' bodies. An account also gets at most
 * ACCOUNT_STREAM_SHARE of a stream of agents.
 */
export const AGENT_BYTES_PER_ACCOUNT = 1024 ** 3;
/**
 * The unit in which agents reserve storage. A small agent reserves one time, a larger one each time it has grown by a
 * quarter.
 */
export const AGENT_ROOM_BYTES = 16 * 1024;

/**
 * Limit of the characters of an agent's name. With account, app and class, the key stays below KEY_CHARS_MAX if no
 * character needs encoding.
 */
export const AGENT_NAME_CHARS_MAX = 256;
/** Limit of an agent's database. The app's process holds the image of an open database in memory twice. */
export const AGENT_DATABASE_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Limit of a compressed record of changed pages, which is sent as one message. Instead of a larger record, a whole
 * image is stored; an image above this limit is stored as a blob.
 */
export const AGENT_RECORD_BYTES_MAX = 900_000;
/**
 * Limits of the body of a request to an app, and of an answer that is not streamed. Each is held in memory as a
 * whole.
 */
export const APP_REQUEST_BYTES_MAX = 10_000_000;
export const APP_ANSWER_BYTES_MAX = 10_000_000;
/**
 * Limit of the arguments or the result of a call between agents inside a message, and of any result by REST. In base64
 * it takes a third more, and must fit MESSAGE_BYTES_MAX. Between agents, a larger one is stored as a blob.
 */
export const CALL_INLINE_BYTES_MAX = 740_000;
/** Limit of the streamed answers that one process writes at the same time. */
export const APP_STREAMS_MAX = 1_000;
/** Limit of one part of a streamed answer. The parts of APP_STREAMS_MAX answers stay within APP_HELD_BYTES_MAX. */
export const APP_STREAM_PART_BYTES_MAX = 64 * 1024;
/** How long a host holds a request for the next part before it replies that none is ready. */
export const APP_STREAM_WAIT_MS = 10_000;
/** A streamed answer that is not read for this long is abandoned, because its reader has failed or hangs. */
export const APP_STREAM_UNREAD_MS = 60_000;
/**
 * A turn that takes longer is refused. The limit below is the processor time after which a process is killed if its
 * code does not yield.
 */
export const AGENT_TURN_MS_MAX = 30_000;
export const AGENT_CPU_MS_MAX = 10_000;
/**
 * Time limit of a method that a schedule, the queue or a submission calls. No caller waits for it; at the limit the
 * attempt has failed.
 */
export const AGENT_WORK_MS_MAX = 15 * 60_000;
/**
 * Limit of the turns that run or wait in one agent, and of the requests that run in one app's entry. Further callers
 * get `busy`.
 */
export const AGENT_TURNS_MAX = 1_000;
/** An agent that has received no message for this time is unloaded from memory. */
export const AGENT_IDLE_MS = 60_000;
/**
 * Limit of the write-ahead files that one process keeps open beside SQLite, in order to read them. They are those of
 * the agents that worked most recently. Each costs one of the process's descriptors.
 */
export const APP_WAL_FILES_MAX = 64;
/** A process that no agent uses ends after this time. */
export const APP_PROCESS_IDLE_MS = 120_000;
/**
 * Time limit for a process to load its bundle and report that it is ready. This takes about 10 s if six processes
 * compete for each processor.
 */
export const APP_START_MS_MAX = 20_000;
/** Limit of the heap of one app's process. The limit below is for all of its resident memory. */
export const APP_HEAP_MB_MAX = 256;
export const APP_RESIDENT_MB_MAX = 768;
/** Limit of the app processes on one host, at about 50 MB each. */
export const APP_PROCESSES_MAX = 100;
/**
 * How long gateways and app hosts cache the serving version of an app. A notification of a change ends this earlier.
 */
export const APP_SERVING_KEPT_MS = 5_000;
/** Limit of the characters of a token that an app looks up. Valid tokens have 79 characters. */
export const APP_TOKEN_CHARS_MAX = 1_024;
/**
 * Limit of the bytes that a process sent and its host holds until they are durable, sent or done. Above it, the
 * process is killed.
 */
export const APP_HELD_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Limit of the log lines of one process per second. The log states how many further lines are missing. The process
 * applies this limit, and its host enforces it.
 */
export const APP_LOG_LINES_A_SECOND_MAX = 500;
/** Limit of the log lines of one account's apps per second on one host: those of four apps at their limit. */
export const APP_LOG_LINES_OF_ACCOUNT_MAX = 2_000;

/** Limit of the characters of a stack that are kept, so that it fits in an app's answer and in a line of its log. */
export const APP_STACK_CHARS_MAX = 4_000;
/** Limit of the name of an error that app code threw. It is usually the name of a class. */
export const APP_ERROR_NAME_CHARS_MAX = 100;
/**
 * Limit of the tags per connection. The limits below are for the characters of a tag, and of a connection id that a
 * client chooses.
 */
export const CONNECTION_TAGS_MAX = 9;
export const CONNECTION_TAG_CHARS_MAX = 256;
/** Limit of the sockets of one agent. */
export const AGENT_CONNECTIONS_MAX = 10_000;
/** Timers, queued calls and tables in one response about an agent, each. */
export const AGENT_LISTED_MAX = 100;
/**
 * Limit of the characters of the state as JSON in one response. With escapes, it still fits in a message of the bus.
 */
export const AGENT_STATE_SHOWN_CHARS_MAX = 100_000;
/**
 * Limit of the rows of one query. The limit below is for the characters of all its values. With escapes, they fit in
 * a message of the bus.
 */
export const AGENT_QUERY_ROWS_MAX = 500;
export const AGENT_QUERY_CHARS_MAX = 120_000;
/** Limit of the characters of one value of a query. Of a longer value, only its beginning is shown. */
export const AGENT_QUERY_CELL_CHARS_MAX = 4_000;
export const AGENT_QUERY_SQL_CHARS_MAX = 10_000;
/**
 * Bytes that a connection buffers for a slow client. Above it, frames wait in the gateway, which keeps only the
 * latest state frame. If as many bytes wait there too, the socket is closed.
 */
export const SOCKET_WAITING_BYTES_MAX = 1_000_000;
/**
 * Limit of the bytes that all agents' sockets of one account hold in one gateway: frames that clients have not read,
 * and frames that agents have not handled. A frame for several sockets counts one time. Without this limit, an account
 * could hold 15 GB with the sockets that it may have.
 */
export const SOCKETS_UNREAD_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Limit of the lines of one answer. The limit below is the time for which a request waits for a line. It is shorter
 * than the timeouts of proxies.
 */
export const APP_LOG_LINES_SHOWN_MAX = 1_000;
export const APP_LOG_WAIT_S_MAX = 25;
export const APP_LOG_LINE_CHARS_MAX = 8_000;
/** Time limit of a request to an app, including the start of its process. */
export const APP_REQUEST_MS_MAX = AGENT_TURN_MS_MAX + APP_START_MS_MAX + 5_000;

// --- In ---

/** Limit of the body of an event. GitHub's own limit is 25 MB; those of the other providers are 5 MiB or less. */
export const WEBHOOK_BODY_BYTES_MAX = 5 * 1024 * 1024;
/** Limit of the fields of an event that is a form. Events of Twilio and Slack have fewer than a hundred. */
export const FORM_FIELDS_MAX = 1_000;
/**
 * Limit of the bytes of event bodies above SMALL_BODY_BYTES_MAX that one gateway holds: about fifty of the largest.
 * The share of one app is twelve.
 */
export const WEBHOOK_BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Time for which repeated events are recognized. No provider repeats an event for more than three days. */
export const EVENT_IDS_KEPT_MS = 7 * 86_400_000;
/**
 * Limit of the event ids that one agent remembers, at about 19 bytes each. Above it, the oldest ids are dropped early.
 */
export const EVENT_IDS_MAX = 1_000_000;
export const EVENT_ID_CHARS_MAX = 256;
export const EVENT_TYPE_CHARS_MAX = 128;
/** Limit of the events that wait for one agent. Above it, senders get status 429. */
export const EVENTS_WAITING_MAX = 10_000;
/**
 * Limit of the requests in the rows of one inbox, whatever `keep_count` says: above it, the oldest events leave the log
 * if they have ended. It also limits the requests of waiting events: above it, senders get status 429. An inbox in use
 * has all its rows in memory, so this is a quarter of ACTIVATION_BYTES_MAX. 64,000 events with a request of 1 kB fit.
 */
export const EVENT_ROWS_BYTES_MAX = 64_000_000;
/**
 * Limit of a body that is stored in the inbox's rows. Most events of GitHub and Stripe fit. A larger body is stored
 * as a blob.
 */
export const EVENT_INLINE_BYTES_MAX = 8_192;
/**
 * Limit of an event's request without its body, or with a body that is not a blob. Mail and rows carry it; the limit
 * is far below ROW_BYTES_MAX.
 */
export const EVENT_REQUEST_CHARS_MAX = 65_536;
/** Limit of the events that a busy agent gets in one round. A record costs more than adding another event to it. */
export const DELIVERIES_TOGETHER_MAX = 64;
/** Limit of the characters that are kept of a delivery's error. */
export const DELIVERY_ERROR_CHARS_MAX = 1_000;
/**
 * Limit of the entries that are removed from a log in one step. The limit below is for the entries that one listing
 * or one search examines.
 */
export const DELIVERIES_TRIMMED_AT_ONCE = 100;
export const DELIVERIES_SCANNED_MAX = 5_000;
/** Limit of replayed events that wait, so that new events still have room. */
export const REPLAYS_WAITING_MAX = 5_000;
/** Limit of the entries in one answer that lists a log. */
export const DELIVERIES_LISTED_MAX = 100;

// --- Out ---

/** Limit of a payload that is stored in the rows of the queue. A larger payload is stored as a blob. */
export const OUTGOING_INLINE_BYTES_MAX = 8_192;
/** Limit of the webhooks of one agent that have not arrived. Above it, `this.webhook` is refused. */
export const OUTGOING_WAITING_MAX = 1_000;
/**
 * Limit of one account's webhooks in progress: its tasks that wait in the lane `post` or run. A worker posts 192 at the
 * same time, or 32 with large payloads, so that several accounts can use it. 62 such accounts fill the lane.
 */
export const OUTGOING_PLACES_MAX = 16;
/**
 * An attempt without a result after this time counts as lost. Its task waits for a minute if many accounts have filled
 * the lane with webhooks to endpoints that do not answer, and for up to half of this time if their payloads are large.
 */
export const OUTGOING_TRY_MS_MAX = 900_000;
/** Limit of the pause that a receiver can request with Retry-After. */
export const OUTGOING_RETRY_AFTER_MS_MAX = 86_400_000;
/**
 * A webhook that is deferred by its endpoint's open breaker fails at this age. The age is more than twice the time of
 * all attempts.
 */
export const OUTGOING_AGE_MS_MAX = 3 * 86_400_000;
/** Limit of the characters of a response that are stored. */
export const OUTGOING_ANSWER_CHARS_KEPT = 1_000;
/** Limit of a sealed secret in base64, with its nonce and tag. The secret has up to APP_SECRET_BYTES_MAX. */
export const SEALED_CHARS_MAX = 12_000;
/** Limits of the number of ended webhooks in the log of outgoing webhooks, and of the time since their end. */
export const OUTGOING_KEPT_MAX = 1_000;
export const OUTGOING_KEPT_MS = 30 * 86_400_000;
/**
 * Limit of the secrets that sign one webhook while receivers change from one secret to the next. Each adds a
 * signature of 47 characters.
 */
export const OUTGOING_SECRETS_MAX = 3;
