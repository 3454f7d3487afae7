/** The documented limits of repositories, OAuth, apps, agents and webhooks. */
import {
  APP_FETCH_CONNECTIONS_MAX,
  appFetchesOfAccountMax,
} from "../../actors/apps/lib/app-host/app-fetch.ts";
import {
  AGENT_CALL_WAITS_MS_MAX,
  APP_OPERATIONS_MAX,
} from "../../actors/apps/lib/app-host/operation-places.ts";
import { processesOfAccountMax } from "../../actors/apps/lib/app-host/process-places.ts";
import { OUTGOING_AT_ONCE_MAX } from "../../actors/apps/outgoing-webhook/tries.ts";
import {
  AUDIT_ENTRIES_MAX,
  CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX,
  CLIENT_CHANGES_OF_ALL_PER_DAY_MAX,
  CLIENT_CHANGES_PER_DAY_MAX,
} from "../../actors/oauth/oauth-client/change-log.ts";
import {
  ACCESS_TOKENS_PER_GRANT_MAX,
  REFRESH_TOKENS_PER_GRANT_MAX,
} from "../../actors/oauth/oauth-grant/grant-tokens.ts";
import {
  AUTHORIZATIONS_PER_ADDRESS_MAX,
  SIGN_OUTS_PER_ADDRESS_MAX,
} from "../../gateway/oauth/oauth-router.ts";
import { TOKEN_REQUEST_BYTES_MAX } from "../../gateway/oauth/provider/request-size.ts";
import { REPORTED_COMMANDS_MAX } from "../../gateway/repositories/git/read-push.ts";
import { IMPORT_SLOTS } from "../../gateway/repositories/import/import-worker.ts";
import {
  downloadMsMax,
  LFS_ACCOUNT_SHARE,
  LFS_DOWNLOAD_BYTES_PER_S,
  LFS_TRANSFERS_MAX,
} from "../../gateway/repositories/lfs/transfer-slots.ts";
import { UPKEEP_BYTES_FACTOR } from "../../gateway/repositories/packs/account-storage.ts";
import {
  GIT_FREE_SHARE,
  GIT_PROCESSES_PER_CORE,
  GIT_PROCESSES_PER_REPO,
  GIT_QUEUE_MS,
} from "../../gateway/repositories/process/process-slots.ts";
import {
  READERS_ACCOUNT_SHARE,
  READERS_MAX,
} from "../../gateway/repositories/read/read-objects.ts";
import { LOGIN_WINDOW_MS, LOGOUT_TEXT_CHARS_MAX } from "../../schemas/account/limits.ts";
import {
  AGENT_BYTES_PER_ACCOUNT,
  AGENT_CONNECTIONS_MAX,
  AGENT_DATABASE_BYTES_MAX,
  AGENT_ROOM_BYTES,
  AGENT_TURN_MS_MAX,
  AGENT_TURNS_MAX,
  AGENT_WORK_MS_MAX,
  AGENTS_PER_ACCOUNT,
  APP_ANSWER_BYTES_MAX,
  APP_BUNDLE_BYTES_MAX,
  APP_HEAP_MB_MAX,
  APP_LOG_LINES_A_SECOND_MAX,
  APP_LOG_LINES_OF_ACCOUNT_MAX,
  APP_PORTS_MAX,
  APP_PORTS_PRESET,
  APP_PROCESSES_MAX,
  APP_REQUEST_BYTES_MAX,
  APP_RESIDENT_MB_MAX,
  APP_SECRET_BYTES_MAX,
  APP_SECRETS_MAX,
  APP_STREAM_UNREAD_MS,
  APP_STREAMS_MAX,
  APP_VARS_MAX,
  APP_VERSIONS_MAX,
  APPS_MAX,
  EVENT_IDS_KEPT_MS,
  EVENT_ROWS_BYTES_MAX,
  EVENTS_WAITING_MAX,
  FORM_FIELDS_MAX,
  OUTGOING_AGE_MS_MAX,
  OUTGOING_KEPT_MAX,
  OUTGOING_KEPT_MS,
  OUTGOING_PLACES_MAX,
  OUTGOING_WAITING_MAX,
  SOCKET_WAITING_BYTES_MAX,
  SOCKETS_UNREAD_BYTES_MAX,
  WEBHOOK_BODIES_BYTES_MAX,
  WEBHOOK_BODY_BYTES_MAX,
} from "../../schemas/apps/limits.ts";
import { BODIES_BYTES_MAX } from "../../schemas/limits.ts";
import { SMALL_BODY_BYTES_MAX } from "../../schemas/memory-limits.ts";
import {
  ACCESS_TOKEN_MS,
  AUDIT_KEPT_MS,
  CLIENT_SECRETS_MAX,
  CLIENTS_PER_USER_MAX,
  CODE_MS,
  GRANT_MS,
  GRANTS_PER_CLIENT_MAX,
  OAUTH_CLIENTS_PER_ACCOUNT_MAX,
  OAUTH_CLIENTS_PER_DAY_MAX,
  REFRESH_TOKEN_MS,
} from "../../schemas/oauth/limits.ts";
import { CLIENT_URIS_MAX } from "../../schemas/oauth/oauth-client-settings.ts";
import {
  ARCHIVE_BYTES_MAX,
  ARCHIVE_FILES_MAX,
  ARCHIVE_PATH_BYTES_MAX,
  COMMIT_BODY_BYTES_MAX,
  COMMIT_CHANGES_MAX,
  DIFF_FILES_MAX,
  DIFF_PATCH_BYTES_MAX,
  FILE_BYTES_MAX,
  GIT_BODIES_BYTES_MAX,
  GIT_BYTES_PER_ACCOUNT,
  IMPORT_REDIRECTS_MAX,
  IMPORT_RETRY_PAUSES_MS,
  IMPORTS_PER_ACCOUNT_MAX,
  LFS_LOCK_PATH_CHARS_MAX,
  LFS_LOCKS_MAX,
  LFS_OBJECTS_MAX,
  NAMESPACE_REPOS_MAX,
  NAMESPACES_MAX,
  PRUNE_INTERVAL_MS,
  PUSH_HEAD_BYTES_MAX,
  READ_BYTES_MAX,
  REF_NAME_BYTES_MAX,
  REFS_MAX,
  REPO_BYTES_MAX,
  REPO_TOKEN_TTL_S_MAX,
  REPO_TOKEN_TTL_S_MIN,
  REPO_TOKENS_MAX,
} from "../../schemas/repositories/limits.ts";
import { APP_LOGS_OF_ACCOUNT_BYTES_MAX } from "../../schemas/store-limits.ts";
import { bytes, count, type LimitRow, time } from "./figures.ts";

export const REPOSITORIES: readonly LimitRow[] = [
  [
    "repositories of a namespace; namespaces of an account",
    `${count(NAMESPACE_REPOS_MAX)}; ${count(NAMESPACES_MAX)}`,
    "409",
  ],
  [
    "bytes of all repositories of an account",
    `${bytes(GIT_BYTES_PER_ACCOUNT)} ([settable](configuration.md)), and at most a quarter of a stream of packs`,
    "the push is refused with a sentence that git shows; 507 by REST",
  ],
  [
    "packed bytes of a repository; bytes of a file in it",
    `${bytes(REPO_BYTES_MAX)}; ${bytes(FILE_BYTES_MAX)} ([settable](configuration.md))`,
    "the push is refused with a sentence that git shows",
  ],
  [
    `large requests of Git that a gateway holds; objects above ${bytes(SMALL_BODY_BYTES_MAX)} in responses by REST`,
    `${bytes(GIT_BODIES_BYTES_MAX)}; ${bytes(READ_BYTES_MAX)}, and half of each for one account`,
    "503 with Retry-After; a push is refused with a sentence that git shows",
  ],
  [
    "bytes of a large file by Git LFS; large files of a repository",
    `${bytes(REPO_BYTES_MAX / 2)}; ${count(LFS_OBJECTS_MAX)}`,
    "422; 409. They count towards the bytes of the repository: 507",
  ],
  [
    "locks of large files in a repository; characters of a locked path",
    `${count(LFS_LOCKS_MAX)}; ${count(LFS_LOCK_PATH_CHARS_MAX)}`,
    "409; 400",
  ],
  [
    "imports of an account that run or wait; imports that one gateway runs at a time; of one account",
    `${count(IMPORTS_PER_ACCOUNT_MAX)}; ${count(IMPORT_SLOTS)}; ${count(IMPORT_SLOTS - 1)}`,
    "409; they wait, and accounts take turns; likewise",
  ],
  [
    "time between two prunes of a repository; bytes of an account with those that its prunes and compactions add",
    `${time(PRUNE_INTERVAL_MS)}; ${count(UPKEEP_BYTES_FACTOR)} times the limit of the account`,
    "the prune runs later, and its response says when; the prune or compaction is postponed",
  ],
  [
    "redirects of an import; repetitions after a 5xx",
    `${count(IMPORT_REDIRECTS_MAX)}; ${count(IMPORT_RETRY_PAUSES_MS.length)}`,
    "it fails, and `status_reason` says why",
  ],
  [
    "refs of a repository; bytes of a ref's name",
    `${count(REFS_MAX)}; ${bytes(REF_NAME_BYTES_MAX)}`,
    `the push is refused with a sentence that git shows; 413 for more than ${count(REPORTED_COMMANDS_MAX)} refs or ${bytes(PUSH_HEAD_BYTES_MAX)} of commands in one push, and for clients that lack \`report-status\` or \`side-band-64k\``,
  ],
  [
    "tokens of a repository; life of a token",
    `${count(REPO_TOKENS_MAX)}; ${time(REPO_TOKEN_TTL_S_MIN * 1_000)} to ${time(REPO_TOKEN_TTL_S_MAX * 1_000)}`,
    "409; 400",
  ],
  [
    "files of one commit by REST; its body",
    `${count(COMMIT_CHANGES_MAX)}; ${bytes(COMMIT_BODY_BYTES_MAX)}`,
    "400; 413",
  ],
  [
    "a diff; an archive",
    `${count(DIFF_FILES_MAX)} files and ${bytes(DIFF_PATCH_BYTES_MAX)} of patch; ${count(ARCHIVE_FILES_MAX)} files and ${bytes(ARCHIVE_BYTES_MAX)}`,
    "cut, and says so; 413",
  ],
  [
    "directories of an archive; all paths of its files and directories",
    `${count(ARCHIVE_FILES_MAX)}; ${bytes(ARCHIVE_PATH_BYTES_MAX)}`,
    "413",
  ],
  [
    "large files that one gateway transfers at a time; of one account; time of a download",
    `${count(LFS_TRANSFERS_MAX)}; ${count(LFS_TRANSFERS_MAX * LFS_ACCOUNT_SHARE)}; ${time(downloadMsMax(0))}, and as long as at ${bytes(LFS_DOWNLOAD_BYTES_PER_S)}/s`,
    "503 with Retry-After; likewise; the connection is closed, and git-lfs continues",
  ],
  [
    "repositories of one gateway that REST and apps read at a time; of one account",
    `${count(READERS_MAX)}; ${count(READERS_MAX * READERS_ACCOUNT_SHARE)}`,
    "503 with Retry-After",
  ],
  [
    "git processes of one gateway at a time; of one account; of one repository",
    `${count(GIT_PROCESSES_PER_CORE)} for each processor; ${count(100 * (1 - GIT_FREE_SHARE))} % of them, and half while other accounts wait; ${count(GIT_PROCESSES_PER_REPO)}`,
    `they wait up to ${time(GIT_QUEUE_MS)}, then 503 with Retry-After; a push is refused with a sentence that git shows`,
  ],
];

export const OAUTH: readonly LimitRow[] = [
  [
    "OAuth clients of an account; redirect URIs of a client; its secrets",
    `${count(OAUTH_CLIENTS_PER_ACCOUNT_MAX)}; ${count(CLIENT_URIS_MAX)}; ${count(CLIENT_SECRETS_MAX)}`,
    "409; 400; 409",
  ],
  [
    "new OAuth clients of an account in a day, with deleted ones",
    count(OAUTH_CLIENTS_PER_DAY_MAX),
    "429 with Retry-After",
  ],
  [
    "changes of an OAuth client in a day by one person or token, with new lookups of its domain and fetches of its logo; by all; by all for a person who is signed in; kept changes",
    `${count(CLIENT_CHANGES_PER_DAY_MAX)}; ${count(CLIENT_CHANGES_OF_ALL_PER_DAY_MAX)}; ${count(CLIENT_CHANGES_BY_SESSION_PER_DAY_MAX)}; ${count(AUDIT_ENTRIES_MAX)}, and ${time(AUDIT_KEPT_MS)} after it is deleted`,
    "429; 429; 429; the oldest are deleted",
  ],
  [
    "live access tokens of a grant; live refresh tokens; clients that a person has allowed; grants of one client",
    `${count(ACCESS_TOKENS_PER_GRANT_MAX)}; ${count(REFRESH_TOKENS_PER_GRANT_MAX)}; ${count(CLIENTS_PER_USER_MAX)}; ${count(GRANTS_PER_CLIENT_MAX)}`,
    "the oldest ends; the oldest unused one ends; refused; the oldest ends",
  ],
  [
    "life of a code; of an access token; of an unused refresh token; of a grant",
    `${time(CODE_MS)}; ${time(ACCESS_TOKEN_MS)}; ${time(REFRESH_TOKEN_MS)}; ${time(GRANT_MS)}`,
    `\`invalid_grant\`; 401; \`invalid_grant\`; the person must consent again`,
  ],
  [
    `what an authorization request leaves with its tokens (nonce, scopes, challenge, address); \`state\` of a sign-out`,
    `${bytes(TOKEN_REQUEST_BYTES_MAX)}; ${count(LOGOUT_TEXT_CHARS_MAX)} characters`,
    `\`invalid_request\``,
  ],
  [
    "authorization requests from one address, ten times as many from a /48 of IPv6; sign-outs that name a client",
    `${count(AUTHORIZATIONS_PER_ADDRESS_MAX)}; ${count(SIGN_OUTS_PER_ADDRESS_MAX)} in ${time(LOGIN_WINDOW_MS)}`,
    "429",
  ],
];

export const APPS_AND_AGENTS: readonly LimitRow[] = [
  [
    "a bundle of an app with its source map; apps of an account; kept versions of an app",
    `${bytes(APP_BUNDLE_BYTES_MAX)}; ${count(APPS_MAX)}; ${count(APP_VERSIONS_MAX)}`,
    "413 (`trunkline deploy` leaves a map out that does not fit); 409; the oldest are deleted",
  ],
  [
    "bytes of all bundles of an account, with their kept versions",
    "a quarter of the [store of apps](configuration.md): 512 MiB of 2 GiB",
    "a deploy is refused with 507 until an app is deleted",
  ],
  [
    "apps with a port of their own on a single machine",
    `${count(APP_PORTS_PRESET)} ([settable](configuration.md), at most ${count(APP_PORTS_MAX)})`,
    "409",
  ],
  [
    "variables of an app; secrets; bytes of one",
    `${count(APP_VARS_MAX)}; ${count(APP_SECRETS_MAX)}; ${bytes(APP_SECRET_BYTES_MAX)}`,
    "400; 409; 400",
  ],
  [
    "a request to an app; its answer",
    `${bytes(APP_REQUEST_BYTES_MAX)}; ${bytes(APP_ANSWER_BYTES_MAX)}`,
    "413; 500",
  ],
  [
    "larger requests and answers of apps that a gateway holds; larger bodies of webhooks",
    `${bytes(BODIES_BYTES_MAX)}; ${bytes(WEBHOOK_BODIES_BYTES_MAX)}; half of each for an account, a quarter for an app`,
    "503 with Retry-After; 429",
  ],
  [
    "open streamed answers of one app's process; idle time of an unread one",
    `${count(APP_STREAMS_MAX)}; ${time(APP_STREAM_UNREAD_MS)}`,
    "503 with Retry-After; cancelled",
  ],
  [
    "a turn of an agent; work that nobody waits for",
    `${time(AGENT_TURN_MS_MAX)}; ${time(AGENT_WORK_MS_MAX)}`,
    "504; that attempt has failed",
  ],
  [
    "operations of an app's process: calls of agents by its entry; by its agents; fetches and all others",
    `${count(APP_OPERATIONS_MAX)} of each at a time`,
    `further ones wait; a call by an agent for ${time(AGENT_CALL_WAITS_MS_MAX)}, then it is an error in its code`,
  ],
  [
    "an agent's database; its sockets; turns that wait for it",
    `${bytes(AGENT_DATABASE_BYTES_MAX)}; ${count(AGENT_CONNECTIONS_MAX)}; ${count(AGENT_TURNS_MAX)}`,
    "an error in its code; closed with 1013; 503 with Retry-After",
  ],
  [
    "agents of an account; what they store",
    `${count(AGENTS_PER_ACCOUNT)}; ${bytes(AGENT_BYTES_PER_ACCOUNT)} ([settable](configuration.md)), and at most a quarter of a stream of agents; each agent, log of events and queue of webhooks counts at least ${bytes(AGENT_ROOM_BYTES)}`,
    `\`limit_reached\` (409), and nothing of that turn is stored`,
  ],
  [
    "processes of apps on one host, with those that check a deploy; of one account",
    `${count(APP_PROCESSES_MAX)}; ${count(processesOfAccountMax())}`,
    "an unused one gives way, of the same account first; 503 with Retry-After where all are used",
  ],
  [
    "fetches of apps that one host makes at a time; of one account",
    `${count(APP_FETCH_CONNECTIONS_MAX)}; ${count(appFetchesOfAccountMax())}`,
    "they wait; the more an account has, the more it leaves to the others",
  ],
  [
    "agents of one app that are open in a process",
    "(`ulimit -n` − 160) / 2",
    "one with nothing to do gives way; 503 with Retry-After where all work",
  ],
  [
    "memory of an app's process: its JavaScript heap; all of it",
    `${count(APP_HEAP_MB_MAX)} MiB; ${count(APP_RESIDENT_MB_MAX)} MiB`,
    "the process ends, and the caller hears which bound it was",
  ],
  [
    "lines that the apps of an account have printed; lines in a second, of one app; of the account",
    `${bytes(APP_LOGS_OF_ACCOUNT_BYTES_MAX / 2)} to ${bytes(APP_LOGS_OF_ACCOUNT_BYTES_MAX)} for each host of its agents; ${count(APP_LOG_LINES_A_SECOND_MAX)}; ${count(APP_LOG_LINES_OF_ACCOUNT_MAX)}`,
    "the oldest are dropped, whichever host printed them; a reader whose last line was dropped gets a warning; the log shows how many lines exceeded the rate",
  ],
  [
    "what waits for one reader of a socket",
    `${bytes(SOCKET_WAITING_BYTES_MAX)}, then as much again with the latest state alone`,
    "closed with 1013",
  ],
  [
    "frames that agents' clients have not read or agents have not handled, of one account in one gateway",
    `${bytes(SOCKETS_UNREAD_BYTES_MAX)}; a frame for several sockets counts one time`,
    "the client that stopped reading first is cut off; a client that reads is closed with 1013",
  ],
];

export const WEBHOOKS: readonly LimitRow[] = [
  [
    "body of a webhook; events that wait for one agent; their requests, with those of the log",
    `${bytes(WEBHOOK_BODY_BYTES_MAX)}; ${count(EVENTS_WAITING_MAX)}; ${bytes(EVENT_ROWS_BYTES_MAX)}`,
    "413; 429 with Retry-After",
  ],
  ["fields of a webhook that is a form", count(FORM_FIELDS_MAX), "400"],
  [
    "time for which an event's id is remembered",
    `${time(EVENT_IDS_KEPT_MS)}`,
    "the same id counts as a new event",
  ],
  [
    "outgoing webhooks that have not arrived, of one agent; in progress, of one agent; of an account",
    `${count(OUTGOING_WAITING_MAX)}; ${count(OUTGOING_AT_ONCE_MAX)}; ${count(OUTGOING_PLACES_MAX)}`,
    "`this.webhook` throws; they wait; they wait, and the account's agents take turns",
  ],
  [
    "ended outgoing webhooks that an agent's log keeps; how long one is tried",
    `the last ${count(OUTGOING_KEPT_MAX)}, for ${time(OUTGOING_KEPT_MS)} after their end; ${time(OUTGOING_AGE_MS_MAX)}`,
    "the oldest are deleted; it has failed",
  ],
];
