/** Refuses requests that would store data while the disk is full. Reads, deletes, revocations and rendering continue. */
import type { Request, RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";
import { prefersAsync } from "../prefer.ts";
import type { Route } from "../route.ts";
import { storesMuch, WRITING_METHODS } from "../stores-much.ts";

const LFS_READING = /\/info\/lfs\/objects\/batch$/;

/** Refuses with `storage_full` if the request stores data (`isStoring`) and the disk is full (`isFull`). */
export function refuseWhenFull(
  isFull: () => boolean,
  isStoring: (request: Request) => boolean = storesMuchExcept([]),
): RequestHandler {
  return (request, _response, next) => {
    if (!isFull() || !isStoring(request)) next();
    else next(new ActorError("storage_full", beginsPush(request) ? TEXT_OF_GIT : TEXT));
  };
}

export const isWriting = ({ method }: Request) => WRITING_METHODS.includes(method);

/**
 * Returns whether git begins a push by this request. Git shows the text of a refusal of this request. It shows no text
 * if the server refuses the later request that sends the pack.
 */
const beginsPush = ({ path, query }: Request) =>
  path.startsWith("/git/") && path.endsWith("/info/refs") && query.service === "git-receive-pack";

const TEXT =
  "Cannot store more: the disk of this instance is full; reads, deletes and revocations still work";
/** A push is refused also if it only deletes refs, because its first request does not say so. */
const TEXT_OF_GIT =
  "Cannot store more: the disk of this instance is full; fetches still work. Delete repositories by REST";

/**
 * Returns the function that decides whether a request stores much data, except a revocation by one of these routes. A
 * leaked secret must be replaced, and a member lose a role, also on a full disk.
 */
export function storesMuchExcept(
  routes: readonly Pick<Route, "isRevocation" | "method" | "path">[],
): (request: Request) => boolean {
  const revocations = routes
    .filter(({ isRevocation }) => isRevocation)
    .map(({ method, path }) => {
      const pattern = new RegExp(`^/v4${path.replaceAll(/\{\w+\}/g, "[^/]+")}$`);
      return { method: method.toUpperCase(), pattern };
    });
  const isRevocation = ({ method, path }: Request) =>
    revocations.some((one) => method === one.method && one.pattern.test(path));
  return (request) => {
    const { method, path, headers } = request;
    if (path.startsWith("/git/")) return storesByGit(request);
    const isJob = prefersAsync(headers.prefer);
    return storesMuch({ method, path, isRevocation: isRevocation(request), isJob });
  };
}

function storesByGit(request: Request): boolean {
  if (!isWriting(request)) return beginsPush(request);
  return !request.path.endsWith("/git-upload-pack") && !LFS_READING.test(request.path);
}
