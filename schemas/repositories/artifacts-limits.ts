/** Every bound that was chosen for the REST API of repositories, with what it bridges. */

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
/** What is looked at of a file to tell its type, as git itself does to tell text. */
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
/** Its body, at least: a file of FILE_BYTES_MAX in base64, and the rest. */
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
