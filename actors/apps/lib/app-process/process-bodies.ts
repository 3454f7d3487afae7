/** Converts requests and answers between the form of processes, with bodies as bytes, and the form of the bus. */
import {
  type AppAnswer,
  type AppRequest,
  type Body,
  inlineBytes,
} from "../../../../schemas/apps/app-exchange.ts";
import type { ProcessAnswer, ProcessRequest } from "../../../../schemas/apps/app-process.ts";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { BlobStore } from "../../../runtime/store/blob-store.ts";
import { dropBlob, readBody, writeBody } from "../app-bodies/body-blobs.ts";

export type BodyBlobs = Pick<BlobStore, "put" | "get" | "size" | "remove">;

/**
 * Reads a request's body; returns at once if the message contains it. A blob is not deleted, because the call may be
 * repeated. The caller deletes it when the call has ended.
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

/** Reads an answer's body and deletes its blob, because nobody else reads it. */
export async function takeAnswer(
  blobs: BodyBlobs,
  { body, rest, ...answer }: AppAnswer,
): Promise<Omit<ProcessAnswer, "stream">> {
  if (body === undefined) return answer;
  try {
    return { ...answer, body: await readBody(blobs, body) };
  } finally {
    dropBody(blobs, body);
  }
}

/** Deletes the blob of a body that nobody reads any more. If this fails, the blob expires. */
export function dropBody(blobs: BodyBlobs, body: Body | undefined): void {
  if (body && "blob" in body) dropBlob(blobs, body.blob);
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
