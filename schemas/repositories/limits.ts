/** Limits of repositories that clients see, or that the code of several folders uses. */

// --- Names and settings, as in the public API ---

export const NAMESPACE_NAME_CHARS_MIN = 2;
export const NAMESPACE_NAME_CHARS_MAX = 63;
export const REPO_NAME_CHARS_MAX = 63;
/** A repository's description has one or two sentences, because every listing contains it. */
export const REPO_DESCRIPTION_CHARS_MAX = 1_024;
/**
 * Limit for the repositories of one namespace. Their entries in listings are in memory while the namespace is active:
 * some 400 bytes each, and up to 1.2 kB more if an import left something out.
 */
export const NAMESPACE_REPOS_MAX = 50_000;
export const REPO_LIST_MAX = 200;
/** Limit for the protected-ref rules of one repository. Each rule is compared with each ref that a push changes. */
export const PROTECTED_REFS_MAX = 100;

/**
 * How long a removed repository is remembered. A message that was sent to it earlier arrives within this time or
 * never.
 */
export const REPO_REMOVED_MS = 24 * 60 * 60_000;

// --- Refs ---

/** The largest number of refs in one repository, and of commands in one push. */
export const REFS_MAX = 10_000;
/** Bytes of one ref's name, as other Git services accept. File systems allow fewer in one component of a path. */
export const REF_NAME_BYTES_MAX = 1_024;
/**
 * Limit for the components of one ref's name. Each component is checked for conflicts. No known repository nests
 * branches half as deep.
 */
export const REF_DEPTH_MAX = 32;
/**
 * Limit for the bytes of the names of all refs as JSON. With REFS_MAX object ids, the whole table of refs fits one
 * commit (TRANSITION_ROW_BYTES_MAX).
 */
export const REF_NAMES_BYTES_MAX = 1_000_000;
/**
 * Rows over which the refs of a repository are spread. With REFS_MAX refs, a change of one ref rewrites a row of some
 * 80 refs. All rows together fit one commit.
 */
export const REF_ROWS = 128;

// --- Pushes ---

/**
 * Limit for the bytes of the commands in one message. A push with more commands is sent in parts, and each part is a
 * row until the push is decided.
 */
export const COMMANDS_BYTES_MAX = 200_000;
/** Limit for the parts of one push. REFS_MAX commands fit, even if their names take REF_NAMES_BYTES_MAX together. */
export const PUSH_PARTS_MAX = 16;
/**
 * STAGED_PUSHES_MAX limits the pushes in parts that one repository keeps at the same time. After STAGED_MS a push is
 * dropped, because its gateway may have died.
 */
export const STAGED_PUSHES_MAX = 4;
export const STAGED_MS = 10 * 60_000;
/** Limit for the packs that one change may add or remove. A transition writes at most TRANSITION_ROWS_MAX rows. */
export const SWAP_PACKS_MAX = 200;
/**
 * Default limits for the packed bytes of one repository and the bytes of one file. Both are the limits of the public
 * API.
 */
export const REPO_BYTES_MAX = 1_000_000_000;
export const FILE_BYTES_MAX = 32 * 1024 * 1024;
/**
 * GIT_BYTES_SETTING_MIN is the smallest value that an operator may set as the limit for a file or as the limit for a
 * repository. The limit for a file also applies to all other Git objects, and a tree of 20,000 entries must fit.
 * REPO_BYTES_SETTING_MAX is the largest value for the limit for a repository, because offsets in a pack have 31 bits.
 */
export const GIT_BYTES_SETTING_MIN = 1_000_000;
export const REPO_BYTES_SETTING_MAX = 2_000_000_000;
/**
 * The largest limit for one file that an operator may set. Git builds a file from a delta and a base; all three fit
 * GIT_PROCESS_KIB_MAX. One such file fits an account's share of READ_BYTES_MAX.
 */
export const FILE_BYTES_SETTING_MAX = 128 * 1024 * 1024;
/**
 * Decompressed bytes of one push, as a multiple of a repository's limit. Long histories reach about thirty times
 * their packed size.
 */
export const INFLATED_FACTOR = 100;
/**
 * Limit for the depth of nested directories in one repository. It is limited because git recurses into directories.
 * The deepest known repository has a tenth of this depth.
 */
export const TREE_DEPTH_MAX = 512;
/** New directories of one push. Their ids and positions are in memory while the depth is measured, some 60 MB. */
export const PUSH_TREES_MAX = 400_000;
/**
 * PUSH_OPTIONS_MAX limits the push options of one push. PUSH_OPTION_CHARS_MAX limits the characters of one option; a
 * line of the protocol holds at most 65,516 bytes.
 */
export const PUSH_OPTIONS_MAX = 64;
export const PUSH_OPTION_CHARS_MAX = 1_024;
/**
 * Limit for the bytes of all options of a push as JSON. The event of each pushed ref repeats the options, and
 * EVENT_REFS_MAX events still fit TRANSITION_ROW_BYTES_MAX.
 */
export const PUSH_OPTIONS_BYTES_MAX = 4_096;
/**
 * Limit for the commits at which the history of a repository ends after an import with a limited depth. Every
 * manifest of the repository lists all of them.
 */
export const REPO_SHALLOW_MAX = 1_000;

// --- Large files, by Git LFS ---

/** Bytes of one large file, whatever limits the operator sets: half of the largest limit for a repository. */
export const LFS_OBJECT_BYTES_MAX = REPO_BYTES_SETTING_MAX / 2;
/** Limit for the large files of one repository. Each is a row of about 200 bytes in memory. */
export const LFS_OBJECTS_MAX = 5_000;
/** Limit for the large files in one request: git-lfs sends at most this many at a time. */
export const LFS_BATCH_MAX = 100;
/** Limit for the large files that one message adds or lists. A transition writes at most TRANSITION_ROWS_MAX rows. */
export const LFS_NAMED_MAX = 300;
/**
 * LFS_LOCKS_MAX limits the locks of one repository, because each is a row in memory. LFS_LOCK_PATH_CHARS_MAX limits a
 * locked path; real repositories have no longer paths.
 */
export const LFS_LOCKS_MAX = 1_000;
export const LFS_LOCK_PATH_CHARS_MAX = 1_024;
/** Characters of the name that a client gives itself. A list of locks shows this name. */
export const LFS_LOCK_NAME_CHARS_MAX = 100;
/** Limit for the locks in one reply. They fit a message even with the longest paths. */
export const LFS_LOCKS_LISTED_MAX = 100;

// --- Tokens, as in the public API ---

export const REPO_TOKEN_TTL_S = 86_400;
export const REPO_TOKEN_TTL_S_MIN = 60;
export const REPO_TOKEN_TTL_S_MAX = 31_536_000;
/** Limit for the tokens of one repository. Past this number the oldest expired or revoked token is deleted. */
export const REPO_TOKENS_MAX = 1_000;

// --- Events ---

export const EVENTS_LISTED_MAX = 200;
/** Refs of one push that get an event each. With the longest names these events fit TRANSITION_SEND_BYTES_MAX. */
export const EVENT_REFS_MAX = 100;
/** Limit for the commits in the event of one ref. If a push brings more, the event has the newest of them. */
export const EVENT_COMMITS_MAX = 20;
/** Limit for the existing refs that a new ref is compared with, to find its new commits. */
export const EVENT_OTHERS_MAX = 50;
/** If no gateway finds the commits of a push within this time, the event is published without commits. */
export const EVENT_DESCRIBED_MS = 60_000;
/** Time limit for finding the commits of one push. Git counts a million commits in some seconds. */
export const EVENT_DESCRIBING_MS = 20_000;

// --- Git processes of one gateway ---

/**
 * Limit for the wall-clock time of one Git process. A transfer of 1 GB at 5 Mbit/s fits; a transfer that stalls is
 * ended earlier.
 */
export const GIT_PROCESS_MS_MAX = 30 * 60_000;
/**
 * Limit for the address space of one Git process. The largest valid pack needs a third of this limit. Without a
 * limit, a delta bomb would use all memory.
 */
export const GIT_PROCESS_KIB_MAX = 800_000;
/** Characters of a Git process's error output that the gateway keeps. */
export const GIT_STDERR_CHARS_MAX = 4_000;
/** Bytes of a push before its pack: REFS_MAX commands with the longest names fit, and the push options. */
export const PUSH_HEAD_BYTES_MAX = 16 * 1024 * 1024;
/**
 * Limit for the decompressed bytes of fetch requests and of the first parts of pushes that one gateway holds. Every
 * push that may wait for a process fits with the first MiB of its pack.
 */
export const GIT_BODIES_BYTES_MAX = 256 * 1024 * 1024;

// --- Removed repositories ---

/**
 * CLEARED_ROWS is the number of rows of a removed repository that one transition deletes. CLEAR_PAUSE_MS is the pause
 * before the next such transition.
 */
export const CLEARED_ROWS = 300;
export const CLEAR_PAUSE_MS = 200;

// --- The store ---

/** The default limit for one account. An account also gets at most ACCOUNT_STREAM_SHARE of a stream of packs. */
export const GIT_BYTES_PER_ACCOUNT = 8 * 1024 ** 3;

// --- Upkeep of packs ---

/**
 * From this number of packs on, a repository is compacted. A fetch from 100 packs takes a fifth longer than a fetch
 * from one pack; from 1,000 packs it takes three times as long.
 */
export const COMPACT_PACKS = 50;
/**
 * The shortest interval between two prunes of one repository. The sweep has then removed the packs that the previous
 * prune replaced, so that repeated prunes store each repository at most twice.
 */
export const PRUNE_INTERVAL_MS = 3 * 60 * 60_000;
/**
 * How long the store keeps at least a new pack that no repository names yet. It is longer than any push takes from
 * storing its pack to sending `swap`.
 */
export const PACK_HELD_MS = 15 * 60_000;
/**
 * Limit for the packs in one message of a sweep. At 150 bytes per pack, a reply that lists all of them can be kept
 * (REPLY_KEPT_BYTES_MAX).
 */
export const PACK_SWEEP_BATCH = 300;

// --- The cache of a gateway ---

/** Default limit for the bytes of packs in a gateway's cache. */
export const GIT_CACHE_BYTES_MAX = 20_000_000_000;
/**
 * How long the cache keeps a file that no repository names any more. A process that started earlier may still read
 * it.
 */
export const GIT_CACHE_GRACE_MS = 2 * GIT_PROCESS_MS_MAX;
/** Limit for the entries of several caches of a gateway, such as the ids of repositories by name. */
export const GIT_NAMES_KEPT = 10_000;

// --- Lists ---

/** Namespaces of one account. Their list is in memory while it is in use, at some 200 bytes for each namespace. */
export const NAMESPACES_MAX = 10_000;
/** For each list, the largest and the default number of entries in one response, as in the public API. */
export const NAMESPACE_LIST_MAX = 200;
export const NAMESPACE_LIST = 100;
export const REPO_LIST = 50;
export const REPO_TOKEN_LIST_MAX = 100;
export const REPO_TOKEN_LIST = 30;
export const LOG_ENTRIES_MAX = 1_000;
export const LOG_ENTRIES = 50;
/** Limit for the commits that a request for the log may skip. Git walks over some 50,000 commits a second. */
export const LOG_OFFSET_MAX = 1_000_000;
export const REF_LIST_MAX = 1_000;
export const REF_LIST = 100;
/** Characters of a search text, of a cursor and of a ref in a request. */
export const SEARCH_CHARS_MAX = 100;
export const CURSOR_CHARS_MAX = 2_048;
export const REF_CHARS_MAX = 1_024;

// --- Objects ---

/**
 * Limit for the bytes that all responses of one gateway reserve for Git objects at the same time: eight files of
 * FILE_BYTES_MAX, or eight of the largest trees that are shown as JSON. One account may reserve half of them.
 */
export const READ_BYTES_MAX = 256 * 1024 * 1024;
/** Bytes of a file's path in a request: PATH_MAX of Linux. */
export const PATH_BYTES_MAX = 4_096;
/** The number of first bytes of a file that decide its type. Git reads the same number to recognise text. */
export const SNIFFED_BYTES = 8_000;

// --- Diffs and archives ---

/** Files of one diff, and bytes of its patch. A diff past either limit is cut and marked as `truncated`. */
export const DIFF_FILES_MAX = 3_000;
export const DIFF_PATCH_BYTES_MAX = 2 * 1024 * 1024;
/**
 * Limits for the files in an archive and their decompressed bytes. An archive may also have as many directories as
 * files. The bytes are those of REPO_BYTES_MAX.
 */
export const ARCHIVE_FILES_MAX = 200_000;
export const ARCHIVE_BYTES_MAX = 1_000_000_000;
/**
 * Limit for the bytes of the paths of all files and directories in an archive. They are in memory while the archive is
 * checked. With ARCHIVE_FILES_MAX files, a path may have 335 bytes on average.
 */
export const ARCHIVE_PATH_BYTES_MAX = 64 * 1024 * 1024;

// --- Commits ---

/** Limit for the changed files of one commit by REST. Clients should push larger commits with git. */
export const COMMIT_CHANGES_MAX = 1_000;
/** The smallest limit for the body of a commit by REST: a file of FILE_BYTES_MAX in base64, and the other fields. */
export const COMMIT_BODY_BYTES_MAX = 48 * 1024 * 1024;
export const COMMIT_MESSAGE_CHARS_MAX = 65_536;
export const COMMIT_AUTHOR_CHARS_MAX = 256;
/**
 * COMMIT_PATH_DEPTH_MAX limits the names in one file's path: its directories and the file itself.
 * COMMIT_NAME_BYTES_MAX limits one directory or file name, as file systems do.
 */
export const COMMIT_PATH_DEPTH_MAX = 64;
export const COMMIT_NAME_BYTES_MAX = 255;
/**
 * Limit for the attempts at a commit by REST that names no expected tip. An attempt fails if another commit changes
 * the branch first.
 */
export const COMMIT_TRIES_MAX = 8;

// --- Forks and imports ---

/** Time limit of one import: enough for 1 GB over 5 Mbit/s. */
export const IMPORT_MS_MAX = 30 * 60_000;
/**
 * Limit for the imports of one account that run or wait. All accounts share a queue of LANE_TASKS_MAX imports. Past
 * this number, the tasks wait in the outboxes of shards, and delay all other tasks there.
 */
export const IMPORTS_PER_ACCOUNT_MAX = 16;
/** The largest depth of an import, in commits of one line of history. No repository of REPO_BYTES_MAX has more. */
export const IMPORT_DEPTH_MAX = 1_000_000;
export const IMPORT_URL_CHARS_MAX = 2_048;
/** Limit for the redirects that the first request of an import may follow. */
export const IMPORT_REDIRECTS_MAX = 10;
/**
 * Pauses before an import repeats a request after a 5xx response of the origin. Together they are longer than the
 * restart of a server.
 */
export const IMPORT_RETRY_PAUSES_MS: readonly number[] = [1_000, 4_000, 15_000];
