/** Limits of repositories that clients see or several folders share. */

// --- Names and settings, as in the public API ---

export const NAMESPACE_NAME_CHARS_MIN = 2;
export const NAMESPACE_NAME_CHARS_MAX = 63;
export const REPO_NAME_CHARS_MAX = 63;
/** A sentence or two; it stands in every listing. */
export const REPO_DESCRIPTION_CHARS_MAX = 1_024;
/** Repositories of one namespace: their listing, some 400 bytes each, is in memory while the namespace is used. */
export const NAMESPACE_REPOS_MAX = 50_000;
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
 * Decompressed bytes of one push, as a multiple of a repository's limit. Long histories reach about thirty times
 * their packed size.
 */
export const INFLATED_FACTOR = 100;
/** Nested directories in one repository, because git recurses into them. Ten times the deepest known. */
export const TREE_DEPTH_MAX = 512;
/** New directories of one push: their ids and places are in memory while they are measured, some 60 MB. */
export const PUSH_TREES_MAX = 400_000;
/** Push options of one push, and characters of one: a line of the protocol holds no more than 65,516. */
export const PUSH_OPTIONS_MAX = 64;
export const PUSH_OPTION_CHARS_MAX = 1_024;
/**
 * Bytes of all options as JSON. They are in the event of each ref, and EVENT_REFS_MAX events still fit
 * TRANSITION_ROW_BYTES_MAX.
 */
export const PUSH_OPTIONS_BYTES_MAX = 4_096;
/**
 * Commits at which the history of a repository that was imported to a depth ends: every answer about it names them
 * all.
 */
export const REPO_SHALLOW_MAX = 1_000;

// --- Large files, by Git LFS ---

/** Bytes of one, whatever is set: half of the most that a repository may hold. */
export const LFS_OBJECT_BYTES_MAX = REPO_BYTES_SETTING_MAX / 2;
/** Limit of one repository. Each is a row of about 200 bytes in memory. */
export const LFS_OBJECTS_MAX = 5_000;
/** In one question: as many as git-lfs asks for at a time. */
export const LFS_BATCH_MAX = 100;
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
/** Tokens of one repository. Past it, expired and revoked ones are dropped, oldest first. */
export const REPO_TOKENS_MAX = 1_000;

// --- Events ---

export const EVENTS_LISTED_MAX = 200;
/** Refs of one push with an event each. With the longest names they fit TRANSITION_SEND_BYTES_MAX. */
export const EVENT_REFS_MAX = 100;
/** Commits in the event of one ref, the newest, and characters of each one's message and of the names in it. */
export const EVENT_COMMITS_MAX = 20;
/** Existing refs that a new ref is compared with, to find its new commits. */
export const EVENT_OTHERS_MAX = 50;

// --- Git processes of one gateway ---

/** Wall-clock and processor time of one process: 1 GB over 5 Mbit/s, as long as something moves. */
export const GIT_PROCESS_MS_MAX = 30 * 60_000;
/** Address space of one process. The largest valid pack needs a third of it; a delta bomb would use all memory. */
export const GIT_PROCESS_KIB_MAX = 800_000;
/** Characters that are kept of a process's error output. */
export const GIT_STDERR_CHARS_MAX = 4_000;
/** The commands of a push before its pack: REFS_MAX of them with names at their bound, and options. */
export const PUSH_HEAD_BYTES_MAX = 16 * 1024 * 1024;

// --- Work of one push, and beside it ---

/** Rows of a removed repository that go in one transition, and the pause before the next. */
export const CLEARED_ROWS = 300;
export const CLEAR_PAUSE_MS = 200;

// --- The store ---

/** Bytes for the packs of all repositories. A smaller disk allows fewer. */
export const PACKS_STORE_BYTES_MAX = 16 * 1024 ** 3;

/** The default for one account: half, so that no account takes the space of all others. */
export const GIT_BYTES_PER_ACCOUNT = PACKS_STORE_BYTES_MAX / 2;

// --- Upkeep of packs ---

/**
 * Packs are joined from this number on. A fetch from 100 packs takes a fifth longer than from one, from 1,000 three
 * times as long.
 */
export const COMPACT_PACKS = 50;
/**
 * How long a stored pack is surely there, though nobody names it: longer than any push takes between storing and
 * asking.
 */
export const PACK_HELD_MS = 15 * 60_000;
/** Packs in one message of a sweep: at 150 bytes an answer of them can be kept (REPLY_KEPT_BYTES_MAX). */
export const PACK_SWEEP_BATCH = 300;

// --- The cache of a gateway ---

/** Bytes of packs kept on disk. */
export const GIT_CACHE_BYTES_MAX = 20_000_000_000;
/** How long an unnamed file stays, because a process that started earlier may still read it. */
export const GIT_CACHE_GRACE_MS = 2 * GIT_PROCESS_MS_MAX;
/** Names of repositories a gateway remembers with their ids. */
export const GIT_NAMES_KEPT = 10_000;

// --- Lists ---

/** Namespaces of one account: a list of their names is in memory while it is used, at some 200 bytes each. */
export const NAMESPACES_MAX = 10_000;
/** Entries of one answer, and how many where nobody says, as in the public API. */
export const NAMESPACE_LIST_MAX = 200;
export const NAMESPACE_LIST = 100;
export const REPO_LIST = 50;
export const REPO_TOKEN_LIST_MAX = 100;
export const REPO_TOKEN_LIST = 30;
export const LOG_ENTRIES_MAX = 1_000;
export const LOG_ENTRIES = 50;
/** Commits before the first that is shown: git walks over some 50,000 a second. */
export const LOG_OFFSET_MAX = 1_000_000;
export const REF_LIST_MAX = 1_000;
export const REF_LIST = 100;
/** Characters of a search, of a cursor and of a ref as they are sent. */
export const SEARCH_CHARS_MAX = 100;
export const CURSOR_CHARS_MAX = 2_048;
export const REF_CHARS_MAX = 1_024;

// --- Objects ---

/**
 * Bytes of objects that answers of one gateway hold at once: eight files of the largest size, or as many such trees.
 */
export const READ_BYTES_MAX = 256 * 1024 * 1024;
/** A file's path as it is sent: PATH_MAX of Linux. */
export const PATH_BYTES_MAX = 4_096;
/** Bytes of a file that decide its type. Git looks at as many to recognise text. */
export const SNIFFED_BYTES = 8_000;

// --- Diffs and archives ---

/** Files of one diff, and bytes of its patch; past either it says that it is cut. */
export const DIFF_FILES_MAX = 3_000;
export const DIFF_PATCH_BYTES_MAX = 2 * 1024 * 1024;
/** Files of an archive, and their bytes as they are unpacked: as many as a repository may hold packed. */
export const ARCHIVE_FILES_MAX = 200_000;
export const ARCHIVE_BYTES_MAX = 1_000_000_000;

// --- Commits ---

/** Files of one commit by REST; more are better pushed. */
export const COMMIT_CHANGES_MAX = 1_000;
/** Body of a commit by REST, at least: a file of FILE_BYTES_MAX in base64, and the rest. */
export const COMMIT_BODY_BYTES_MAX = 48 * 1024 * 1024;
export const COMMIT_MESSAGE_CHARS_MAX = 65_536;
export const COMMIT_AUTHOR_CHARS_MAX = 256;
/** Directories above one file, and bytes of one name: what file systems take. */
export const COMMIT_PATH_DEPTH_MAX = 64;
export const COMMIT_NAME_BYTES_MAX = 255;
/** Tries of a commit that names no expected tip, against others that are quicker. */
export const COMMIT_TRIES_MAX = 8;

// --- Forks and imports ---

/** One import: 1 GB over 5 Mbit/s. */
export const IMPORT_MS_MAX = 30 * 60_000;
/** Commits of a line of history: more than any repository of REPO_BYTES_MAX has. */
export const IMPORT_DEPTH_MAX = 1_000_000;
export const IMPORT_URL_CHARS_MAX = 2_048;
/** Redirects of the first request of an import. */
export const IMPORT_REDIRECTS_MAX = 10;
/** Pauses before a request to an import's host is repeated after a 5xx: a restart of a server fits. */
export const IMPORT_RETRY_PAUSES_MS: readonly number[] = [1_000, 4_000, 15_000];
