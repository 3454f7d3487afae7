/** REST routes that answer with bytes of a repository: single files, and archives of all of them. */
import type { Response } from "express";
import type { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import {
  ArchivePath,
  FileQuery,
  ObjectPath,
  RawPath,
  RepoPath,
} from "../../../schemas/repositories/http/artifacts.ts";
import { callerOf } from "../../http/locals.ts";
import { answerRanged, RANGED } from "../../http/ranged-answer.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import {
  ARCHIVE_FORMATS,
  ARCHIVE_VERSION,
  type ArchiveFormat,
  type Archives,
} from "../read/read-archive.ts";
import type { FoundFile } from "../read/read-repo.ts";
import { sniffType } from "../read/read-type.ts";
import type { Repositories } from "../repositories.ts";
import { addressOf, REPO } from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import type { ReadBudget } from "./read-budget.ts";

export const REPOSITORY_CONTENT_TAG: Tag = {
  name: "Repository content",
  description: "Refs, commits and files of a repository",
};

const BYTES = "application/octet-stream";
/** Some generators of clients know no media type with a wildcard, so a plain one is first. */
const ANY_BYTES = [BYTES, "*/*"];

const GET_BLOB = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/blob/{hash}`,
  id: "getBlob",
  summary: "Get a file's bytes by their id",
  permissions: ["artifacts.read"],
  parameters: ObjectPath,
  query: nothing,
  refusals: ["range_not_satisfiable"],
  answer: { mediaType: BYTES, description: "The bytes, with their id as ETag", also: RANGED },
} as const;

const GET_FILE = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/file`,
  id: "getFile",
  summary: "Get a file's bytes by ref and path",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: FileQuery,
  refusals: ["range_not_satisfiable", "object_too_large"],
  answer: { mediaType: BYTES, description: "The bytes, with their id as ETag", also: RANGED },
} as const;

const GET_RAW = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/raw/{ref}/{path}`,
  rest: "path",
  id: "getRaw",
  summary:
    "Get a file's bytes under its own content type; every kind of text, HTML included, is sent as plain text",
  permissions: ["artifacts.read"],
  parameters: RawPath,
  query: nothing,
  refusals: ["range_not_satisfiable", "object_too_large"],
  answer: { mediaType: ANY_BYTES, description: "The bytes, with their id as ETag", also: RANGED },
} as const;

const GET_ARCHIVE = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/archive/{archive}`,
  rest: "archive",
  id: "getArchive",
  summary: "Download all files of a commit as .tar.gz or .zip",
  permissions: ["artifacts.read"],
  parameters: ArchivePath,
  query: nothing,
  refusals: ["range_not_satisfiable", "object_too_large", "conflict"],
  answer: {
    mediaType: ANY_BYTES,
    description:
      "The archive, with the commit's id in its ETag. Files stay as they are stored: no expansion of `$Format:…$` or `$Id$`, no other line ends or encoding",
    also: RANGED,
  },
} as const;

export interface ContentParts {
  repositories: Repositories;
  /** Limits the bytes that responses hold in memory until clients have received them. */
  held: ReadBudget;
}

/** The REST routes that answer with bytes. */
export function artifactFileRoutes(parts: ContentParts & { archives: Archives }): Route[] {
  return [
    defineRoute({ ...GET_BLOB, handle: blob(parts) }),
    defineRoute({ ...GET_FILE, handle: file(parts) }),
    defineRoute({ ...GET_RAW, handle: raw(parts) }),
    defineRoute({ ...GET_ARCHIVE, handle: archive(parts) }),
  ];
}

function blob({ repositories, held }: ContentParts) {
  return async (
    { parameters, signal }: RouteRequest<z.output<typeof ObjectPath>>,
    response: Response,
  ) => {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = (await reader.blob(parameters.hash)) ?? notFound("Blob");
    await sendFile(held, found, { response, signal, typeOf: async () => BYTES });
  };
}

function file(parts: ContentParts) {
  return ({ query, ...asked }: RouteRequest<RepoPath, FileQuery>, response: Response) =>
    sendFileAt(parts, asked, query, { response, typeOf: async () => BYTES });
}

function raw(parts: ContentParts) {
  return ({ parameters, ...asked }: RouteRequest<z.output<typeof RawPath>>, response: Response) => {
    const { ref, path, ...repo } = parameters;
    // The file comes from a user, so a browser must not run it as a page of this server.
    const policy = "default-src 'none'; sandbox; frame-ancestors 'none'";
    response.set("Content-Security-Policy", policy);
    const typeOf: TypeOf = async (content) => sniffType(await content());
    const place = { ref, path };
    return sendFileAt(parts, { ...asked, parameters: repo }, place, { response, typeOf });
  };
}

function archive({ repositories, archives }: ContentParts & { archives: Archives }) {
  return async (
    { parameters, signal }: RouteRequest<z.output<typeof ArchivePath>>,
    response: Response,
  ) => {
    const [, ref = "", format = ""] = /^(.+)\.(tar\.gz|zip)$/s.exec(parameters.archive) ?? [];
    // The schema of the path accepts no other format.
    const known = format as ArchiveFormat;
    const repo = await repositories.open(addressOf(parameters), signal);
    const id = await repositories.readerOf(repo, signal).resolve(ref);
    if (id === undefined) return notFound("Ref");
    await using made = await archives.get(repo, { commit: id, format: known });
    const name = `${repo.address.name}-${id.slice(0, 12)}.${known}`;
    response.set("Content-Disposition", `attachment; filename="${name}"`);
    const named = {
      tag: `${id}-${ARCHIVE_VERSION}.${known}`,
      bytes: made.bytes,
      type: ARCHIVE_FORMATS[known],
      read: made.read,
    };
    await answerRanged(response.req, response, named, signal);
  };
}

/** Returns the media type of a file. Reads the content only if the type depends on it. */
type TypeOf = (content: () => Promise<Buffer>) => Promise<string>;

interface SentFile {
  response: Response;
  signal: AbortSignal;
  typeOf: TypeOf;
}

async function sendFileAt(
  { repositories, held }: ContentParts,
  { parameters, signal }: Pick<RouteRequest<RepoPath>, "parameters" | "signal">,
  { ref, path }: FileQuery,
  sent: Omit<SentFile, "signal">,
) {
  const reader = await repositories.reader(addressOf(parameters), signal);
  const { response } = sent;
  const hold = (bytes: number) => held.hold(bytes, callerOf(response).accountId, response);
  const found = (await reader.file(ref, path, hold)) ?? notFound("File");
  await sendFile(held, found, { ...sent, signal });
}

/** Sends a file. Its bytes count as held in memory until the client has received them. */
async function sendFile(
  held: ReadBudget,
  found: FoundFile,
  { response, signal, typeOf }: SentFile,
): Promise<void> {
  held.hold(found.bytes, callerOf(response).accountId, response);
  let content: Promise<Buffer> | undefined;
  const read = () => {
    content ??= found.content();
    return content;
  };
  const named = {
    tag: found.id,
    bytes: found.bytes,
    type: await typeOf(read),
    read: async function* (start: number, end: number) {
      yield (await read()).subarray(start, end + 1);
    },
  };
  await answerRanged(response.req, response, named, signal);
}

export function notFound(what: string): never {
  throw new ActorError("not_found", `${what} not found`);
}
