/** Every bound that was chosen for Git repositories, with what it bridges. */

// --- Names and settings, as in the public API ---

export const NAMESPACE_NAME_CHARS_MIN = 2;
export const NAMESPACE_NAME_CHARS_MAX = 63;
export const REPO_NAME_CHARS_MAX = 63;
/** A sentence or two; it stands in every listing. */
export const REPO_DESCRIPTION_CHARS_MAX = 1_024;
/** Repositories of one namespace: their listing, some 400 bytes each, is in memory while the namespace is used. */
export const NAMESPACE_REPOS_MAX = 50_000;
/** Names of removed repositories that are remembered, so that removing one again is no fault. */
export const REMOVED_NAMES_MAX = 200;
/** A name that was claimed for a repository which did not come to be is free again after this. */
export const NAME_CLAIM_MS = 60_000;
/**
 * Claims that a namespace keeps in its value, where one is stored in a tenth of the time a row takes; more are rows.
 */
export const NAME_CLAIMS_MAX = 16;
export const REPO_LIST_MAX = 200;
/** Rules of one repository; each is held against each ref that a push changes. */
export const PROTECTED_REFS_MAX = 100;

/** A removed repository is remembered for this long. Messages to it arrive by then or never. */
export const REPO_REMOVED_MS = 24 * 60 * 60_000;

// --- Refs ---

/** Refs of one repository, and commands of one push. */
export const REFS_MAX = 10_000;
/** Bytes of one ref's name: twice what a file system gives a path's component, and what git hosts accept. */
export const REF_NAME_BYTES_MAX = 1_024;
/** Components of one ref's name: each is looked up for conflicts. Nobody nests branches half as deep. */
export const REF_DEPTH_MAX = 32;
/** Names of all refs, as JSON: with REFS_MAX object ids a table of refs fits one commit (TRANSITION_ROW_BYTES_MAX). */
export const REF_NAMES_BYTES_MAX = 1_000_000;
/** Rows a table of refs is spread over: at REFS_MAX one change writes some 80 refs anew, and all fit one commit. */
export const REF_ROWS = 128;
/** Bytes of refs in one answer about the manifest; packs come on top, and both fit a message. */
export const MANIFEST_PAGE_BYTES = 400_000;

// --- Pushes ---

/** Commands in one message; a push of more comes in parts, each a row until the push is decided. */
export const COMMANDS_BYTES_MAX = 200_000;
/** Parts of one push: REFS_MAX commands with names of REF_NAMES_BYTES_MAX fit. */
export const PUSH_PARTS_MAX = 16;
/** Pushes in parts that one repository keeps at a time, and for how long: their gateway may have died. */
export const STAGED_PUSHES_MAX = 4;
export const STAGED_MS = 10 * 60_000;
/** Packs one change may add or take away: a transition has TRANSITION_ROWS_MAX rows. */
export const SWAP_PACKS_MAX = 200;
/**
 * Packs of one repository: past them a push waits for compaction, which begins at COMPACT_PACKS. At some 120 bytes
 * they fit an answer.
 */
export const REPO_PACKS_MAX = 2_000;
/** Packed bytes of one repository, and bytes of one file, as in the public API, where nobody sets others. */
export const REPO_BYTES_MAX = 1_000_000_000;
export const FILE_BYTES_MAX = 32 * 1024 * 1024;
/**
 * The least and the most that either may be set to: a tree of 20,000 entries is an object too; offsets in a pack have
 * 31 bits.
 */
export const GIT_BYTES_SETTING_MIN = 1_000_000;
export const REPO_BYTES_SETTING_MAX = 2_000_000_000;
/**
 * A file and two others, of which a delta makes it, fit GIT_PROCESS_KIB_MAX; and two are read at a time
 * (READ_BYTES_MAX).
 */
export const FILE_BYTES_SETTING_MAX = 128 * 1024 * 1024;
/**
 * Objects of one push unpacked, by what a repository may have packed: long histories have some thirty times as much.
 */
export const INFLATED_FACTOR = 100;
/** Directories below each other in one repository: git goes down them by recursion. Ten times what is ever seen. */
export const TREE_DEPTH_MAX = 512;
/** What pushes may have put on top of each other is measured anew past this, where packs are put together. */
export const TREE_DEPTH_MEASURED = 128;
/** Fewer new directories than this cannot be deep, so they are not measured. */
export const TREE_DEPTH_TRUSTED = 32;
/** New directories of one push: their ids and places are in memory while they are measured, some 60 MB. */
export const PUSH_TREES_MAX = 400_000;
/** Directories inside others of one push that are looked at for it: some seconds. */
export const TREE_EDGES_MAX = 2_000_000;
/** Push options of one push, and characters of one: a line of the protocol holds no more than 65,516. */
export const PUSH_OPTIONS_MAX = 64;
export const PUSH_OPTION_CHARS_MAX = 1_024;
/**
 * All of them as JSON: they stand in the event of each ref, and with EVENT_REFS_MAX of them still fit
 * TRANSITION_ROW_BYTES_MAX.
 */
export const PUSH_OPTIONS_BYTES_MAX = 4_096;
/**
 * Commits at which the history of a repository that was imported to a depth ends: every answer about it names them
 * all.
 */
export const REPO_SHALLOW_MAX = 1_000;
/** Shallow commits a client may name; a clone of depth 1 has one for each ref. */
export const SHALLOW_LINES_MAX = 20_000;

// --- Large files, by Git LFS ---

/** Bytes of one, whatever is set: half of the most that a repository may hold. */
export const LFS_OBJECT_BYTES_MAX = REPO_BYTES_SETTING_MAX / 2;
/** Limit of one repository. Each is a row of about 200 bytes in memory. */
export const LFS_OBJECTS_MAX = 5_000;
/** In one question: as many as git-lfs asks for at a time. */
export const LFS_BATCH_MAX = 100;
/** Bytes of such a question, at 110 for each object. */
export const LFS_QUESTION_BYTES_MAX = 64 * 1024;
/** Transfers of one gateway at a time. Each has BLOB_CHUNKS_IN_FLIGHT pieces in memory. */
export const LFS_TRANSFERS_MAX = 32;
/** Named, or listed, in one message: a transition has TRANSITION_ROWS_MAX rows. */
export const LFS_NAMED_MAX = 300;
/** Locks of one repository: each is a row in memory. Longer paths than this are in no repository of people. */
export const LFS_LOCKS_MAX = 1_000;
export const LFS_LOCK_PATH_CHARS_MAX = 1_024;
/** The name that a client gives itself, as a listing of locks shows it. */
export const LFS_LOCK_NAME_CHARS_MAX = 100;
/** Locks in one answer: with the longest paths they fit a message. */
export const LFS_LOCKS_LISTED_MAX = 100;

// --- Tokens, as in the public API ---

export const REPO_TOKEN_TTL_S = 86_400;
export const REPO_TOKEN_TTL_S_MIN = 60;
export const REPO_TOKEN_TTL_S_MAX = 31_536_000;
/** Tokens of one repository; past it those that no longer open anything make room, oldest first. */
export const REPO_TOKENS_MAX = 1_000;
/** How exactly it is known when a token was last used: finer would be a write for each request. */
export const TOKEN_USED_MS = 60 * 60_000;

// --- Events ---

/** Events of an account that are kept, and of one answer; in it no more bytes than fit a message three times over. */
export const EVENTS_KEPT = 1_000;
export const EVENTS_LISTED_MAX = 200;
export const EVENTS_LISTED_BYTES = 300_000;
/** Bytes of those that are kept: they are in memory while anything happens. */
export const EVENTS_KEPT_BYTES = 4_000_000;
/** Refs of one push with an event each. With the longest names they fit TRANSITION_SEND_BYTES_MAX. */
export const EVENT_REFS_MAX = 100;
/** Commits in the event of one ref, the newest, and characters of each one's message and of the names in it. */
export const EVENT_COMMITS_MAX = 20;
export const EVENT_MESSAGE_CHARS_MAX = 500;
export const EVENT_NAME_CHARS_MAX = 200;
/** Parents of one of them: nobody merges as many. */
export const EVENT_PARENTS_MAX = 16;
/** Existing refs that a new ref is compared with, to find its new commits. */
export const EVENT_OTHERS_MAX = 50;
/**
 * Clones or fetches of a repository within this time are one event. Otherwise frequent builds would push out all
 * other events.
 */
export const FETCH_TOLD_MS = 1_000;
/** Bytes of events in one message about what was pushed. */
export const EVENTS_DESCRIBED_BYTES = 150_000;
/** After this time the event of a push is published without its commits. */
export const EVENT_DESCRIBED_MS = 60_000;
/** Looking takes no longer: a million commits are counted in some seconds. */
export const EVENT_DESCRIBING_MS = 20_000;
/** Pushes that one gateway looks at at a time: each is a process for a moment. */
export const EVENT_SLOTS = 2;
/** Subscribers of the events of one account. */
export const EVENT_SUBSCRIPTIONS_MAX = 200;
/** Bytes of events in one message to who follows them, and of all such messages at once (TRANSITION_SEND_BYTES_MAX). */
export const EVENTS_DELIVERED_BYTES = 100_000;
export const EVENTS_SENT_BYTES = 250_000;
/** Events in one message: who passes each on by itself, as an app does, can do so in one transition. */
export const EVENTS_DELIVERED_MAX = 100;

// --- Git processes of one gateway ---

/** At a time, for each core: they wait for disk and network as often as they compute. */
export const GIT_PROCESSES_PER_CORE = 4;
/** Processes of one repository, so that no other repository waits for it alone. */
export const GIT_PROCESSES_PER_REPO = 6;
/** The share of one account while others wait, and of the queue at any time. */
export const GIT_ACCOUNT_SHARE = 0.5;
/** Requests that wait for one, and how long: then 503, and the client comes back. */
export const GIT_QUEUE_MAX = 128;
export const GIT_QUEUE_PER_REPO_MAX = 32;
export const GIT_QUEUE_MS = 15_000;
/** Wall-clock and processor time of one process: 1 GB over 5 Mbit/s, as long as something moves. */
export const GIT_PROCESS_MS_MAX = 30 * 60_000;
export const GIT_PROCESS_CPU_S_MAX = 300;
/** Address space of one process: the largest honest pack takes a third of it, a delta bomb all there is. */
export const GIT_PROCESS_KIB_MAX = 800_000;
/** A file it may write: twice the bytes of the largest repository. What comes from elsewhere has a bound of its own. */
export const GIT_PROCESS_FILE_BYTES_MAX = 2 * REPO_BYTES_SETTING_MAX;
/** What a process may say where all of it is kept: REFS_MAX refs with names at their bound. */
export const GIT_STDOUT_BYTES_MAX = 16 * 1024 * 1024;
/** What is kept of what a process says on its error output. */
export const GIT_STDERR_CHARS_MAX = 4_000;
/** Connections made ahead for processes that are about to start: as many as start before the next are made. */
export const GIT_SPAWNER_PLACES = 12;
/** After this, who starts processes for a gateway is itself started again. */
export const GIT_SPAWNER_RETRY_MS = 5_000;
/**
 * Prefixes of names in one question about refs that is answered without a process: git itself gives up counting here.
 */
export const LISTED_PREFIXES_MAX = 1_000;
/** A fetch's negotiation, unpacked: git's own bound (http.maxRequestBuffer). */
export const FETCH_REQUEST_BYTES_MAX = 10 * 1024 * 1024;
/** The commands of a push before its pack: REFS_MAX of them with names at their bound, and options. */
export const PUSH_HEAD_BYTES_MAX = 16 * 1024 * 1024;
/**
 * A body that brings fewer bytes than this in this time is cut off, because it holds a process. 1 kB a second is too
 * slow for any line.
 */
export const GIT_BODY_STALL_MS = 30_000;
export const GIT_BODY_STALL_BYTES = 32 * 1024;
/** Bytes of a pack that are read before it gets a process. Most pushes arrive whole by then. */
export const PUSH_AHEAD_BYTES = 1024 * 1024;

// --- Work of one push, and beside it ---

/** Packs with at most this many objects and bytes of deltas are read without git, which saves a process. */
export const READ_OBJECTS_MAX = 200;
export const READ_DELTA_BYTES_MAX = 1024 * 1024;
/**
 * What the repository may take to decide a push, longer than any election: who pushes would rather wait than not
 * know.
 */
export const SWAP_DEADLINE_MS = 60_000;
/** Protected refs of one push whose histories are compared; each is a process. */
export const COMPARED_MAX = 50;
/** Time to find the path of a refused object: some million objects. After that the message names its id alone. */
export const OBJECT_PATH_MS = 10_000;
/** The pause after which a client hears that we still work on its push, as git's own `receive.keepAlive`. */
export const PUSH_KEEP_ALIVE_MS = 5_000;
/** How often a repository that is in use is looked at for views of old. */
export const OLD_VIEWS_MS = 60_000;
/** A pack and its index up to this size are in memory while they are looked at and stored: a blob of one message. */
export const WHOLE_PACK_BYTES_MAX = 512 * 1024;
/** How long the id of a token that no longer opens anything can still be asked about. */
export const TOKEN_REMEMBERED_MS = 30 * 24 * 60 * 60_000;
/** Packs that a sweep looks at by themselves at a time. */
export const LOOKS_AT_ONCE = 16;
/** What a clone asks for is some lines; where it names every ref, its answer is not worth keeping. */
export const KNOWN_QUESTION_BYTES_MAX = 64 * 1024;
/** Rows of a removed repository that go in one transition, and the pause before the next. */
export const CLEARED_ROWS = 300;
export const CLEAR_PAUSE_MS = 200;

// --- The store ---

/** Packs of all repositories; a disk with less room gives a part of it. */
export const PACKS_STORE_BYTES_MAX = 16 * 1024 ** 3;

/** The default for one account: half, so that no account takes the space of all others. */
export const GIT_BYTES_PER_ACCOUNT = PACKS_STORE_BYTES_MAX / 2;
/** Uploads of this size or more reserve space first. Smaller ones are counted together at this interval. */
export const GIT_STORED_SMALL_BYTES = 1024 * 1024;
export const GIT_STORED_TOLD_MS = 1_000;
/** How long a gateway goes by what it knows of an account: what is small may go past the bound by that. */
export const GIT_STORED_KNOWN_MS = 10_000;
/** Large things of one account that are being stored at a time: as many as a dozen gateways take in. */
export const GIT_HELD_MAX = 256;
/** Room is kept for no longer than a process takes: then who stored it has died. */
export const GIT_HELD_MS = 2 * GIT_PROCESS_MS_MAX;

// --- Upkeep of packs ---

/**
 * Packs are joined from this number on. A fetch from 100 packs takes a fifth longer than from one, from 1,000 three
 * times as long.
 */
export const COMPACT_PACKS = 50;
/** Repositories a gateway puts together at a time, or sweeps: each takes a core and the disk. */
export const UPKEEP_SLOTS = 1;
/** The pause after which what failed is tried again; and after which a task that says nothing is taken for lost. */
export const UPKEEP_RETRY_MS = 60_000;
export const UPKEEP_LOST_MS = 60 * 60_000;
/** A repository that has no room looks so often whether something in it is not needed any more. */
export const PRUNE_FOR_ROOM_MS = 24 * 60 * 60_000;
/** Pruning gives way to pushes; so often it begins anew before it leaves it for later. */
export const PRUNE_TRIES_MAX = 5;
/**
 * How long a stored pack is surely there, though nobody names it: longer than any push takes between storing and
 * asking.
 */
export const PACK_HELD_MS = 15 * 60_000;
/**
 * A pack that nobody names is removed when nobody has named it for so long: readers that know it from an older manifest
 * have ended (GIT_CACHE_GRACE_MS), and so has every hold, whatever the clocks of two machines differ by.
 */
export const PACK_SWEEP_GRACE_MS = 2 * 60 * 60_000;
/** How often all packs are held against all repositories: some seconds for 100,000 of them. */
export const PACK_SWEEP_MS = 60 * 60_000;
/** Packs in one message of a sweep: at 150 bytes an answer of them can be kept (REPLY_KEPT_BYTES_MAX). */
export const PACK_SWEEP_BATCH = 300;
/** What was condemned and is not found any more is forgotten; condemning it again only takes longer. */
export const PACK_CONDEMNED_MS = 24 * 60 * 60_000;
/** Objects whose ids are compared before others have their turn: a few milliseconds. */
export const COMPARED_IDS = 20_000;

// --- The cache of a gateway ---

/** Bytes of packs kept on disk. */
export const GIT_CACHE_BYTES_MAX = 20_000_000_000;
/** The part of a smaller disk that the cache leaves free. */
export const GIT_CACHE_FREE_SHARE = 0.1;
/** Further bytes for stored answers to clones, and the part that one answer may take. */
export const GIT_ANSWERS_BYTES_MAX = 2_000_000_000;
export const GIT_ANSWER_BYTES_MAX = 250_000_000;
/** Answers of a few lines are kept in memory: a list of refs, a thousand of them. */
export const GIT_ANSWER_MEMORY_BYTES = 64 * 1024;
export const GIT_ANSWERS_MEMORY_BYTES_MAX = 16 * 1024 * 1024;
/** What waits to be written of an answer that goes by: a disk that is further behind is not waited for. */
export const GIT_ANSWER_AHEAD_BYTES = 8 * 1024 * 1024;
/** What is no longer named stays so long: a process that started before may still read it. */
export const GIT_CACHE_GRACE_MS = 2 * GIT_PROCESS_MS_MAX;
/** Packs fetched at a time for one repository. */
export const GIT_CACHE_FETCHES = 8;
/** Refs of all manifests kept in memory: some 50 MB. */
export const GIT_CACHE_REFS_MAX = 250_000;
/**
 * Packs of at least this size get bitmaps when they are cloned; smaller ones save nothing. Bitmaps are made again
 * when the packs have grown by this factor, and abandoned after this time: a history of a million commits takes half
 * a minute.
 */
export const GIT_BITMAPS_FROM_BYTES = 1_000_000;
export const GIT_BITMAPS_GROWTH = 1.5;
export const GIT_BITMAPS_MS_MAX = 120_000;
/** How often a gateway looks what may go. */
export const GIT_CACHE_SWEEP_MS = 60_000;
/** Files of packs that wait for their last reader; forgotten, they wait anew. */
export const GIT_CACHE_UNNAMED_MAX = 20_000;
/** Names of repositories a gateway remembers with their ids. */
export const GIT_NAMES_KEPT = 10_000;
/** Taken of a body after it was refused, so that its sender reads why: more than is under way on a fast line. */
export const GIT_DISCARDED_BYTES_MAX = 64 * 1024 ** 2;
