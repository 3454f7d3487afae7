/**
 * Limits that several folders share, each with its reason. Those of an area are in `schemas/<area>/`, those of one file
 * in that file.
 */

// --- Placement ---

/**
 * Default number of shards, the units of placement: ten hosts get a share each. Processes use the number of their data
 * (`Bus.layout`).
 */
export const SHARDS = 64;
/** Fewer leave hosts idle. */
export const SHARDS_MIN = 8;
/** Each shard costs its owner two readers, and each process some memory. */
export const SHARDS_MAX = 4_096;
/**
 * Shards that a host takes at a time, and readers of mail and reminders that begin at a time: of thousands at once, many
 * would get no answer in time.
 */
export const SHARD_STARTS_MAX = 64;
/**
 * Shards that a host gives to others at a time while it lives. Calls to all of them wait, and more of them wait longer.
 * A host that has all shards gives them in 32 rounds at most, so that it leaves within seconds.
 */
export const shardGivesMax = (shards: number) => Math.max(8, Math.ceil(shards / 32));
/** The default number of state streams, each with its journal: one is enough for one machine. */
export const STATE_STREAMS = 1;
/** The rights of roles name each of these streams. */
export const STATE_STREAMS_MAX = 64;
/**
 * A lease that is not renewed ends after this: its host's actors answer again within 5 s. One whose connection is gone
 * ends sooner.
 */
export const LEASE_TTL_MS = 2_000;
/**
 * The longest pause of writes for a backup: short compared with any deadline and with a lease, which hosts still renew.
 */
export const HOLD_MS_MAX = 500;

// --- Messages ---

/**
 * Characters of a key in its encoded form; with kind, bucket and row it stays well below a subject's practical 1 KiB.
 */
export const KEY_CHARS_MAX = 512;
/** One message on the bus: nats.conf's max_payload is 1 MiB, the rest is headers. */
export const MESSAGE_BYTES_MAX = 1_000_000;
/**
 * An actor's state as JSON; beyond it a kind needs rows. What the runtime keeps with it takes the rest of a message.
 */
export const STATE_BYTES_MAX = 720_000;
/** A reply that is kept with the change it belongs to. */
export const REPLY_KEPT_BYTES_MAX = 64_000;
export const ROW_BYTES_MAX = 256_000;
/** Rows one transition may change: an atomic batch has at most 1,000 messages. */
export const TRANSITION_ROWS_MAX = 500;
/** Bytes of those rows: with a full change before it a transition still fits BATCH_BYTES_MAX. */
export const TRANSITION_ROW_BYTES_MAX = 2_000_000;
export const TRANSITION_SEND_BYTES_MAX = 300_000;
/** Messages of one atomic batch (nats-server refuses more). */
export const BATCH_MESSAGES_MAX = 1_000;
/** Bytes of one atomic batch, so that a commit stays short. */
export const BATCH_BYTES_MAX = 4_000_000;

// --- Calls ---

/** Default deadline of a call. A cluster whose leader dies elects another in 4 to 9 s. */
export const CALL_DEADLINE_MS = 15_000;
export const CALL_DEADLINE_MS_MAX = 120_000;
/** Messages waiting for one key. */
export const MAILBOX_MAX = 2_048;
/** Messages in flight on one host. */
export const HOST_CALLS_MAX = 32_768;
/** Clients whose calls without effect an actor remembers: more processes than any cluster has. */
export const EFFECTLESS_CLIENTS_MAX = 10_000;
/** How far the clocks of two machines may differ before calls count as expired. */
export const CLOCK_SKEW_MS_MAX = 30_000;
/** A client's replies are forgotten this long after its last call: no call lives longer, clocks differ less. */
export const REPLIES_KEPT_MS = 2 * CALL_DEADLINE_MS_MAX;

// --- Activations ---

/** Part of the actors in memory that is let go where there are too many, the longest idle first. */
export const EVICTED_SHARE = 0.1;
/** Bytes of rows in memory at which idle actors leave. 100,000 pages of a crawl are 50 MB, and 170 MB of the heap. */
export const ACTIVATION_BYTES_MAX = 256_000_000;

// --- Live updates ---

/** Bytes of live updates per commit. Past it, watchers learn that updates are missing. */
export const LIVE_BYTES_MAX = 1_000_000;

// --- Mail and reminders ---

/** Tries of one mail before it becomes a dead letter, and the pauses between them. */
export const MAIL_TRIES_MAX = 8;
export const MAIL_RETRY_MS = 250;
export const MAIL_RETRY_MS_MAX = 30_000;

// --- Tasks ---

/**
 * Waiting and running tasks of one lane, and of each key in a lane that serves keys in turn; one more is refused at
 * once.
 */
export const LANE_TASKS_MAX = 1_000;
/** A worker that is silent for this long counts as dead, and its task goes to another. */
export const TASK_ACK_WAIT_MS = 6_000;
export const TASK_TRIES_MAX = 3;
export const TASK_RETRY_MS = 500;
/** Attempts to notify the sender that a task was given up. */
export const FAILURE_TRIES_MAX = 10;
/** Size of the chunks of a streamed reply, and how many may be unacknowledged at once. */
export const CHUNK_BYTES = 128 * 1024;

// --- Accounts ---

export const ACCOUNT_NAME_CHARS_MAX = 100;
export const TOKEN_NAME_CHARS_MAX = 120;
/** Tokens of one account: its state lists them, at about 400 bytes each. */
export const TOKENS_PER_ACCOUNT_MAX = 100;
/** Browser time of an account on the free plan, a UTC day. */
export const BROWSER_SECONDS_PER_DAY = 600;
/** Requests of one account in one window, as in the public API. */
export const REQUESTS_PER_WINDOW = 1_200;
export const REQUEST_WINDOW_MS = 5 * 60_000;

// --- Gateway ---

/** A body of which no byte comes for this long has a sender that is gone or holds its connection on purpose. */
export const BODY_STALL_MS = 60_000;
/**
 * A client that reads fewer bytes than this in this time is cut off, because it holds a worker's slot. 4 kB a second is
 * too slow for any line.
 */
export const ANSWER_STALL_MS = 30_000;
/** Bodies that only carry a few fields. */
export const JSON_BODY_BYTES_MAX = 64 * 1024;
/** A page's HTML inside JSON, as in the public API. */
export const RENDER_BODY_BYTES_MAX = 50 * 1024 * 1024;
/** Bodies being read or used on one gateway, so that a few large ones do not fill its memory. */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Nesting of a body; no schema has more than a handful of levels. */
export const JSON_DEPTH_MAX = 64;
/**
 * Faults in one response; FAULT_CHARS_MAX limits the characters of one, so that a response does not repeat the whole
 * request.
 */
export const FAULTS_MAX = 20;
export const FAULT_CHARS_MAX = 256;
/** Entries of one page of a listing. */
export const PAGE_ENTRIES = 20;
export const PAGE_ENTRIES_MAX = 100;

// --- Rendering: limits of a request ---

/** A submitted document, as in the public API. */
export const HTML_BYTES_MAX = 50 * 1024 * 1024;
/** Addresses carry charts and state in their query, but no more than servers accept by far. */
export const URL_CHARS_MAX = 16_384;
/** Style or script tags; each is a round trip to the browser. */
export const TAGS_MAX = 50;
/** Text of one style or script tag: above the largest libraries people inline. */
export const TAG_CHARS_MAX = 5_000_000;
/** A header or footer; Chromium lays it out anew for every page. Images in it are data URLs. */
export const TEMPLATE_CHARS_MAX = 500_000;
/** Chromium keeps no more cookies for one domain. */
export const COOKIES_MAX = 180;
/** Name and value of one cookie together, RFC 6265bis section 5.6. */
export const COOKIE_CHARS_MAX = 4_096;
/** Header fields, and the characters of one: servers refuse more (8 KiB is the usual bound of a line). */
export const HEADERS_MAX = 64;
export const HEADER_NAME_CHARS_MAX = 256;
export const HEADER_VALUE_CHARS_MAX = 8_192;
export const CREDENTIAL_CHARS_MAX = 1_024;
export const USER_AGENT_CHARS_MAX = 1_024;
/** Patterns of one list; every request of the page is held against each. */
export const PATTERNS_MAX = 50;
export const PATTERN_CHARS_MAX = 1_024;
/** Instructions of a compiled pattern: matching takes at most this × the characters of an address. */
export const PATTERN_INSTRUCTIONS_MAX = 5_000;
export const SELECTOR_CHARS_MAX = 4_096;
/** Pixels of a viewport's side, and device pixels of one CSS pixel: together far below what exhausts a renderer. */
export const VIEWPORT_PX_MAX = 10_000;
export const DEVICE_SCALE_FACTOR_MAX = 10;
/** Bounds and defaults of waiting, as in the public API. */
export const GOTO_TIMEOUT_MS = 30_000;
export const GOTO_TIMEOUT_MS_MAX = 60_000;
export const WAIT_TIMEOUT_MS = 30_000;
export const WAIT_TIMEOUT_MS_MAX = 120_000;
export const PRINT_TIMEOUT_MS = 30_000;
export const PRINT_TIMEOUT_MS_MAX = 300_000;
/** The range of scales that Chromium accepts. */
export const PRINT_SCALE_MIN = 0.1;
export const PRINT_SCALE_MAX = 2;
/** A side of a PDF page: 14,400 units, beyond which readers do not follow (ISO 32000-1 annex C). */
export const PAPER_INCHES_MAX = 200;
export const PAGE_RANGES_CHARS_MAX = 1_024;

// --- Egress ---

/** A connection on which nothing moves is cut; long polls answer within it. */
export const EGRESS_IDLE_MS = 60_000;
/** Request line and headers, either way; Chromium itself takes 256 KiB, servers send a tenth of this. */
export const EGRESS_HEADER_BYTES_MAX = 64 * 1024;
/** Requests and tunnels of one task at once: Chromium opens 32 connections to a proxy, sockets of pages come on top. */
export const EGRESS_CONNECTIONS_MAX = 96;
/** Bytes one task may move, both ways together: a heavy page is 20 MB. */
export const EGRESS_BYTES_MAX = 200_000_000;
/** Redirects our own fetch follows, and the bytes of an answer after decoding. */
export const EGRESS_REDIRECTS_MAX = 10;

// --- Rendering: the browser ---

/** JavaScript heap of one page: a document that needs more crashes alone. */
export const PAGE_HEAP_MIB_MAX = 1_024;
export const BROWSER_PING_TIMEOUT_MS = 5_000;
/** A larger message of the browser is skipped: only a page's console, title or picture can be so large. */
export const CDP_MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of one PDF: far above a readable document, and below the size of a disk. */
export const PDF_BYTES_MAX = 512 * 1024 * 1024;

// --- Stopping ---

export const SHUTDOWN_SECONDS = 20;

// --- The bus ---

/** Time for a server to greet a new connection. It tells a stopped server from a distant one. */
export const BUS_CONNECT_MS = 5_000;
/** Time for a connection to move to another server of the bus. A process that has none for longer is not ready. */
export const BUS_CHANGE_MS = 2_000;
/** How long a question to the bus itself may take before its outcome counts as unknown. */
export const BUS_REQUEST_MS = 5_000;
/** How long a JetStream request waits before it is repeated. An election may lose a request. */
export const JETSTREAM_ANSWER_MS = 2_000;
/** Leases and epochs that the client library reads ahead of the handlers. */
export const PLACEMENT_PREFETCH = 500;
/** Pause before a reader that failed starts again. */
export const READER_RETRY_MS = 250;
/** A shard that is given back finishes its calls; most take milliseconds, and none may hold up a shutdown. */
export const HAND_OVER_MS_MAX = 10_000;
export const HAND_OVER_POLL_MS = 2;

// --- Tasks that are waited for ---

/** The longest a caller may wait: every timeout of a page at its bound, and the queue before it. */
export const TASK_RUN_MS_MAX = 600_000;
/** Time for an aborted task to end, and for a last pull. A browser's context closes in less. */
export const TASK_END_MS = 2_000;

/** The longest pause before a call that failed in passing is sent again. */
export const CALL_RETRY_MS_MAX = 250;
/** Calls in one message: more would save little, and wait for each other. */
export const CALL_BATCH_MAX = 128;
/**
 * How long a task waits for an actor that it could send mail to: if the host dies, a second call within this time
 * misses it.
 */
export const TELL_MS_MAX = 2_000;

/**
 * Limits the bytes of one journal message; nats-server accepts messages of 1 MiB, headers included. A larger commit has
 * several messages.
 */
export const JOURNAL_MESSAGE_BYTES_MAX = 900_000;
/**
 * Limits the journal messages that are not in their keys: those of one second at 500 commits a second. A takeover reads
 * up to this number.
 */
export const JOURNAL_MESSAGES_MAX = 512;
/** Messages that the stream keeps of each journal: the needed ones, one more commit, and a seal of each host. */
export const JOURNAL_MESSAGES_KEPT = 2 * JOURNAL_MESSAGES_MAX;
/** The age of the oldest commit in the journal. The values that operators read lag behind as long. */
export const CHECKPOINT_MS = 1_000;
/** A reminder that is due sooner does not wait for a checkpoint, which may be late on a busy bus. */
export const REMINDER_SOON_MS = 3 * CHECKPOINT_MS;

/** Characters of a blob's name: with its chunk's it stays well below a subject's practical 1 KiB. */
export const BLOB_NAME_CHARS_MAX = 256;
/** Pieces of a blob, half a message: twice as large they are a third quicker, and hold up others twice as long. */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/** Pieces that are written or read ahead at once: 4 MiB of memory for each blob on its way. */
export const BLOB_CHUNKS_IN_FLIGHT = 8;

/** How often the free bytes are read: a disk that writes 100 MB/s takes 50 MB meanwhile. */
export const DISK_POLL_MS = 500;
