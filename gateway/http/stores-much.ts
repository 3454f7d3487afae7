/** Decides which requests of the REST API a full disk refuses. The declarations of routes use the same rule. */

export const WRITING_METHODS: readonly string[] = ["POST", "PUT", "PATCH"];
/** POST requests that store nothing, unless they ask for a job. */
const RENDERING = /^\/v4\/accounts\/[^/]+\/browser-(?:rendering|run)\/(?!crawl)/;

/**
 * Returns whether a request stores much data. A job stores its request and its result. Sign-in, OAuth tokens and
 * revocations store little, and people need them to free space.
 */
export function storesMuch({
  method,
  path,
  isRevocation = false,
  isJob = false,
}: {
  method: string;
  path: string;
  isRevocation: boolean | undefined;
  isJob: boolean | undefined;
}): boolean {
  if (!WRITING_METHODS.includes(method) || isRevocation) return false;
  return path.startsWith("/v4/") && (isJob || !RENDERING.test(path));
}
