/** Refuses requests that would store data while the disk is full. Reads, deletes and rendering continue. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";

const WRITING_METHODS: readonly string[] = ["POST", "PUT", "PATCH"];
/** POST requests that store nothing. */
const RENDERING = /^\/v4\/accounts\/[^/]+\/browser-rendering\/(?!crawl)/;
const LFS_READING = /\/info\/lfs\/objects\/batch$/;

/** Refuses with `storage_full` if the path stores data (`isStoring`) and the disk is full (`isFull`). */
export function refuseWhenFull(
  isFull: () => boolean,
  isStoring: (path: string) => boolean = storesByPath,
): RequestHandler {
  return ({ method, path }, _response, next) => {
    if (!WRITING_METHODS.includes(method) || !isStoring(path) || !isFull()) next();
    else next(new ActorError("storage_full", TEXT));
  };
}

const TEXT = "Cannot store more: the disk of this instance is full; reads and deletes still work";

/**
 * Returns whether requests to the path store much data. Sign-in, OAuth tokens and revocations store little, and
 * people need them to free space.
 */
function storesByPath(path: string): boolean {
  if (path.startsWith("/git/")) {
    return !path.endsWith("/git-upload-pack") && !LFS_READING.test(path);
  }
  return path.startsWith("/v4/") && !RENDERING.test(path);
}
