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
export const REPO_LIST_MAX = 200;
/** Rules of one repository; each is held against each ref that a push changes. */
export const PROTECTED_REFS_MAX = 100;

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
/** Packs of one repository: past them a push waits for compaction, which begins at COMPACT_PACKS. At some 120 bytes they fit an answer. */
export const REPO_PACKS_MAX = 2_000;
/** Packed bytes of one repository, and bytes of one file, as in the public API. */
export const REPO_BYTES_MAX = 1_000_000_000;
export const FILE_BYTES_MAX = 32 * 1024 * 1024;
/** New directories below each other in one push: git goes down them by recursion. Ten times what is ever seen. */
export const TREE_DEPTH_MAX = 512;
/** So many new directories cannot be deep, and are not measured. */
export const TREE_DEPTH_TRUSTED = 32;
/** New directories of one push: their ids and places are in memory while they are measured, some 60 MB. */
export const PUSH_TREES_MAX = 400_000;
/** Directories inside others of one push that are looked at for it: some seconds. */
export const TREE_EDGES_MAX = 2_000_000;
/** Push options of one push, and characters of one: a line of the protocol holds no more than 65,516. */
export const PUSH_OPTIONS_MAX = 64;
export const PUSH_OPTION_CHARS_MAX = 1_024;
/** Shallow commits a client may name; a clone of depth 1 has one for each ref. */
export const SHALLOW_LINES_MAX = 20_000;

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
/** Refs named in the event of one push: with names at their bound they fit TRANSITION_SEND_BYTES_MAX. */
export const EVENT_REFS_MAX = 100;

// --- Git processes of one gateway ---

/** At a time, for each core: they wait for disk and network as often as they compute. */
export const GIT_PROCESSES_PER_CORE = 4;
/** Of one repository, so that no other waits for it alone. */
export const GIT_PROCESSES_PER_REPO = 6;
/** Requests that wait for one, and how long: then 503, and the client comes back. */
export const GIT_QUEUE_MAX = 128;
export const GIT_QUEUE_PER_REPO_MAX = 32;
export const GIT_QUEUE_MS = 15_000;
/** Wall-clock and processor time of one process: 1 GB over 5 Mbit/s, as long as something moves. */
export const GIT_PROCESS_MS_MAX = 30 * 60_000;
export const GIT_PROCESS_CPU_S_MAX = 300;
/** Address space of one process: the largest honest pack takes a third of it, a delta bomb all there is. */
export const GIT_PROCESS_KIB_MAX = 800_000;
/** A file it may write: twice the bytes of a repository. */
export const GIT_PROCESS_FILE_BYTES_MAX = 2 * REPO_BYTES_MAX;
/** What is kept of what a process says on its error output. */
export const GIT_STDERR_CHARS_MAX = 4_000;
/** A fetch's negotiation, unpacked: git's own bound (http.maxRequestBuffer). */
export const FETCH_REQUEST_BYTES_MAX = 10 * 1024 * 1024;
/** The commands of a push before its pack: REFS_MAX of them with names at their bound, and options. */
export const PUSH_HEAD_BYTES_MAX = 16 * 1024 * 1024;
/** A body on which nothing moves is cut off: it holds a process. */
export const GIT_BODY_STALL_MS = 30_000;

// --- The store ---

/** Packs of all repositories; a disk with less room gives a part of it. */
export const PACKS_STORE_BYTES_MAX = 16 * 1024 ** 3;

// --- Upkeep of packs ---

/** From so many on packs are put together: a fetch from 100 takes a fifth longer than from one, from 1,000 three times as long. */
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
/** How long a stored pack is surely there, though nobody names it: longer than any push takes between storing and asking. */
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
/** What is no longer named stays so long: a process that started before may still read it. */
export const GIT_CACHE_GRACE_MS = 2 * GIT_PROCESS_MS_MAX;
/** Packs fetched at a time for one repository. */
export const GIT_CACHE_FETCHES = 8;
/** Refs of all manifests kept in memory: some 50 MB. */
export const GIT_CACHE_REFS_MAX = 250_000;
/** How often a gateway looks what may go. */
export const GIT_CACHE_SWEEP_MS = 60_000;
/** Files of packs that wait for their last reader; forgotten, they wait anew. */
export const GIT_CACHE_UNNAMED_MAX = 20_000;
/** Names of repositories a gateway remembers with their ids. */
export const GIT_NAMES_KEPT = 10_000;
