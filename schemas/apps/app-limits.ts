/** Every bound of apps and their agents that was chosen, with what it bridges. */

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
/** A deployment as JSON: escapes may take a bundle to twice its size. */
export const APP_DEPLOY_BYTES_MAX = 2 * APP_BUNDLE_BYTES_MAX + 1_000_000;
/** When the removal of an app is tried again that was not heard of. */
export const APP_PURGE_RETRY_MS = 10 * 60_000;
/** Configuration as JSON: it stands in the app's state with those of APP_VERSIONS_MAX versions. */
export const APP_CONFIG_BYTES_MAX = 24_000;
export const APP_VARS_MAX = 64;
export const APP_VAR_BYTES_MAX = 5_000;
export const APP_SECRETS_MAX = 64;
/** A secret's value in UTF-8: a private key in PEM fits. */
export const APP_SECRET_BYTES_MAX = 5_000;
export const APP_AGENT_CLASSES_MAX = 32;
export const APP_WEBHOOKS_MAX = 64;
export const APP_EVENT_RULES_MAX = 64;

/** Agents of one account where nothing is set: the store holds as many of 200 kB, which a log comes to. */
export const AGENTS_PER_ACCOUNT = 10_000;
/**
 * The most that may be set: those of an account are counted in rows of one actor, in memory and read when its host
 * changes.
 */
export const AGENTS_PER_ACCOUNT_MAX = 100_000;
/**
 * What an account's agents keep where nothing is set, with the bodies of their webhooks: half of
 * AGENTS_STORE_BYTES_MAX.
 */
export const AGENT_BYTES_PER_ACCOUNT = 1024 ** 3;
/** The unit in which agents ask for room: small ones ask once, others each time they have grown by a quarter. */
export const AGENT_ROOM_BYTES = 16 * 1024;
/** Rows of one app in which its agents are counted: with AGENTS_PER_ACCOUNT_MAX each has 80 kB. */
export const AGENT_USAGE_ROWS = 64;
/** Agents in one of them, at some 50 bytes each: ROW_BYTES_MAX holds them. */
export const AGENT_USAGE_ENTRIES_MAX = 4_000;

/**
 * Characters of an agent's name: with account, app and class its key stays below KEY_CHARS_MAX where it needs no
 * encoding.
 */
export const AGENT_NAME_CHARS_MAX = 256;
/** An agent's database: its image is in memory twice, in the app's process. */
export const AGENT_DATABASE_BYTES_MAX = 64 * 1024 * 1024;
/** A record of changed pages, compressed, that goes as one message; past it the image becomes a blob. */
export const AGENT_RECORD_BYTES_MAX = 900_000;
/** Records after which an image takes their place: what a takeover reads (research: 501 records take 150 ms). */
export const AGENT_LOG_RECORDS_MAX = 200;
/**
 * Replies kept in an agent's database, so that a call that comes again is answered and not run again: those of calls
 * that are settled go sooner.
 */
export const AGENT_REPLIES_MAX = 1_000;
/** All of them, compressed: they are part of the database and its bound; the newest is kept however large it is. */
export const AGENT_REPLIES_BYTES_MAX = 4 * 1024 * 1024;
/** Requests and answers of apps, held in memory whole. */
export const APP_REQUEST_BYTES_MAX = 10_000_000;
export const APP_ANSWER_BYTES_MAX = 10_000_000;
/** An answer whose body is not complete this long after its head is streamed. An event stream is streamed at once. */
export const APP_ANSWER_WHOLE_MS = 100;
/** Answers of one process that are still being made. */
export const APP_STREAMS_MAX = 1_000;
/** Bytes of one part of a streamed answer. The parts of APP_STREAMS_MAX answers stay within APP_HELD_BYTES_MAX. */
export const APP_STREAM_PART_BYTES_MAX = 64 * 1024;
/** How long a host lets a reader wait for a part until it says that there is none yet. */
export const APP_STREAM_WAIT_MS = 10_000;
/** A streamed answer without a read for this long is abandoned: its reader died or hangs. */
export const APP_STREAM_UNREAD_MS = 60_000;
/**
 * How often a host that is not there is asked again, and the pause between: after an outage of the bus it is back
 * later.
 */
export const APP_STREAM_ABSENCES_MAX = 20;
export const APP_STREAM_RETRY_MS = 250;
/** Past it a body goes beside the message, as a blob: base64 in JSON takes a third more. */
export const APP_BODY_INLINE_BYTES_MAX = 600_000;
/** A blob with a body expires after this many seconds. By then no attempt of its call is running. */
export const APP_BODY_KEPT_S = 600;
/** A turn that takes longer is refused. A turn that blocks the process for this long ends it. */
export const AGENT_TURN_MS_MAX = 30_000;
export const AGENT_CPU_MS_MAX = 10_000;
/** A method of a schedule, the queue or a submission, which nobody waits for: past it that try has failed. */
export const AGENT_WORK_MS_MAX = 15 * 60_000;
/** Turns that wait for one agent; past it callers hear `busy`. */
export const AGENT_TURNS_MAX = 1_000;
/**
 * An alarm that its agent did not handle is repeated after this time, then after twice the time, and so on: an app
 * may stay broken for weeks.
 */
export const AGENT_ALARM_RETRY_MS = 60_000;
export const AGENT_ALARM_RETRY_MS_MAX = 60 * 60_000;
/** An agent that nothing came to leaves memory. */
export const AGENT_IDLE_MS = 60_000;
/** Files that an open agent holds: its database and the write-ahead file of that. */
export const APP_AGENT_FILES = 2;
/** Write-ahead files that one process has open a second time, to read them, of the agents that were last at work. */
export const APP_WAL_FILES_MAX = 64;
/** Files of a process besides those of its agents: some 30 of Node, and APP_WAL_FILES_MAX. */
export const APP_PROCESS_FILES = 160;
/** A process whose agents are all gone ends. */
export const APP_PROCESS_IDLE_MS = 120_000;
/** What a process may take to load its bundle and say that it is ready: some 10 s where six want each processor. */
export const APP_START_MS_MAX = 20_000;
/** The heap of one app's process, and all that it may be resident. */
export const APP_HEAP_MB_MAX = 256;
export const APP_RESIDENT_MB_MAX = 768;
/**
 * How often a process is asked whether it answers. One that takes AGENT_CPU_MS_MAX of a processor meanwhile is ended.
 */
export const APP_PING_MS = 2_000;
/** One that answers nothing for so long is ended, whatever it is at: a machine that swaps is no reason before. */
export const APP_SILENCE_MS_MAX = 30_000;
/** How often a process's memory and processor time are looked at. */
export const APP_WATCH_MS = 500;
/**
 * What work that nobody waits for may take to end when another takes the place of its process; turns have
 * AGENT_TURN_MS_MAX.
 */
export const APP_DRAIN_MS = 10_000;
/**
 * While /healthz is asked, a process that does nothing is started this often, at some 100 ms of a processor: 0.3 % of
 * one.
 */
export const APP_PROBE_MS = 30_000;
/** The same while none starts, so that a host is well again soon after. */
export const APP_PROBE_FAILED_MS = 2_000;
/**
 * A file system in memory that is smaller takes no databases: sixteen of the largest fit. Containers often have 64 MB
 * of it.
 */
export const APP_MEMORY_FOLDER_BYTES_MIN = 16 * AGENT_DATABASE_BYTES_MAX;
/** Processes of apps on one host, at some 50 MB each. */
export const APP_PROCESSES_MAX = 100;
/** Pauses between starts of a process that ends by itself, doubled from the first to the last. */
export const APP_RESTART_MS = 50;
export const APP_RESTART_MS_MAX = 5_000;
/** A process that lived this long counts as well started. */
export const APP_STABLE_MS = 30_000;
/** Times that a turn is tried whose process ended under it; then it is refused. */
export const AGENT_TURN_CRASHES_MAX = 2;
/** Turns whose process ended under them that a host remembers, at some 150 bytes each. */
export const AGENT_CRASHED_TURNS_KEPT_MAX = 10_000;
/** What an app serves is asked for again after so long, where nobody said that it changed. */
export const APP_SERVING_KEPT_MS = 5_000;
/** Fetches, calls and other operations that one process waits for: what is asked beyond is refused at once. */
export const APP_OPERATIONS_WAITING_MAX = 2_000;
/** Connections of all apps' fetches on one host, in use; and as many that are kept. */
export const APP_FETCH_CONNECTIONS_MAX = 512;
/** Fetches and calls that one process has under way; more wait. */
export const APP_OPERATIONS_MAX = 64;
/** What one of them may take. */
export const APP_OPERATION_MS_MAX = 60_000;
/** A token that an app asks about: ours have 79 characters, and a longer one is none. */
export const APP_TOKEN_CHARS_MAX = 1_024;
/** Bytes of frames that wait for a gateway that does not take them; past it an agent's sockets there are given up. */
export const SOCKET_BATCH_WAITING_BYTES_MAX = 16_000_000;
/** Actions of one message to a gateway, and so a frame with what is around it. */
export const SOCKET_BATCH_BYTES_MAX = 900_000;
/** Sockets that one action names, at most 17 bytes each; an action for more is sent as several. */
export const SOCKET_ACTION_SOCKETS_MAX = 10_000;
/** How long a gateway may take to answer a batch before it is sent again, and the pause before. */
export const SOCKET_BATCH_TRY_MS = 2_000;
export const SOCKET_BATCH_RETRY_MS = 50;
/** Tries until a gateway is taken for gone: after an outage of the bus it may be back some seconds after this host. */
export const SOCKET_ABSENCES_MAX = 100;
/** What a process said and its host holds, until it is durable, sent or done; past it the process is ended. */
export const APP_HELD_BYTES_MAX = 128 * 1024 * 1024;
/**
 * What is on its way to one process: turns that it has not read, and answers of others that come for it; more is
 * refused.
 */
export const APP_ARRIVING_BYTES_MAX = 64 * 1024 * 1024;
/**
 * Log lines of one process per second. The log says how many further lines are missing. The process keeps this limit,
 * and its host enforces it.
 */
export const APP_LOG_LINES_A_SECOND_MAX = 500;

/** Attempts of `retry` in an app's code, and the longest pause between two of them. */
export const AGENT_RETRY_ATTEMPTS_MAX = 1_000;
export const AGENT_RETRY_DELAY_MS_MAX = 24 * 3_600_000;
/** The longest interval of `scheduleEvery`. A cron expression allows more. */
export const AGENT_INTERVAL_S_MAX = 30 * 24 * 3_600;
/** The latest time of `schedule`. */
export const AGENT_DELAY_S_MAX = 100 * 366 * 24 * 3_600;
/** Submissions of one agent at a time, and in one list of them. */
export const AGENT_SUBMISSIONS_RUNNING_MAX = 8;
export const AGENT_SUBMISSIONS_LISTED_MAX = 1_000;
/** A key of `ctx.storage`, and entries of one list of it. */
export const AGENT_STORAGE_KEY_CHARS_MAX = 2_048;
export const AGENT_STORAGE_LISTED_MAX = 100_000;
/** What is kept of where an error was thrown: an answer of an app and a line of its log hold it. */
export const APP_STACK_CHARS_MAX = 4_000;
/** The name of an error that code of an app threw: that of a class. */
export const APP_ERROR_NAME_CHARS_MAX = 100;
/** Tags of a connection, each a name that code looks for; and the id that a client may choose for itself. */
export const CONNECTION_TAGS_MAX = 9;
export const CONNECTION_TAG_CHARS_MAX = 256;
export const CONNECTION_ID_CHARS_MAX = 256;
/** Sockets of one agent. */
export const AGENT_CONNECTIONS_MAX = 10_000;
/** Bytes that wait for one reader; past it only the latest state is kept, past twice as many it is closed. */
export const SOCKET_WAITING_BYTES_MAX = 1_000_000;
/** Lines of one answer, and how long it waits for one: shorter than what proxies allow. */
export const APP_LOG_LINES_SHOWN_MAX = 1_000;
export const APP_LOG_WAIT_S_MAX = 25;
export const APP_LOG_LINE_CHARS_MAX = 8_000;
export const AGENTS_STORE_BYTES_MAX = 2 * 1024 ** 3;
/** How long a gateway goes by what an account's agents kept, and of how many accounts it knows that. */
export const APP_USAGE_KEPT_MS = 5_000;
export const ACCOUNTS_KEPT_MAX = 1_000;
/** Apps that a gateway remembers, each for APP_SERVING_KEPT_MS. */
export const SERVING_APPS_KEPT_MAX = 1_000;
/** A request to an app, with the start of its process. */
export const APP_REQUEST_MS_MAX = AGENT_TURN_MS_MAX + APP_START_MS_MAX + 5_000;
/**
 * What one call brings an agent of a socket's frames, in JSON: the largest frame fits, escaped or as base64, in a
 * message.
 */
export const SOCKET_CALL_BYTES_MAX = 800_000;
/** What a client has said and its agent has not taken; past it the socket is read no further. */
export const SOCKET_UNREAD_BYTES_MAX = 1_000_000;
/** How long a socket waits for its agent, whose host may be dying or moving. */
export const SOCKET_CALL_MS_MAX = 60_000;
/**
 * A batch of frames that takes longer lets the next of its socket go beside it: below what a person notices, above
 * what most take.
 */
export const SOCKET_BESIDE_MS = 20;
/** Batches of one socket that are under way at once, each a turn of its agent, which has AGENT_TURNS_MAX. */
export const SOCKET_BATCHES_MAX = 16;
/** An agent that is not done with a batch says so after this, and is asked again: well within a turn's time. */
export const SOCKET_BATCH_HELD_MS = 15_000;
/**
 * Sockets of one gateway whose agents are asked at once whether they have them still: of thousands, after the bus was
 * away.
 */
export const SOCKET_CHECKS_MAX = 64;
/** Clients that are gone without a word are noticed after two of these. */
export const SOCKET_PING_MS = 30_000;
