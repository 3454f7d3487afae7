/** All refusals that a client, an actor or a worker can receive: name, public code and HTTP status. */

/**
 * Each refusal by its name: the HTTP status, the stable public code, and the meaning, which the OpenAPI document
 * shows. The codes 5000–5011 and 6000–6003 report events in the browser, as in the public API.
 */
export const ERRORS = {
  invalid_request: {
    status: 400,
    code: 1001,
    meaning: "A field, a query parameter or a path segment is wrong",
  },
  unsupported_media_type: {
    status: 415,
    code: 1002,
    meaning: "The body has a type this route does not read",
  },
  body_too_large: {
    status: 413,
    code: 1003,
    meaning: "The body is larger than this route accepts",
  },
  not_found: { status: 404, code: 1004, meaning: "Unknown here, or another account's" },
  method_not_allowed: {
    status: 405,
    code: 1005,
    meaning: "The path exists, but not with this method",
  },
  conflict: { status: 409, code: 1006, meaning: "The present state does not allow it" },
  limit_reached: { status: 409, code: 1007, meaning: "As many exist as the limit allows" },
  crawl_disallowed: {
    status: 400,
    code: 1008,
    meaning: "The site's Content-Signal forbids the crawl as a whole",
  },
  internal_error: {
    status: 500,
    code: 2000,
    meaning: "A fault on our side; the log has it under the request's id",
  },
  rate_limited: {
    status: 429,
    code: 2001,
    meaning: "Too many requests; Retry-After says when to come back",
  },
  browser_time_exceeded: {
    status: 429,
    code: 2002,
    meaning: "The account's browser time of this day (UTC) is used up",
  },
  queue_full: { status: 429, code: 2003, meaning: "As much work waits as the queue holds" },
  busy: {
    status: 503,
    code: 2004,
    meaning: "An actor or a host has as much in flight as it accepts",
  },
  unavailable: { status: 503, code: 2005, meaning: "No actor or browser could answer in time" },
  deadline_exceeded: { status: 504, code: 2006, meaning: "The request's deadline passed" },
  cancelled: { status: 499, code: 2007, meaning: "The caller left before there was an answer" },
  storage_full: {
    status: 507,
    code: 2008,
    meaning: "The store, the account or the repository has no room for more",
  },
  app_broken: { status: 422, code: 11001, meaning: "The app's bundle does not start" },
  app_failed: { status: 500, code: 11002, meaning: "The app's own code failed; its log says how" },
  may_have_run: {
    status: 502,
    code: 11003,
    meaning: "The app's host was lost under the request, which may have had its effect",
  },
  unauthenticated: { status: 401, code: 10000, meaning: "No token, or an unknown one" },
  forbidden: {
    status: 403,
    code: 10001,
    meaning: "The token lacks the permission named in the message",
  },

  range_not_satisfiable: {
    status: 416,
    code: 1010,
    meaning: "The Range begins behind the end",
  },
  content_differs: {
    status: 422,
    code: 1011,
    meaning: "What came is not what was promised, by its size or its hash",
  },
  remote_auth_required: {
    status: 422,
    code: 10106,
    meaning: "The remote wants to know who asks: only public repositories can be imported",
  },
  import_in_progress: { status: 409, code: 10302, meaning: "The repository is being imported" },
  fork_in_progress: { status: 409, code: 10303, meaning: "The repository is being forked" },
  branch_moved: {
    status: 409,
    code: 10304,
    meaning: "The branch is not where the request expects it",
  },
  upstream_unavailable: { status: 502, code: 10401, meaning: "The remote does not answer" },
  object_too_large: {
    status: 413,
    code: 10402,
    meaning: "What is asked for is larger than one answer may be",
  },

  certificate_invalid: {
    status: 422,
    code: 5000,
    meaning: "The target's TLS certificate is not valid",
  },
  address_unreachable: {
    status: 422,
    code: 5001,
    meaning: "The target's address cannot be reached",
  },
  navigation_timed_out: {
    status: 422,
    code: 5002,
    meaning: "The navigation was aborted or timed out",
  },
  too_many_redirects: { status: 422, code: 5003, meaning: "The target redirects too often" },
  http2_failed: { status: 422, code: 5004, meaning: "The target broke the HTTP/2 protocol" },
  name_not_resolved: { status: 422, code: 5005, meaning: "The target's name cannot be resolved" },
  connection_closed: {
    status: 422,
    code: 5006,
    meaning: "The target closed or reset the connection",
  },
  response_failed: {
    status: 422,
    code: 5007,
    meaning:
      "The target answered an error status with an empty body, or one that failOnStatus names",
  },
  connection_refused: { status: 422, code: 5008, meaning: "The target refused the connection" },
  network_failed: { status: 422, code: 5009, meaning: "Another network error" },
  address_refused: {
    status: 422,
    code: 5010,
    meaning: "The address is not one this service fetches",
  },
  empty_response: { status: 422, code: 5011, meaning: "The target answered nothing" },
  transfer_too_large: {
    status: 422,
    code: 5012,
    meaning: "More bytes came from the targets than one task may move",
  },
  page_navigated_away: {
    status: 422,
    code: 6000,
    meaning: "The page left or was destroyed while it was used",
  },
  browser_crashed: {
    status: 422,
    code: 6001,
    meaning: "The page made its browser crash, at every try",
  },
  wait_timed_out: { status: 422, code: 6002, meaning: "What was waited for did not come in time" },
  page_not_printable: {
    status: 422,
    code: 6003,
    meaning: "The page or its result is too large, or it could not be printed",
  },
  element_not_found: {
    status: 422,
    code: 6004,
    meaning: "The page has no element that the selector matches, or none that takes room",
  },
  json_not_extracted: {
    status: 422,
    code: 6005,
    meaning: "No AI model gave an answer that fits the schema",
  },
} as const satisfies Record<string, { status: number; code: number; meaning: string }>;

export type ErrorCode = keyof typeof ERRORS;

/**
 * Details that a caller may see in addition to code and message. They are plain JSON. `retryAfterS` becomes the
 * header Retry-After.
 */
export interface ErrorDetails {
  retryAfterS?: number;
  /** The faults of an invalid request. Each has a JSON pointer and a message that describes valid values. */
  faults?: { pointer: string; message: string }[];
  /** Wall-clock milliseconds for which a browser was occupied by the refused work. */
  browserMs?: number;
  /** The limit of time or memory because of which the platform ended the process of an app, described in words. */
  bound?: string | undefined;
  /**
   * The error that an app's code threw. Only other code of the same app and the app's log receive it, never clients.
   */
  thrown?: { name: string; stack?: string | undefined };
}

/**
 * A refusal, to which the caller can react. It is not retried, except with the codes of `isPassing`. Its code,
 * message and details are sent over the bus.
 */
export class ActorError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message);
    this.name = "ActorError";
    this.code = code;
    this.details = details;
  }
}

/** Returns whether the error is temporary, so that a retry may succeed. */
export const isPassing = (error: unknown): boolean =>
  error instanceof ActorError && (error.code === "busy" || error.code === "unavailable");

/**
 * Codes after which it is unknown whether the call had its effect: the actor may have handled the call although the
 * caller received no reply.
 */
const UNKNOWN = new Set<ErrorCode>([
  "unavailable",
  "deadline_exceeded",
  "cancelled",
  "internal_error",
]);

/** Returns whether the call certainly had no effect. */
export const isRefusal = (error: unknown): error is ActorError =>
  error instanceof ActorError && !UNKNOWN.has(error.code);
