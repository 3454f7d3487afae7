/** Every bound that was chosen for the REST API of repositories, with what it bridges. */

// --- Lists ---

/** Namespaces of one account: a list of their names is in memory while it is used, at some 200 bytes each. */
export const NAMESPACES_MAX = 10_000;
/** A namespace that was announced and did not come to be is no longer listed after this. */
export const NAMESPACE_ANNOUNCED_MS = 60_000;
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

/** Repositories of one gateway that have a process for reads: 14 MB each. */
export const READERS_MAX = 32;
/** The process ends after this long without a request. */
export const READER_IDLE_MS = 60_000;
/** It is replaced after this, since the cache takes a use that is older than twice as much for forgotten. */
export const READER_AGE_MS_MAX = 20 * 60_000;
/** Objects that wait for one process; they take a tenth of a millisecond each. */
export const READS_WAITING_MAX = 10_000;
/** A read takes less, from a slow disk too. */
export const READ_MS_MAX = 20_000;
/**
 * Bytes of objects that answers of one gateway hold at once: eight files of the largest size, or as many such trees.
 */
export const READ_BYTES_MAX = 256 * 1024 * 1024;
/** A file's path as it is sent: PATH_MAX of Linux. */
export const PATH_BYTES_MAX = 4_096;
/** Bytes of a tree or commit that is shown as JSON: some 200,000 entries. */
export const SHOWN_OBJECT_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes of an object count this many times, because tree entries are three to four times as long in JSON. */
export const SHOWN_OBJECT_FACTOR = 4;
/** Bytes of all commits of one log: two of the largest, or LOG_ENTRIES_MAX with messages of ten pages. */
export const LOG_BYTES_MAX = 16 * 1024 * 1024;
/** What is looked at of a file to tell its type, as git itself does to tell text. */
export const SNIFFED_BYTES = 8_000;

// --- Diffs and archives ---

/** Files of one diff, and bytes of its patch; past either it says that it is cut. */
export const DIFF_FILES_MAX = 3_000;
export const DIFF_PATCH_BYTES_MAX = 2 * 1024 * 1024;
/** What git may say of them in all before it is stopped. */
export const DIFF_LIST_BYTES_MAX = 4 * 1024 * 1024;
export const DIFF_MS_MAX = 20_000;
/** Files of an archive, and their bytes as they are unpacked: as many as a repository may hold packed. */
export const ARCHIVE_FILES_MAX = 200_000;
export const ARCHIVE_BYTES_MAX = 1_000_000_000;
export const ARCHIVE_MS_MAX = 120_000;
/** Bytes of archives a gateway keeps, the latest used. */
export const ARCHIVES_KEPT_BYTES_MAX = 4_000_000_000;

// --- Commits ---

/** Files of one commit by REST; more are better pushed. */
export const COMMIT_CHANGES_MAX = 1_000;
/** Its body, at least: a file of FILE_BYTES_MAX in base64, and the rest. */
export const COMMIT_BODY_BYTES_MAX = 48 * 1024 * 1024;
export const COMMIT_MESSAGE_CHARS_MAX = 65_536;
export const COMMIT_AUTHOR_CHARS_MAX = 256;
/** Directories above one file, and bytes of one name: what file systems take. */
export const COMMIT_PATH_DEPTH_MAX = 64;
export const COMMIT_NAME_BYTES_MAX = 255;
/**
 * Bytes of directories that one commit reads and makes: each entry takes some ten times as much in memory while it is
 * made.
 */
export const COMMIT_TREES_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of its small files that are packed before others have their turn: some ten milliseconds. */
export const PACKED_AT_ONCE_BYTES = 512 * 1024;
/** Tries of a commit that names no expected tip, against others that are quicker. */
export const COMMIT_TRIES_MAX = 8;

// --- Forks and imports ---

/** A repository whose fork was begun and is not there after this has failed: its gateway has died. */
export const FORK_MS_MAX = 10 * 60_000;
/** Refs of a fork in one message, as JSON; more come in parts. */
export const FORK_REFS_BYTES_MAX = 200_000;
/** Imports of one gateway at a time: each holds a git process, disk and the network. */
export const IMPORT_SLOTS = 2;
/** One import: 1 GB over 5 Mbit/s. */
export const IMPORT_MS_MAX = 30 * 60_000;
/** Commits of a line of history: more than any repository of REPO_BYTES_MAX has. */
export const IMPORT_DEPTH_MAX = 1_000_000;
/** How often an import says how far it is, at most: each time is a commit of its repository. */
export const IMPORT_TOLD_MS = 1_000;
/** Bytes of what a host may say of its refs: half a million, of which most may be its own. */
export const IMPORT_REFS_BYTES_MAX = 32 * 1024 * 1024;
/** Large files that one import fetches at a time, and what their host may say of a hundred of them. */
export const IMPORT_LFS_AT_ONCE = 4;
export const IMPORT_LFS_ANSWER_BYTES_MAX = 1024 * 1024;
export const IMPORT_URL_CHARS_MAX = 2_048;
/** Redirects of the first request of an import. */
export const IMPORT_REDIRECTS_MAX = 10;
/** Pauses before a request to an import's host is repeated after a 5xx: a restart of a server fits. */
export const IMPORT_RETRY_PAUSES_MS: readonly number[] = [1_000, 4_000, 15_000];
