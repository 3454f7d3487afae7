/** Refuses what would store more while the disk has no room. Reads, deletes and rendering go on. */
import type { RequestHandler } from "express";
import { ActorError } from "../../../schemas/errors.ts";

const WRITING_METHODS: readonly string[] = ["POST", "PUT", "PATCH"];
/** POST requests that answer with what they make and keep none of it. */
const RENDERING = /^\/v4\/accounts\/[^/]+\/browser-rendering\/(?!crawl)/;
const LFS_READING = /\/info\/lfs\/objects\/batch$/;

/** `isFull` is asked for each request that `isStoring` lets through to it. */
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

/** Signing in, tokens of OAuth and revocations store little, and are what people need to make room. */
function storesByPath(path: string): boolean {
  if (path.startsWith("/git/")) {
    return !path.endsWith("/git-upload-pack") && !LFS_READING.test(path);
  }
  return path.startsWith("/v4/") && !RENDERING.test(path);
}
