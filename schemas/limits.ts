/** Every bound that was chosen, with what it bridges. */

// --- Placement ---

/** Units of placement. Fixed for the life of a store: keys hash to them, and nats.conf repeats the number. */
export const SHARDS = 64;
/** A lease that is not renewed ends after this: its host's actors answer again within 5 s. One whose connection is gone ends sooner. */
export const LEASE_TTL_MS = 2_000;
/** Four renewals a lease, so that a lost message costs nothing. */
export const LEASE_RENEW_MS = 500;
/** A renewal is given up after this: the lease lives long enough for another. */
export const LEASE_ANSWER_MS_MAX = 1_000;
/** Tries of the first lease, a renewal apart: an election at start takes up to 9 s. */
export const LEASE_START_TRIES_MAX = 40;
/** A stored lease without a renewal for this long is a ghost: two lives of a lease. */
export const LEASE_UNSEEN_MS_MAX = 2 * LEASE_TTL_MS;
/** Taken off a lease before a host trusts it for reads: clocks of two machines drift, timers come late. */
export const LEASE_MARGIN_MS = 500;

/** So often a host asks the next one whether it is there. */
export const PRESENCE_MS = 250;
/** Found gone so often, it is: once may be a client that is just coming back, which tries every tenth of a second. */
export const PRESENCE_MISSES = 2;
/** One that dies takes some of it to lose its connection, and one that stands still does not answer: both say nothing yet. */
export const PRESENCE_ANSWER_MS = 250;

// --- Messages ---

/** Characters of a key in its encoded form; with kind, bucket and row it stays well below a subject's practical 1 KiB. */
export const KEY_CHARS_MAX = 512;
/** Characters of a message's name: it comes back in answers, headers and logs. */
export const MESSAGE_NAME_CHARS_MAX = 128;
/** One message on the bus: nats.conf's max_payload is 1 MiB, the rest is headers. */
export const MESSAGE_BYTES_MAX = 1_000_000;
/** An actor's state as JSON; beyond it a kind needs rows. What the runtime keeps with it takes the rest of a message. */
export const STATE_BYTES_MAX = 720_000;
/** A reply that is kept with the change it belongs to. */
export const REPLY_KEPT_BYTES_MAX = 64_000;
/** Bytes of kept replies at which an actor is busy, until clients have settled some. */
export const REPLIES_BYTES_MAX = 180_000;
export const ROW_BYTES_MAX = 256_000;
/** Rows one transition may change: an atomic batch has at most 1,000 messages. */
export const TRANSITION_ROWS_MAX = 500;
/** Bytes of those rows: with a full change before it a transition still fits BATCH_BYTES_MAX. */
export const TRANSITION_ROW_BYTES_MAX = 2_000_000;
/** Rows changed since the last commit past which an actor waits: one more transition and 64 outboxes still fit a batch. */
export const CHANGE_ROWS_MAX = 320;
/** Sends of one transition, and their bytes: a shard's outbox is one value. */
export const TRANSITION_SENDS_MAX = 256;
export const TRANSITION_SEND_BYTES_MAX = 300_000;
/** Unsent bytes of a shard at which its actors wait with sending more. */
export const OUTBOX_BYTES_MAX = 600_000;
/** Reminders of one transition, and so of one kind. */
export const TRANSITION_REMINDERS_MAX = 16;
/** Messages of one atomic batch (nats-server refuses more). */
export const BATCH_MESSAGES_MAX = 1_000;
/** Bytes of one atomic batch, so that a commit stays short. */
export const BATCH_BYTES_MAX = 4_000_000;
/** Writes up to which single puts are quicker than a batch (research: 2.5 ms a batch, whatever its size). */
export const SINGLE_PUTS_MAX = 8;
/** The longest that a commit waits for callers to come back: more than a round trip, less than anybody notices. */
export const GATHER_MS_MAX = 5;

// --- Calls ---

/** What a call may take when its caller names no deadline: a cluster whose leader dies elects another in 4 to 9 s. */
export const CALL_DEADLINE_MS = 15_000;
export const CALL_DEADLINE_MS_MAX = 120_000;
/** Messages waiting for one key. */
export const MAILBOX_MAX = 2_048;
/** Messages in flight on one host. */
export const HOST_CALLS_MAX = 32_768;
/** Clients whose calls without effect an actor remembers: more processes than any cluster has. */
export const EFFECTLESS_CLIENTS_MAX = 10_000;
/** Unsettled replies an actor keeps for one client. */
export const REPLIES_PER_CLIENT_MAX = 4_096;
/** How far the clocks of two machines may differ before calls are taken for expired. */
export const CLOCK_SKEW_MS_MAX = 30_000;
/** A client's replies are forgotten this long after its last call: no call lives longer, clocks differ less. */
export const REPLIES_KEPT_MS = 2 * CALL_DEADLINE_MS_MAX;

/** A forgotten actor keeps its replies for this long. After that no caller repeats an earlier call. */
export const FORGOTTEN_KEPT_MS = REPLIES_KEPT_MS + CLOCK_SKEW_MS_MAX;

// --- Activations ---

/** An actor without messages for this long leaves memory. */
export const ACTIVATION_IDLE_MS = 60_000;
/** Actors a host reads from the store at once: more make each slower, and the lease's renewal with them. */
export const LOADS_IN_FLIGHT_MAX = 64;
/** Part of the actors in memory that is let go where there are too many, the longest idle first. */
export const EVICTED_SHARE = 0.1;
/** State that is only in memory stays longer: the longest window something is counted in, twice. */
export const VOLATILE_IDLE_MS = 600_000;
/** Actors in memory at once, whatever each holds: a few kB as a rule. */
export const ACTIVATIONS_MAX = 20_000;
/** Bytes of rows in memory at which idle actors leave. 100,000 pages of a crawl are 50 MB, and 170 MB of the heap. */
export const ACTIVATION_BYTES_MAX = 256_000_000;

// --- Live updates ---

/** Bytes of live updates per commit. Past it, watchers learn that updates are missing. */
export const LIVE_BYTES_MAX = 1_000_000;
/** Updates buffered for a slow watcher. Past it, the watcher learns that updates are missing and reads the state. */
export const LIVE_UPDATES_KEPT = 64;

// --- Mail and reminders ---

/** Tries of one mail before it becomes a dead letter, and the pauses between them. */
export const MAIL_TRIES_MAX = 8;
export const MAIL_RETRY_MS = 250;
export const MAIL_RETRY_MS_MAX = 30_000;
/** Mail of one shard under way in a host's memory. */
export const MAIL_IN_FLIGHT_MAX = 1_000;
/** Waiting mail of one key. Past it, the key's mail stays in the stream, so that a failing key delays no other. */
export const MAIL_OF_KEY_MAX = 250;
/** Handed over within a host and not yet committed: handled in one turn of the loop, which others wait for. The rest goes by MAIL. */
export const DIRECT_MAIL_MAX = 256;
/** Due reminders of one shard under way: all that came due while no host was there come at once. */
export const REMINDERS_IN_FLIGHT_MAX = 100;
/** Dead letters are kept for this long. */
export const DEAD_LETTER_DAYS = 30;
/** Between MESSAGE_BYTES_MAX and the bus's own bound: a message of a client and its error fit. */
export const DEAD_LETTER_BYTES_MAX = 1_030_000;
/** Characters that are kept of an error, and of the input of a message that nobody's client wrote and that is too large. */
export const DEAD_LETTER_ERROR_CHARS = 2_000;
export const DEAD_LETTER_INPUT_CHARS = 10_000;

// --- Tasks ---

/** Waiting and running tasks of one lane, and of each key in a lane that serves keys in turn; one more is refused at once. */
export const LANE_TASKS_MAX = 1_000;
/** A worker that is silent for this long counts as dead, and its task goes to another. */
export const TASK_ACK_WAIT_MS = 6_000;
export const TASK_HEARTBEAT_MS = 2_000;
/** After this long without an answer of the bus, a worker gives up its task: a second before another worker gets it. */
export const TASK_SURE_MS = TASK_ACK_WAIT_MS - 1_000;
export const TASK_TRIES_MAX = 3;
export const TASK_RETRY_MS = 500;
/** Attempts to notify the sender that a task was given up. */
export const FAILURE_TRIES_MAX = 10;
/** Size of the chunks of a streamed reply, and how many may be unacknowledged at once. */
export const CHUNK_BYTES = 128 * 1024;
export const CHUNKS_IN_FLIGHT = 8;

// --- Accounts ---

export const ACCOUNT_NAME_CHARS_MAX = 100;
export const TOKEN_NAME_CHARS_MAX = 120;
/** Tokens of one account: its state lists them, at about 400 bytes each. */
export const TOKENS_PER_ACCOUNT_MAX = 100;
/** Browser time is shown for a month: 31 whole days and today. */
export const USAGE_DAYS_MAX = 32;
/** Tasks whose report would be recognised if it came twice; a redelivery follows within seconds. */
export const USAGE_TASKS_REMEMBERED_MAX = 128;
/** Browser time of an account on the free plan, a UTC day. */
export const BROWSER_SECONDS_PER_DAY = 600;
/** Requests of one account in one window, as in the public API. */
export const REQUESTS_PER_WINDOW = 1_200;
export const REQUEST_WINDOW_MS = 5 * 60_000;

// --- Gateway ---

/** Headers of one request, all together. */
export const HEADER_BYTES_MAX = 16_384;
/** A request's headers must be complete after this, and all of it after the next: slow senders hold a socket. */
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 120_000;
/** A body of which no byte comes for this long has a sender that is gone or holds its connection on purpose. */
export const BODY_STALL_MS = 60_000;
/** Longer than the idle time of usual load balancers (60 s), so that we never close first. */
export const KEEP_ALIVE_MS = 72_000;
/** A client that reads fewer bytes than this in this time is cut off, because it holds a worker's slot. 4 kB a second is too slow for any line. */
export const ANSWER_STALL_MS = 30_000;
export const ANSWER_STALL_BYTES = 128 * 1024;
/** What is given to a client at a time, to see how much of it is taken. */
export const ANSWER_PIECE_BYTES = 64 * 1024;
/** Bodies that only carry a few fields. */
export const JSON_BODY_BYTES_MAX = 64 * 1024;
/** A page's HTML inside JSON, as in the public API. */
export const RENDER_BODY_BYTES_MAX = 50 * 1024 * 1024;
/** Bodies being read or used on one gateway, so that a few large ones do not fill its memory. */
export const BODIES_BYTES_MAX = 256 * 1024 * 1024;
/** Nesting of a body; no schema has more than a handful of levels. */
export const JSON_DEPTH_MAX = 64;
/** Fields and array items of a body: the largest honest request has a few hundred, and a page's HTML is one. */
export const JSON_VALUES_MAX = 10_000;
/** Faults named in one answer, and the characters of one: what a caller sent is not sent back whole. */
export const FAULTS_MAX = 20;
export const FAULT_CHARS_MAX = 256;
/** Characters of the message of one fault. The longest of our own has about 400. */
export const FAULT_TEXT_CHARS_MAX = 1_024;
/** Entries of one page of a listing. */
export const PAGE_ENTRIES = 20;
export const PAGE_ENTRIES_MAX = 100;
/** A receiver of traces that does not answer holds up a stop no longer than this. */
export const TRACE_EXPORT_MS = 3_000;
/** Open WebSockets of one gateway, and the bytes of one message: as base64 in JSON it is one message on the bus. */
export const SOCKETS_MAX = 10_000;
export const SOCKET_MESSAGE_BYTES_MAX = 512 * 1024;
/** What a client has to read what was sent before its socket is closed, and to answer that. */
export const SOCKET_CLOSE_MS_MAX = 5_000;

/** Characters kept in the log of a path that leads nowhere: ours have at most some 150. */
export const LOGGED_PATH_CHARS_MAX = 200;

// --- Rendering: what a request may ask for ---

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
/** What Chromium accepts as scale. */
export const PRINT_SCALE_MIN = 0.1;
export const PRINT_SCALE_MAX = 2;
/** A side of a PDF page: 14,400 units, beyond which readers do not follow (ISO 32000-1 annex C). */
export const PAPER_INCHES_MAX = 200;
export const PAGE_RANGES_CHARS_MAX = 1_024;

// --- Egress ---

/** A name's lookup; the system's own patience is 10 s and more a server. */
export const EGRESS_RESOLVE_MS = 5_000;
/** From the first dialled address to a connection over any of a name's. */
export const EGRESS_CONNECT_MS = 10_000;
/** The next address of a name is tried beside the first after this (RFC 8305, section 8). */
export const EGRESS_ATTEMPT_MS = 250;
/** Addresses of one name that are dialled; all of its answers are checked. */
export const EGRESS_ADDRESSES_MAX = 8;
/** A DNS answer is reused for this long, because a page opens several connections to a host within a second. */
export const EGRESS_NAME_KEPT_MS = 10_000;
export const EGRESS_NAMES_MAX = 1_000;
/** Fewer are no answer: an alert that ends a TLS connection has 31 at most, the shortest head of HTTP more. */
export const EGRESS_ANSWER_BYTES_MIN = 32;
/** The machine's own addresses are read again after this: reading costs 45 µs, more with many interfaces, and an address is seldom added. */
export const EGRESS_OWN_ADDRESSES_KEPT_MS = 1_000;
/** A connection on which nothing moves is cut; long polls answer within it. */
export const EGRESS_IDLE_MS = 60_000;
/** Request line and headers, either way; Chromium itself takes 256 KiB, servers send a tenth of this. */
export const EGRESS_HEADER_BYTES_MAX = 64 * 1024;
/** Requests and tunnels of one task at once: Chromium opens 32 connections to a proxy, sockets of pages come on top. */
export const EGRESS_CONNECTIONS_MAX = 96;
/** Bytes one task may move, both ways together: a heavy page is 20 MB. */
export const EGRESS_BYTES_MAX = 200_000_000;
/** Failures of one task that are remembered, the latest of each kind and host. */
export const EGRESS_FAILURES_MAX = 100;
/** Redirects our own fetch follows, and the bytes of an answer after decoding. */
export const EGRESS_REDIRECTS_MAX = 10;
export const EGRESS_BODY_BYTES_MAX = 50_000_000;

// --- Rendering: the browser ---

/** Contexts made ahead, ready to load: as many as tasks of one worker start together. */
export const CONTEXTS_WARM = 4;
/** A browser is replaced after this many contexts or this time, so that leaks stay small. This costs 1 ms a context (research 5.6). */
export const BROWSER_CONTEXTS_MAX = 300;
export const BROWSER_AGE_MS_MAX = 30 * 60_000;
/** Memory of the whole process tree at which a browser is replaced: five times that of a fresh one with four pages. */
export const BROWSER_MEMORY_BYTES_MAX = 1_500_000_000;
/** Chromium draws into shared memory; containers often have only 64 MB of it. */
export const BROWSER_SHARED_MEMORY_BYTES_MIN = 512 * 1024 * 1024;
/** Memory at which it is ended at once, before the machine is out of it. */
export const BROWSER_MEMORY_BYTES_KILL = 4_000_000_000;
/** JavaScript heap of one page: a document that needs more crashes alone. */
export const PAGE_HEAP_MIB_MAX = 1_024;
/** A browser takes 0.1 s to start; a loaded machine takes longer. */
export const BROWSER_START_MS = 20_000;
/** Pauses between starts that fail, doubled from the first to the last. */
export const BROWSER_RETRY_MS = 250;
export const BROWSER_RETRY_MS_MAX = 15_000;
/** How often a browser is asked whether it lives, and how long it may think. */
export const BROWSER_PING_MS = 5_000;
export const BROWSER_PING_TIMEOUT_MS = 5_000;
/** A context closes in 10 ms even around a page that hangs; past this the browser itself hangs. */
export const CONTEXT_CLOSE_MS = 2_000;
/** A browser that is being replaced may finish its tasks for this long. No task lasts longer. */
export const BROWSER_DRAIN_MS = 10 * 60_000;
/** What Chromium said last, for error messages. */
export const BROWSER_STDERR_CHARS = 4_000;
/** A larger message of the browser is skipped: only a page's console, title or picture can be so large. */
export const CDP_MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Events of one page that a browser tells us of. 5,000 inline images are 25,000 events, a request over the network is
 * 8; to read one takes 20 µs, so that a page costs 1 s at once, and later 4 % of our time, at most.
 */
export const PAGE_EVENTS_AT_ONCE_MAX = 40_000;
export const PAGE_EVENTS_PER_SECOND_MAX = 2_000;
/** An event counts once more for each of these bytes, because reading them takes as long again. */
export const PAGE_EVENT_BYTES = 8 * 1024;
/** A frame of another site or a worker counts as this many events, because thousands of them delay the browser for seconds. */
export const PAGE_TARGET_EVENTS = 100;
/** A browser that does not answer may be held up by a page with more events than this; most have a hundred. */
export const PAGE_EVENTS_BLAMED = 2_000;
/** Messages of the browser that are read before others have their turn: 2 ms. */
export const CDP_MESSAGES_AT_ONCE = 100;
/** Pieces in which a PDF leaves the browser. */
export const PDF_CHUNK_BYTES = 1024 * 1024;
/** What one PDF may weigh, far above what people read and below what fills a disk. */
export const PDF_BYTES_MAX = 512 * 1024 * 1024;
/** Silence that counts as idle, as browsers have it. */
export const NETWORK_QUIET_MS = 500;
/** How long a stopped request waits for the page to say what kind it is: both come from one browser, milliseconds apart. */
export const REQUEST_TYPE_MS = 300;
/** Kinds of requests kept for those that are stopped late. */
export const REQUEST_TYPES_KEPT = 1_000;
/** Characters of an address that patterns are held against; a longer one is refused where there are patterns. */
export const MATCHED_URL_CHARS_MAX = 65_536;

// --- Stopping ---

export const SHUTDOWN_SECONDS = 20;

// --- The bus ---

/** Time for a server to greet a new connection. It tells a stopped server from a distant one. */
export const BUS_CONNECT_MS = 5_000;
/** Figures of the bus are asked for this often at most, however many ask for metrics. */
export const QUEUE_FIGURES_KEPT_MS = 5_000;
/** Past it metrics are shown without the figures of the bus. */
export const QUEUE_FIGURES_MS_MAX = 2_000;
/** A stream that does not say by then how its copies are counts as one that nobody can use: half of the above. */
export const STREAM_ANSWER_MS_MAX = 1_000;
/** How long a question to the bus itself may take before its outcome counts as unknown. */
export const BUS_REQUEST_MS = 5_000;
/** How long one question to JetStream waits before it is asked again: an election may have swallowed it. */
export const JETSTREAM_ANSWER_MS = 2_000;
/** How long a start waits for the servers of a cluster that comes up with it, and how often it looks. */
export const CLUSTER_READY_MS = 60_000;
export const CLUSTER_RETRY_MS = 250;
/** How often a consumer says that it lives; one that is silent for two of these is made anew on another server. */
export const CONSUMER_HEARTBEAT_MS = 1_000;
/** Copies of a shard's mail the client library holds ahead of the handlers. */
export const MAIL_PREFETCH = 256;
/** Likewise of leases and epochs, and of an actor's rows while it is loaded. */
export const PLACEMENT_PREFETCH = 500;
export const ROWS_PREFETCH = 5_000;
/** Pause before a task is offered to a full lane again: a lane drains at tens of tasks a second. */
export const LANE_RETRY_MS = 100;
/** Removals of mail are gathered for this long, so that one purge serves many. A new owner reads at most this much again. */
export const MAIL_PURGE_MS = 1_000;
/** Pause before a reader that failed starts again. */
export const READER_RETRY_MS = 250;
/** How often idle actors are looked for. */
export const PASSIVATION_SWEEP_MS = 1_000;
/** A shard that is given back finishes its calls; most take milliseconds, and none may hold up a shutdown. */
export const HAND_OVER_MS_MAX = 10_000;
export const HAND_OVER_POLL_MS = 2;

// --- Tasks that are waited for ---

/** Larger inputs stay with the caller, and the worker fetches them: a task is one message of at most 1 MB. */
export const TASK_INPUT_BYTES_MAX = 256 * 1024;
/** The longest a caller may wait: every timeout of a page at its bound, and the queue before it. */
export const TASK_RUN_MS_MAX = 600_000;
/** A caller whose inbox has no listener for this long has left. */
export const CALLER_GONE_MS = 1_000;
/** Tasks that a lane's idle slots ask for at once, whatever their number: a task is handed on in a millisecond. */
export const LANE_PULL_TASKS_MAX = 4;
/** How long one pull for a task waits: the most that stopping a worker waits for nothing. */
export const TASK_PULL_MS = 1_000;
/** Time for an aborted task to end, and for a last pull. A browser's context closes in less. */
export const TASK_END_MS = 2_000;
/** Mail that waits in all: past it the stream refuses, outboxes fill, and actors answer busy. */
export const MAIL_MESSAGES_MAX = 5_000_000;
/** Dead letters kept; past it the oldest go. */
export const DEAD_LETTERS_MAX = 100_000;
