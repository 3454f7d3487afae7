/** Decides which routes are refused while the disk is full. */

export const WRITING_METHODS: readonly string[] = ["POST", "PUT", "PATCH"];
/** POST requests that store nothing, unless they ask for a job. */
export const RENDERING = /^\/v4\/accounts\/[^/]+\/browser-(?:rendering|run)\/(?!crawl)/;

/** The part of a route that decides. */
interface Writing {
  method: string;
  path: string;
  isRevocation?: boolean;
  mayBeJob?: boolean;
}

/** Returns whether a full disk refuses some requests to the route. */
export function mayStoreMuch({ method, path, isRevocation, mayBeJob }: Writing): boolean {
  if (!WRITING_METHODS.includes(method.toUpperCase()) || isRevocation === true) return false;
  return mayBeJob === true || !RENDERING.test(`/v4${path}`);
}
