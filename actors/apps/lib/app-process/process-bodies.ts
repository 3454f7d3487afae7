/** Converts requests and answers between the form of processes, with bodies as bytes, and the form of the bus. */
import {
  type AppAnswer,
  type AppRequest,
  inlineBytes,
} from "../../../../schemas/apps/app-exchange.ts";
import type { ProcessAnswer, ProcessRequest } from "../../../../schemas/apps/app-process.ts";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { readBody, writeBody } from "../app-bodies/body-blobs.ts";

export type BodyBlobs = Pick<BlobStore, "put" | "get" | "size" | "remove">;

/**
 * Reads a request's body; returns at once if the message contains it. A blob is not deleted: the call may be
 * repeated, and the blob expires by itself.
 */
export function readRequest(
  blobs: BodyBlobs,
  given: DeepReadonly<AppRequest>,
): ProcessRequest | Promise<ProcessRequest> {
  const { body, ...request } = given as AppRequest;
  if (body === undefined) return request;
  if ("blob" in body) return readBody(blobs, body).then((bytes) => ({ ...request, body: bytes }));
  return { ...request, body: inlineBytes(body) };
}

export async function readAnswer(
  blobs: BodyBlobs,
  { body, rest, ...answer }: AppAnswer,
): Promise<Omit<ProcessAnswer, "stream">> {
  if (body === undefined) return answer;
  return { ...answer, body: await readBody(blobs, body) };
}

/** Stores a body. `app` owns the blob, if one is needed: the blob is deleted with the app at the latest. */
export async function writeRequest(
  blobs: BodyBlobs,
  app: string,
  { body, ...request }: ProcessRequest,
): Promise<AppRequest> {
  return body === undefined ? request : { ...request, body: await writeBody(blobs, app, body) };
}

export async function writeAnswer(
  blobs: BodyBlobs,
  app: string,
  { body, stream, lent, ...answer }: ProcessAnswer,
): Promise<AppAnswer> {
  return body === undefined ? answer : { ...answer, body: await writeBody(blobs, app, body) };
}
