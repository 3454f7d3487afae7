/** The documented limits of requests, accounts, rendering and crawls. */
import { INVITATION_MS } from "../../actors/account/account/members.ts";
import {
  GUESSES_KEPT_MS,
  GUESSES_PER_SOURCE_COUNTED,
  SOURCE_GUESSES_FREE,
  SOURCE_PAUSE_MS,
  SOURCE_PAUSE_MS_MAX,
  STRANGER_GUESSES_FREE,
  STRANGER_PAUSE_MS,
  STRANGER_PAUSE_MS_MAX,
} from "../../actors/account/login-guard/login-guard.ts";
import { CRAWL_SITEMAPS_MAX } from "../../actors/crawl/crawl-job/discovery/sitemaps.ts";
import { JOB_JSON_TASKS_MAX } from "../../actors/crawl/crawl-job/extractions.ts";
import { TURNS_STARTED_MAX } from "../../actors/crawl/site/host-capacity.ts";
import { lookupsMax, lookupsOfOwnerMax } from "../../actors/egress/lookup-slots.ts";
import { EGRESS_RESOLVE_MS } from "../../actors/egress/resolver.ts";
import {
  AUTHENTICATION_FAILURES_MAX,
  AUTHENTICATION_WAITING_MAX,
  AUTHENTICATION_WINDOW_MS,
  SLOWED_LOOKUPS_MAX,
} from "../../gateway/account/failed-authentications.ts";
import {
  LOGINS_PER_ADDRESS_MAX,
  SIGNUPS_PER_ADDRESS_MAX,
} from "../../gateway/account/pages/sign-in.ts";
import { SOCKETS_MAX, socketsOfAccountMax } from "../../gateway/http/socket-places.ts";
import {
  ACCOUNTS_PER_USER_MAX,
  LOGIN_WINDOW_MS,
  MEMBERS_PER_ACCOUNT_MAX,
  REVOCATIONS_PER_WINDOW,
  SESSION_MS,
  SESSIONS_PER_USER_MAX,
} from "../../schemas/account/limits.ts";
import { OUTGOING_WAITING_MAX } from "../../schemas/apps/limits.ts";
import {
  CRAWL_ANSWER_BYTES_MAX,
  CRAWL_BODY_BYTES_MAX,
  CRAWL_DELAY_MS,
  CRAWL_HOSTS_MAX,
  CRAWL_KEPT_MS,
  CRAWL_MS_MAX,
  CRAWL_PAGES_MAX,
  CRAWL_READS_MAX,
  CRAWL_READS_OF_ACCOUNT_MAX,
  CRAWL_REDIRECTS_MAX,
  CRAWL_REQUEST_BYTES_MAX,
  CRAWLS_KEPT_MAX,
  CRAWLS_RUNNING_MAX,
  EVENT_STREAMS_MAX,
  EVENT_STREAMS_OF_ACCOUNT_MAX,
  HOST_REQUESTS_IN_FLIGHT_MAX,
  PAGE_LINKS_MAX,
} from "../../schemas/crawl/limits.ts";
import {
  BODIES_BYTES_MAX,
  BODY_STALL_MS,
  BROWSER_SECONDS_PER_DAY,
  CDP_MESSAGE_BYTES_MAX,
  EGRESS_BYTES_MAX,
  GOTO_TIMEOUT_MS_MAX,
  JSON_BODY_BYTES_MAX,
  LANE_TASKS_MAX,
  PDF_BYTES_MAX,
  PRINT_TIMEOUT_MS_MAX,
  RENDER_BODY_BYTES_MAX,
  REQUEST_WINDOW_MS,
  REQUESTS_PER_WINDOW,
  STATE_BYTES_MAX,
  TASK_RUN_MS_MAX,
  TOKENS_PER_ACCOUNT_MAX,
  WAIT_TIMEOUT_MS_MAX,
  WORKER_ABSENT_MS,
} from "../../schemas/limits.ts";
import {
  BYTES_ACCOUNT_SHARE,
  SMALL_BODIES_BYTES_MAX,
  SMALL_BODY_BYTES_MAX,
} from "../../schemas/memory-limits.ts";
import {
  DEVTOOLS_ATTACHED_MAX,
  DEVTOOLS_BYTES_MAX,
  DEVTOOLS_CLIENTS_MAX,
  DEVTOOLS_COMMANDS_MAX,
  DEVTOOLS_ENDED_KEPT,
  DEVTOOLS_KEEP_ALIVE_MS,
  DEVTOOLS_KEEP_ALIVE_MS_MAX,
  DEVTOOLS_MEMORY_BYTES_MAX,
  DEVTOOLS_MESSAGE_BYTES_MAX,
  DEVTOOLS_SESSION_MS_MAX,
  DEVTOOLS_SESSIONS_KEPT_FREE,
  DEVTOOLS_SESSIONS_MAX,
  DEVTOOLS_SESSIONS_PER_WORKER_MAX,
  DEVTOOLS_STREAMS_MAX,
  DEVTOOLS_UNREAD_BYTES_MAX,
  DEVTOOLS_VIEWERS_MAX,
  LIVE_VIEW_MS,
  LIVE_VIEW_MS_MAX,
  LIVE_VIEWS_MAX,
} from "../../schemas/rendering/devtools-limits.ts";
import {
  ACCESSIBILITY_NODES_MAX,
  BROWSER_TIME_CHECK_MS,
  FILE_NAME_CHARS_MAX,
  FILES_MAX,
  JOINED_PDF_BYTES_MAX,
  KEYWORDS_MAX,
  METADATA_CHARS_MAX,
  PAGES_PER_COMPUTING_PAGE,
  RENDER_CACHE_BYTES_MAX,
  RENDER_CACHE_SECONDS,
  RENDER_CACHE_SECONDS_MAX,
  RENDER_JOB_KEPT_MS,
  RENDER_JOBS_ACCOUNT_SHARE,
  RENDER_JOBS_AT_ONCE_MAX,
  RENDER_JOBS_KEPT_MAX,
  RENDER_JOBS_STORE_BYTES_MAX,
  RENDER_JOBS_WAITING_MAX,
  RENDERER_MEMORY_BYTES_MAX,
  RENDERER_TRIES_MAX,
  RESULT_BYTES_MAX,
  SCRAPE_SELECTORS_MAX,
  SCREENSHOT_BYTES_MAX,
  SCREENSHOT_PIXELS_MAX,
  SCREENSHOT_SIDE_PX_MAX,
  SOURCES_MAX,
  TALL_PICTURE_PIXELS_MAX,
  TALL_PICTURE_PX_MAX,
} from "../../schemas/rendering/limits.ts";
import { bytes, count, type LimitRow, time } from "./figures.ts";

/** Formats a share of a limit. */
const of = (share: number) => `${count(100 * share)} %`;

export const REQUESTS_AND_ACCOUNTS: readonly LimitRow[] = [
  [
    "requests with tokens of an account; the same for the code of its apps, and for each person in the console",
    `${count(REQUESTS_PER_WINDOW)} in ${time(REQUEST_WINDOW_MS)} ([settable](configuration.md))`,
    `429 with Retry-After; \`RateLimit\` headers show the remaining number`,
  ],
  [
    "refreshes of all OAuth clients of an account that have a secret; of one person's programs, such as the command line, at clients without",
    `${count(REQUESTS_PER_WINDOW)} in ${time(REQUEST_WINDOW_MS)}, by the same setting`,
    "429 with Retry-After, as an OAuth error; revocations are not counted",
  ],
  [
    "requests of one token or browser session past that limit that take access away, such as deleting a token",
    `${count(REVOCATIONS_PER_WINDOW)} in ${time(REQUEST_WINDOW_MS)}`,
    "429 with Retry-After",
  ],
  [
    "API tokens of an account",
    `${count(TOKENS_PER_ACCOUNT_MAX)}`,
    "a token that has ended is deleted; 409 if none has",
  ],
  [
    "members and invitations of an account; age of an invitation; accounts of a person",
    `${count(MEMBERS_PER_ACCOUNT_MAX)}; ${time(INVITATION_MS)}; ${count(ACCOUNTS_PER_USER_MAX)}`,
    "409; expired; the invitation is refused",
  ],
  [
    "sessions of a person; age of a session",
    `${count(SESSIONS_PER_USER_MAX)}; ${time(SESSION_MS)}`,
    "the oldest ends; the person signs in again",
  ],
  [
    "a body that carries only a few fields; all larger bodies that a gateway reads or uses at a time",
    `${bytes(JSON_BODY_BYTES_MAX)}; ${bytes(BODIES_BYTES_MAX)}, and ${of(BYTES_ACCOUNT_SHARE)} for one account`,
    "413; 503 with Retry-After",
  ],
  [
    `bodies up to ${bytes(SMALL_BODY_BYTES_MAX)} that a gateway holds at a time, for each of the limits of larger ones`,
    `${bytes(SMALL_BODIES_BYTES_MAX)}, and the same shares; past it, the room of larger ones`,
    "503 with Retry-After; 429 for events",
  ],
  ["time without a byte of a request's body", `${time(BODY_STALL_MS)}`, "the connection is closed"],
  [
    "wrong passwords from one address; new users from one address, ten times as many from a /48 of IPv6",
    `${count(LOGINS_PER_ADDRESS_MAX)}; ${count(SIGNUPS_PER_ADDRESS_MAX)} in ${time(LOGIN_WINDOW_MS)}`,
    "429",
  ],
  [
    "wrong passwords for one e-mail address, from one network or one known browser",
    `${count(SOURCE_GUESSES_FREE)}`,
    `429 for ${time(SOURCE_PAUSE_MS)}, doubled with each up to ${time(SOURCE_PAUSE_MS_MAX)}`,
  ],
  [
    `wrong passwords for one e-mail address from all networks, at most ${count(GUESSES_PER_SOURCE_COUNTED)} counted for each`,
    `${count(STRANGER_GUESSES_FREE)} in ${time(GUESSES_KEPT_MS)}`,
    `429 for ${time(STRANGER_PAUSE_MS)}, doubled up to ${time(STRANGER_PAUSE_MS_MAX)}; not in browsers where that person signed in before`,
  ],
  [
    "wrong secrets for one OAuth client, API token or grant from one address",
    `${count(AUTHENTICATION_FAILURES_MAX)} in ${time(AUTHENTICATION_WINDOW_MS)}`,
    "429 for that identity only; a secret that this gateway knows to be good always passes",
  ],
  [
    "unknown tokens and clients from one address, at the REST API, Git and OAuth each",
    `${count(AUTHENTICATION_FAILURES_MAX)} in ${time(AUTHENTICATION_WINDOW_MS)}`,
    `429 with Retry-After for each further unknown one; good ones pass, looked up ${count(SLOWED_LOOKUPS_MAX)} at a time, ${count(AUTHENTICATION_WAITING_MAX)} waiting`,
  ],
  [
    "event streams of an account; of a gateway",
    `${count(EVENT_STREAMS_OF_ACCOUNT_MAX)}, fewer while other accounts have many; ${count(EVENT_STREAMS_MAX)}`,
    "429; 503 with Retry-After",
  ],
  [
    "WebSockets of a gateway, of agents and DevTools clients; of one account",
    `${count(SOCKETS_MAX)}; ${count(socketsOfAccountMax(SOCKETS_MAX))}, fewer while other accounts have many`,
    "503 with Retry-After",
  ],
  [
    "an actor's state in one value",
    `${bytes(STATE_BYTES_MAX)}`,
    "the change is refused; larger kinds use rows",
  ],
];

export const RENDERING: readonly LimitRow[] = [
  [
    "browser time of an account",
    `${time(BROWSER_SECONDS_PER_DAY * 1_000)} a day (UTC, [settable](configuration.md)), checked when a page is queued, when it starts, and every ${time(BROWSER_TIME_CHECK_MS)} while it loads`,
    "429 with Retry-After until midnight UTC",
  ],
  ["body of a request for a page, with its files", `${bytes(RENDER_BODY_BYTES_MAX)}`, "413"],
  [
    "files of a page; characters of the path of one",
    `${count(FILES_MAX)}; ${count(FILE_NAME_CHARS_MAX)}`,
    "400",
  ],
  [
    "sources of one PDF; bytes of their PDFs",
    `${count(SOURCES_MAX)}; ${bytes(JOINED_PDF_BYTES_MAX)}`,
    "400; 422",
  ],
  [
    "characters of a title, an author, a subject or all keywords of a PDF; keywords",
    `${count(METADATA_CHARS_MAX)}; ${count(KEYWORDS_MAX)}`,
    "400; longer ones of a page are cut",
  ],
  [
    "a picture; a png of a full page",
    `${count(SCREENSHOT_SIDE_PX_MAX)} device pixels a side, ${count(SCREENSHOT_PIXELS_MAX)} in all, ${bytes(SCREENSHOT_BYTES_MAX)}; ${count(TALL_PICTURE_PX_MAX)} down, ${count(TALL_PICTURE_PIXELS_MAX)} in all`,
    "400 if the request says so, else 422",
  ],
  [
    "an answer that is kept for the same request; how long",
    `${bytes(RENDER_CACHE_BYTES_MAX)}; ${time(RENDER_CACHE_SECONDS * 1_000)}, or \`cacheTTL\`, up to ${time(RENDER_CACHE_SECONDS_MAX * 1_000)}`,
    "it is rendered anew",
  ],
  [
    "memory of the renderer of one page; tries of a page that crashes it",
    `${bytes(RENDERER_MEMORY_BYTES_MAX)}; ${count(RENDERER_TRIES_MAX)}`,
    "422, without another try",
  ],
  ["a PDF", `${bytes(PDF_BYTES_MAX)}`, "422"],
  [
    "jobs of an account that have not ended; that are kept",
    `${count(RENDER_JOBS_WAITING_MAX)}, ${count(RENDER_JOBS_AT_ONCE_MAX)} of them in the lane of pages; ${count(RENDER_JOBS_KEPT_MAX)}`,
    "429; 409",
  ],
  [
    "requests and results of an account's jobs; of all accounts",
    `${bytes(RENDER_JOBS_STORE_BYTES_MAX * RENDER_JOBS_ACCOUNT_SHARE)}; ${bytes(RENDER_JOBS_STORE_BYTES_MAX)}; on a larger disk more and on a smaller one less ([settable](configuration.md)), and an account a quarter of it`,
    "409, or the job fails with 409; 507",
  ],
  [
    "a job that waits; a result after the end of its job",
    `${time(RENDER_JOB_KEPT_MS)}; ${time(RENDER_JOB_KEPT_MS)}`,
    "it fails with 504; 404",
  ],
  [
    "webhooks of an account's jobs that have not arrived",
    `${count(OUTGOING_WAITING_MAX)}`,
    "409 for a job with a webhook",
  ],
  [
    "DevTools sessions of an account; of a browser worker",
    `${count(DEVTOOLS_SESSIONS_MAX)} at a time; as many as may take half of the machine's memory, ${count(DEVTOOLS_SESSIONS_PER_WORKER_MAX)} at most; an account leaves ${count(DEVTOOLS_SESSIONS_KEPT_FREE)} of them to others, if there are several`,
    "409; another worker takes it, else 503",
  ],
  [
    "a DevTools session; the time that it stays without a client",
    `${time(DEVTOOLS_SESSION_MS_MAX)}; ${time(DEVTOOLS_KEEP_ALIVE_MS)}, or \`keep_alive\`, up to ${time(DEVTOOLS_KEEP_ALIVE_MS_MAX)}`,
    "it ends",
  ],
  [
    "memory of a session's browser; bytes that its pages move",
    `${bytes(DEVTOOLS_MEMORY_BYTES_MAX)}; ${bytes(DEVTOOLS_BYTES_MAX)}`,
    "the session ends; its connections are cut",
  ],
  [
    "clients of a session; its viewers; targets that a client is attached to; its commands that wait; its open streams",
    `${count(DEVTOOLS_CLIENTS_MAX)}; ${count(DEVTOOLS_VIEWERS_MAX)}; ${count(DEVTOOLS_ATTACHED_MAX)}; ${count(DEVTOOLS_COMMANDS_MAX)}; ${count(DEVTOOLS_STREAMS_MAX)}`,
    "409; 409; the client is cut off; the command is refused; likewise",
  ],
  [
    "a message of a client; of the browser",
    `${bytes(DEVTOOLS_MESSAGE_BYTES_MAX)}; ${bytes(CDP_MESSAGE_BYTES_MAX)}`,
    "the socket closes with 1009; the command gets an error",
  ],
  [
    "bytes that the DevTools clients of an account have not read, in one gateway",
    `${bytes(DEVTOOLS_UNREAD_BYTES_MAX)}`,
    "the client that stopped reading first is cut off",
  ],
  [
    "the address of a live view; valid ones of a session; ended sessions that can be read",
    `${time(LIVE_VIEW_MS)}, up to ${time(LIVE_VIEW_MS_MAX)}; ${count(LIVE_VIEWS_MAX)}; ${count(DEVTOOLS_ENDED_KEPT)}`,
    "404",
  ],
  [
    "a result as text: HTML, Markdown, links, elements, a tree",
    `${bytes(RESULT_BYTES_MAX)}`,
    "422: nothing is cut",
  ],
  [
    "selectors of one scrape; elements and texts of a page whose accessibility tree is read",
    `${count(SCRAPE_SELECTORS_MAX)}; ${count(ACCESSIBILITY_NODES_MAX)}`,
    "400; 422",
  ],
  [
    "a navigation; a wait; printing",
    `${time(GOTO_TIMEOUT_MS_MAX)}; ${time(WAIT_TIMEOUT_MS_MAX)}; ${time(PRINT_TIMEOUT_MS_MAX)}`,
    "422",
  ],
  ["bytes that a page may load", `${bytes(EGRESS_BYTES_MAX)}`, "its connections are cut"],
  [
    "names that a process of the service resolves at a time; for one account",
    `${count(lookupsMax("64"))}; ${count(lookupsOfOwnerMax(lookupsMax("64")))}`,
    `they wait, and fail after ${time(EGRESS_RESOLVE_MS)}; a name counts until its name servers answer or time out`,
  ],
  [
    "tasks of a lane, waiting and running; pages of one account",
    `${count(LANE_TASKS_MAX)} each`,
    "429 at once; Retry-After is the last queue time",
  ],
  [
    "a page that waits for a browser worker: while one runs; while none runs",
    `${time(TASK_RUN_MS_MAX)}; ${time(WORKER_ABSENT_MS)}`,
    "503 with Retry-After",
  ],
  [
    "pages that a browser worker renders at a time for one account; for all",
    `twice the processors, at most 6; ${count(PAGES_PER_COMPUTING_PAGE)} times as many`,
    `they wait, and accounts are served in turn; \`X-Queued-Ms\` says how long`,
  ],
];

export const CRAWLS: readonly LimitRow[] = [
  [
    "pages of a crawl; its time; its results",
    `${count(CRAWL_PAGES_MAX)}; ${time(CRAWL_MS_MAX)}; ${time(CRAWL_KEPT_MS)} after its end`,
    "400; cancelled; deleted",
  ],
  [
    "crawls of an account that run; that are kept",
    `${count(CRAWLS_RUNNING_MAX)}; ${count(CRAWLS_KEPT_MAX)}`,
    "409",
  ],
  [
    "bytes of all results of an account's crawls, after compression, while they are kept",
    "a quarter of the [store of crawled pages](configuration.md): 2 GiB of 8 GiB ([settable](configuration.md))",
    "507 for a new crawl until results are removed; a running one ends as `cancelled_due_to_limits` and keeps its records",
  ],
  [
    "hosts at which one crawl requests at once; its pages for which models are asked at once",
    `${count(CRAWL_HOSTS_MAX)}, half as many as the next older running crawl of the account, at least 1; ${count(JOB_JSON_TASKS_MAX)}`,
    "they wait",
  ],
  [
    "requests of all crawls to one host, without what rendered pages load themselves",
    `one in ${time(CRAWL_DELAY_MS)}, or as its \`Crawl-delay\` says; ${count(TURNS_STARTED_MAX)} pages at once, ${count(HOST_REQUESTS_IN_FLIGHT_MAX)} without a delay`,
    "they wait",
  ],
  [
    "body of a crawl's request; a page's body",
    `${bytes(CRAWL_REQUEST_BYTES_MAX)}; ${bytes(CRAWL_BODY_BYTES_MAX)}`,
    `413; cut, and marked \`truncated\``,
  ],
  [
    "redirects of a page; sitemaps of a crawl; links that are kept of a page",
    `${count(CRAWL_REDIRECTS_MAX)}; ${count(CRAWL_SITEMAPS_MAX)}; ${count(PAGE_LINKS_MAX)}`,
    `the record is \`errored\`; the rest is ignored; the rest is ignored`,
  ],
  [
    "an answer with records; answers that a gateway writes at once; those of one account",
    `${bytes(CRAWL_ANSWER_BYTES_MAX)}, or one record; ${count(CRAWL_READS_MAX)}; ${count(CRAWL_READS_OF_ACCOUNT_MAX)}, fewer while other accounts have many`,
    `a \`cursor\` continues; 503 with Retry-After; 429 or 503`,
  ],
];
