/**
 * Limits that several folders share, each with its reason. Limits of one area are in `schemas/<area>/`, and limits of
 * one file are in that file.
 */

// --- Placement ---

/**
 * The default number of shards, the units of placement: enough to divide them among ten hosts. Processes use the
 * number that is stored with their data (`Bus.layout`).
 */
export const SHARDS = 64;
/** The minimum number of shards. With fewer shards some hosts would own none. */
export const SHARDS_MIN = 8;
/**
 * Limits the number of shards. Each shard needs two readers on the host that owns it, and some memory in every
 * process.
 */
export const SHARDS_MAX = 4_096;
/**
 * Limits how many shards a host takes over at the same time, and how many readers of mail and reminders it starts at
 * the same time. If thousands started together, many would get no answer in time.
 */
export const SHARD_STARTS_MAX = 64;
/**
 * Limits how many shards a running host hands over at the same time, because calls to these shards wait. A host with
 * all shards needs at most 32 rounds, so it leaves within seconds.
 */
export const shardGivesMax = (shards: number) => Math.max(8, Math.ceil(shards / 32));
/** The default number of state streams. Each has a journal. One stream is enough for one machine. */
export const STATE_STREAMS = 1;
/** Limits the number of state streams, because the bus permissions of each role list all of them by name. */
export const STATE_STREAMS_MAX = 64;
/**
 * The usual length of a lease: it ends this long after its last renewal. On a slow bus leases are longer. When it
 * ends, other hosts take over, and the actors answer again within 5 s. A host that lost its connection loses its
 * lease sooner.
 */
export const LEASE_TTL_MS = 2_000;
/**
 * The longest pause of writes for a backup. It is short compared with every deadline and with a lease. Hosts still
 * renew their leases during the pause.
 */
export const HOLD_MS_MAX = 500;

/** The latest time of a reminder. The years of a schedule on the bus have four digits (RFC 3339). */
export const REMINDER_AT_MAX = Date.UTC(9999, 11, 31);

// --- Messages ---

/**
 * Limits the characters of a key in its encoded form. With kind, bucket and row, a subject stays well below its
 * practical limit of 1 KiB.
 */
export const KEY_CHARS_MAX = 512;
/**
 * Limits the bytes of one message on the bus. The max_payload of nats.conf is 1 MiB; the difference is for headers.
 */
export const MESSAGE_BYTES_MAX = 1_000_000;
/**
 * Limits the bytes of an actor's state as JSON; a kind with more data needs rows. The rest of a message is for the
 * runtime's own data about the actor.
 */
export const STATE_BYTES_MAX = 720_000;
/** Limits the bytes of a reply that is stored together with its change. */
export const REPLY_KEPT_BYTES_MAX = 64_000;
export const ROW_BYTES_MAX = 256_000;
/** Limits the rows that one transition may change. An atomic batch has at most 1,000 messages. */
export const TRANSITION_ROWS_MAX = 500;
/**
 * Limits the bytes of the rows that one transition may change. The actor's uncommitted change may have this many
 * bytes before; both together fit into BATCH_BYTES_MAX.
 */
export const TRANSITION_ROW_BYTES_MAX = 2_000_000;
export const TRANSITION_SEND_BYTES_MAX = 300_000;
/** Limits the messages of one atomic batch; nats-server refuses more. */
export const BATCH_MESSAGES_MAX = 1_000;
/** Limits the bytes of one atomic batch, so that a commit takes little time. */
export const BATCH_BYTES_MAX = 4_000_000;

// --- Calls ---

/**
 * The default deadline of a call. It is longer than the 4 to 9 s in which a cluster replaces the dead leader of a
 * stream.
 */
export const CALL_DEADLINE_MS = 15_000;
export const CALL_DEADLINE_MS_MAX = 120_000;
/** Limits the calls that wait for one actor. One more call is refused as `busy`. */
export const MAILBOX_MAX = 2_048;
/** Limits the calls that one actor host handles at the same time. */
export const HOST_CALLS_MAX = 32_768;
/**
 * Limits the clients whose calls without effect an actor remembers. At the limit it forgets all. No cluster has as
 * many.
 */
export const EFFECTLESS_CLIENTS_MAX = 10_000;
/** How far the clocks of two machines may differ before calls count as expired. */
export const CLOCK_SKEW_MS_MAX = 30_000;
/**
 * A client's stored replies are deleted this long after its last call. No call lives this long, and clocks differ
 * less than this.
 */
export const REPLIES_KEPT_MS = 2 * CALL_DEADLINE_MS_MAX;

// --- Activations ---

/** The share of the actors in memory that is evicted when there are too many, the longest idle first. */
export const EVICTED_SHARE = 0.1;
/**
 * Limits the bytes of rows in the memory of a host: above it, idle actors with rows are evicted. The rows of 100,000
 * crawled pages have 50 MB, and take 170 MB of the heap.
 */
export const ACTIVATION_BYTES_MAX = 256_000_000;

// --- Live updates ---

/**
 * Limits the bytes of live updates in one commit. If there are more, subscribers are notified that updates are
 * missing.
 */
export const LIVE_BYTES_MAX = 1_000_000;

// --- Mail and reminders ---

/**
 * The number of failed attempts to handle a mail before it becomes a dead letter, and the shortest and longest pause
 * between attempts.
 */
export const MAIL_TRIES_MAX = 8;
export const MAIL_RETRY_MS = 250;
export const MAIL_RETRY_MS_MAX = 30_000;

// --- Tasks ---

/**
 * Limits the waiting and running tasks of one lane. In a lane that serves its keys alternately, each key has this
 * limit of its own. One more task is refused immediately.
 */
export const LANE_TASKS_MAX = 1_000;
/** Time after which a worker that sends nothing counts as dead. Another worker then gets its task. */
export const TASK_ACK_WAIT_MS = 6_000;
export const TASK_TRIES_MAX = 3;
/**
 * The number of runs of a task during which the bus was lost and which do not count as tries. A task that itself
 * causes each loss ends after them.
 */
export const TASK_LOSSES_MAX = 10;
export const TASK_RETRY_MS = 500;
/** The number of attempts to notify the sender of a task that the task has failed finally. */
export const FAILURE_TRIES_MAX = 10;
/** Bytes of one chunk of a task's streamed input or reply. */
export const CHUNK_BYTES = 128 * 1024;

// --- Accounts ---

export const ACCOUNT_NAME_CHARS_MAX = 100;
export const TOKEN_NAME_CHARS_MAX = 120;
/** Limits the tokens of one account. The account's state lists them at about 400 bytes each. */
export const TOKENS_PER_ACCOUNT_MAX = 100;
/** The default limit of an account's browser time on one UTC day, as on the free plan of the public API. */
export const BROWSER_SECONDS_PER_DAY = 600;
/** The default limit of requests of one account in one window, as in the public API. */
export const REQUESTS_PER_WINDOW = 1_200;
export const REQUEST_WINDOW_MS = 5 * 60_000;

// --- Gateway ---

/**
 * Time without a new byte after which a body counts as stalled: the sender has gone, or holds its connection on
 * purpose.
 */
export const BODY_STALL_MS = 60_000;
/**
 * Time in which a client must read at least ANSWER_STALL_BYTES (see answer-pace.ts). Otherwise its answer is aborted,
 * because it occupies a worker's slot. Even a slow line reads more than 4 kB a second.
 */
export const ANSWER_STALL_MS = 30_000;
/** Limits the bytes of bodies that have only a few fields. */
export const JSON_BODY_BYTES_MAX = 64 * 1024;
/** Limits the bytes of a body that contains the HTML of a page inside JSON, as in the public API. */
export const RENDER_BODY_BYTES_MAX = 50 * 1024 * 1024;
/**
 * Limits the bytes of all bodies that one gateway is reading or using, so that a few large bodies do not fill its
 * memory.
 */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Limits the nesting of a body. No schema has more than a few levels. */
export const JSON_DEPTH_MAX = 64;
/**
 * Limits the faults in one response. FAULT_CHARS_MAX limits the characters of client text in one fault, so that a
 * response does not repeat the whole request.
 */
export const FAULTS_MAX = 20;
export const FAULT_CHARS_MAX = 256;
/** The default and the largest number of entries on one page of a listing. */
export const PAGE_ENTRIES = 20;
export const PAGE_ENTRIES_MAX = 100;

// --- Rendering: limits of a request ---

/** Limits the bytes of a submitted HTML document, as in the public API. */
export const HTML_BYTES_MAX = 50 * 1024 * 1024;
/**
 * Limits the characters of a URL. Some URLs contain whole charts or application state in their query. The limit is
 * far above what common servers accept.
 */
export const URL_CHARS_MAX = 16_384;
/** Limits the style tags and script tags that a request adds. Each needs a round trip to the browser. */
export const TAGS_MAX = 50;
/** Limits the text of one style tag or script tag: more than the largest libraries that people inline. */
export const TAG_CHARS_MAX = 5_000_000;
/**
 * Limits the characters of a PDF header or footer, which Chromium lays out again for every page. Images in it are
 * data URLs.
 */
export const TEMPLATE_CHARS_MAX = 500_000;
/** Limits the cookies of a request. Chromium stores no more for one domain. */
export const COOKIES_MAX = 180;
/** Limits the characters of name and value of one cookie together (RFC 6265bis section 5.6). */
export const COOKIE_CHARS_MAX = 4_096;
/**
 * Limits the header fields of a request, and the characters of the name and value of each. Servers refuse more; their
 * usual limit of a line is 8 KiB.
 */
export const HEADERS_MAX = 64;
export const HEADER_NAME_CHARS_MAX = 256;
export const HEADER_VALUE_CHARS_MAX = 8_192;
export const CREDENTIAL_CHARS_MAX = 1_024;
export const USER_AGENT_CHARS_MAX = 1_024;
/** Limits the patterns of one list. Every request of the page is compared with each pattern. */
export const PATTERNS_MAX = 50;
export const PATTERN_CHARS_MAX = 1_024;
/**
 * Limits the instructions of a compiled pattern. Matching an address takes at most this number of steps for each
 * character of the address.
 */
export const PATTERN_INSTRUCTIONS_MAX = 5_000;
export const SELECTOR_CHARS_MAX = 4_096;
/**
 * Limits the pixels of each side of a viewport, and the device pixels for one CSS pixel. Even both together are far
 * below what exhausts a renderer.
 */
export const VIEWPORT_PX_MAX = 10_000;
export const DEVICE_SCALE_FACTOR_MAX = 10;
/** Defaults and limits of timeouts, as in the public API. */
export const GOTO_TIMEOUT_MS = 30_000;
export const GOTO_TIMEOUT_MS_MAX = 60_000;
export const WAIT_TIMEOUT_MS = 30_000;
export const WAIT_TIMEOUT_MS_MAX = 120_000;
export const PRINT_TIMEOUT_MS = 30_000;
export const PRINT_TIMEOUT_MS_MAX = 300_000;
/** The range of scales that Chromium accepts. */
export const PRINT_SCALE_MIN = 0.1;
export const PRINT_SCALE_MAX = 2;
/**
 * Limits each side of a PDF page to 14,400 units (200 inches). PDF readers do not support more (ISO 32000-1 annex C).
 */
export const PAPER_INCHES_MAX = 200;
export const PAGE_RANGES_CHARS_MAX = 1_024;

// --- Egress ---

/** Time without traffic after which a connection is closed. Long-polling servers answer within this time. */
export const EGRESS_IDLE_MS = 60_000;
/**
 * Limits the bytes of the request line and headers, and those of a response. Chromium accepts 256 KiB; servers
 * usually send a tenth of this limit.
 */
export const EGRESS_HEADER_BYTES_MAX = 64 * 1024;
/**
 * Limits the concurrent requests and tunnels of one task. Chromium opens up to 32 connections to a proxy, and in
 * addition the WebSockets of pages.
 */
export const EGRESS_CONNECTIONS_MAX = 96;
/** Limits the bytes that one task may send and receive in total. A large page has 20 MB. */
export const EGRESS_BYTES_MAX = 200_000_000;
/** Limits the redirects that our own fetch follows. */
export const EGRESS_REDIRECTS_MAX = 10;

// --- Rendering: the browser ---

/**
 * Limits the JavaScript heap of one page. A page that needs more memory crashes, but other pages are not affected.
 */
export const PAGE_HEAP_MIB_MAX = 1_024;
export const BROWSER_PING_TIMEOUT_MS = 5_000;
/**
 * Limits the bytes of a message from the browser; a larger one is skipped. Only the console, the title or the picture
 * of a page can be so large.
 */
export const CDP_MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Limits the bytes of one PDF: much more than a readable document has, but less than a disk holds. */
export const PDF_BYTES_MAX = 512 * 1024 * 1024;

// --- Stopping ---

export const SHUTDOWN_SECONDS = 20;

// --- The bus ---

/**
 * Time in which a server of the bus must greet a new connection. A distant server greets within this time; a server
 * that does not counts as stopped.
 */
export const BUS_CONNECT_MS = 5_000;
/**
 * Time in which a lost connection usually moves to another server of the bus. A process without a connection for
 * longer reports that it is not ready.
 */
export const BUS_CHANGE_MS = 2_000;
/** Timeout of a request to the bus itself. After it, the outcome of the request counts as unknown. */
export const BUS_REQUEST_MS = 5_000;
/** Time after which an unanswered JetStream request is repeated. The election of a leader may lose a request. */
export const JETSTREAM_ANSWER_MS = 2_000;
/** The number of leases and epochs that the client library reads ahead of the handlers. */
export const PLACEMENT_PREFETCH = 500;
/** Pause after which a failed reader starts again. */
export const READER_RETRY_MS = 250;
/**
 * Time in which a host may finish the calls of a shard that it hands over. Most calls take milliseconds, and none may
 * delay a shutdown longer.
 */
export const HAND_OVER_MS_MAX = 10_000;
export const HAND_OVER_POLL_MS = 2;

// --- Tasks that are waited for ---

/**
 * The longest time that a caller may wait for a task, and the default limit for running one: all timeouts of a page
 * at their limits, and the time in the queue before them.
 */
export const TASK_RUN_MS_MAX = 600_000;
/**
 * If a lane has no worker for this time, the callers that wait for its tasks are refused. A worker that is restarted
 * is back in less.
 */
export const WORKER_ABSENT_MS = 30_000;
/**
 * Time in which an aborted task must end, and a last pull of tasks must return. Closing a browser context takes less.
 */
export const TASK_END_MS = 2_000;

/** The longest pause before a call that failed with a temporary error is repeated. */
export const CALL_RETRY_MS_MAX = 250;
/**
 * Limits the calls in one message. With more calls, little would be saved, and the calls would wait for each other.
 */
export const CALL_BATCH_MAX = 128;
/**
 * Time for which a worker waits for the answer of an actor before it sends mail instead. It makes no second call: if
 * the actor's host died, no other host owns the actor yet.
 */
export const TELL_MS_MAX = 2_000;

/**
 * Limits the bytes of one journal message; nats-server accepts messages of 1 MiB, headers included. A larger commit has
 * several messages.
 */
export const JOURNAL_MESSAGE_BYTES_MAX = 900_000;
/**
 * Limits the journal messages whose values are not written to their keys yet: the messages of one second at 500
 * commits a second. A takeover reads up to this number.
 */
export const JOURNAL_MESSAGES_MAX = 512;
/**
 * The stream keeps at most this number of messages of each journal: the needed messages, one more commit, and one
 * seal of each host.
 */
export const JOURNAL_MESSAGES_KEPT = 2 * JOURNAL_MESSAGES_MAX;
/**
 * Time after a commit at which a checkpoint writes it to its keys, or earlier if the journal is half full. The values
 * that operators read are about this old.
 */
export const CHECKPOINT_MS = 1_000;
/**
 * A reminder that is due within this time is written without waiting for a checkpoint, because a checkpoint may be
 * late on a busy bus.
 */
export const REMINDER_SOON_MS = 3 * CHECKPOINT_MS;

/**
 * Limits the characters of a blob's name. With the name of a chunk, a subject stays well below its practical limit of
 * 1 KiB.
 */
export const BLOB_NAME_CHARS_MAX = 256;
/**
 * Bytes of one chunk of a blob: half a message. Chunks of twice this size would transfer a blob a third faster, but
 * delay other messages twice as long.
 */
export const BLOB_CHUNK_BYTES = 512 * 1024;
/**
 * Limits the chunks of one blob that are being written or prefetched at the same time: 4 MiB of memory for each blob
 * in transfer.
 */
export const BLOB_CHUNKS_IN_FLIGHT = 8;

/** Interval at which the free bytes of the disk are read. A disk that writes 100 MB/s fills by 50 MB in this time. */
export const DISK_POLL_MS = 500;
