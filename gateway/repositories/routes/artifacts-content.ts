/**
 * What is in a repository: refs, history, directories, files, differences, archives; and commits made without a
 * clone.
 */
import { createReadStream } from "node:fs";
import type { Response } from "express";
import { z } from "zod";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import {
  READ_BYTES_MAX,
  SHOWN_OBJECT_FACTOR,
} from "../../../schemas/repositories/artifacts-limits.ts";
import { isProtected } from "../../../schemas/repositories/git-names.ts";
import { commitBodyBytes } from "../../../schemas/repositories/git-sizes.ts";
import {
  ArchivePath,
  type CommitFiles,
  commitFilesOf,
  DiffQuery,
  FileQuery,
  LogQuery,
  ObjectPath,
  RawPath,
  RefsQuery,
  RepoPath,
} from "../../../schemas/repositories/http/artifacts.ts";
import {
  CommittedFiles,
  WireCommit,
  WireDiff,
  WireRef,
  WireTreeEntry,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import { answerRanged, RANGED } from "../../http/ranged-answer.ts";
import { type Asked, defineRoute, type Route } from "../../http/route.ts";
import { ARCHIVE_FORMATS, type ArchiveFormat, Archives } from "../read/read-archive.ts";
import { readDiff } from "../read/read-diff.ts";
import type { FoundFile } from "../read/read-repo.ts";
import { sniffType } from "../read/read-type.ts";
import type { Repositories } from "../repositories.ts";
import { commitFiles } from "../write/commit-files.ts";
import { addressOf, pageInfo, questionOf, REPO, readCursor } from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { HeldBytes } from "./held-bytes.ts";

const BYTES = "application/octet-stream";

export function artifactContentRoutes(repositories: Repositories): Route[] {
  const { sizes } = repositories.parts;
  const archives = new Archives(repositories.parts, repositories.parts);
  const held = new HeldBytes(READ_BYTES_MAX);
  const shownTo = (response: Response) => (bytes: number) =>
    held.hold(SHOWN_OBJECT_FACTOR * bytes, response);
  const shared = { tag: "Repository content", wording: artifactsWording };
  const reading = {
    ...shared,
    method: "get" as const,
    permissions: ["artifacts.read" as const],
    parameters: RepoPath,
    query: nothing,
  };
  const file = (mediaType: string, description: string) => ({
    refusals: ["range_not_satisfiable" as const],
    answer: { mediaType, description, also: RANGED },
  });
  return [
    defineRoute({
      ...reading,
      path: `${REPO}/refs`,
      id: "listRefs",
      summary: "Branches, tags and notes, by name",
      query: RefsQuery,
      answer: { result: WireRef.array(), paged: "both" },
      handle: refs,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/log`,
      id: "getLog",
      summary: "The history of a ref by first parents, newest first; none in an empty repository",
      query: LogQuery,
      refusals: ["object_too_large"],
      answer: { result: WireCommit.array() },
      handle: log,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/commit/{hash}`,
      id: "getCommit",
      summary: "One commit",
      parameters: ObjectPath,
      refusals: ["object_too_large"],
      answer: { result: WireCommit },
      handle: commit,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/tree/{hash}`,
      id: "getTree",
      summary: "One directory",
      parameters: ObjectPath,
      refusals: ["object_too_large"],
      answer: { result: WireTreeEntry.array() },
      handle: tree,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/blob/{hash}`,
      id: "getBlob",
      summary: "A file's bytes by their id",
      parameters: ObjectPath,
      ...file(BYTES, "The bytes, with their id as ETag"),
      handle: blob,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/file`,
      id: "getFile",
      summary: "A file's bytes by ref and path",
      query: FileQuery,
      ...file(BYTES, "The bytes, with their id as ETag"),
      handle: ({ query, ...asked }: Asked<RepoPath, FileQuery>, response) =>
        fileAt(asked, query, response, async () => BYTES),
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/raw/{ref}/{path}`,
      rest: "path",
      id: "getRaw",
      summary: "A file's bytes as their own type; whatever is text, HTML too, as plain text",
      parameters: RawPath,
      ...file("*/*", "The bytes, with their id as ETag"),
      handle: raw,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/diff`,
      id: "getDiff",
      summary: "What is different in one commit from another",
      query: DiffQuery,
      answer: { result: WireDiff },
      handle: diff,
    }),
    defineRoute({
      ...reading,
      path: `${REPO}/archive/{archive}`,
      rest: "archive",
      id: "getArchive",
      summary: "All files of a commit, as .tar.gz or .zip",
      parameters: ArchivePath,
      refusals: ["range_not_satisfiable", "object_too_large", "conflict"],
      answer: {
        mediaType: "*/*",
        description: "The archive, with the commit's id in its ETag",
        also: RANGED,
      },
      handle: archive,
    }),
    defineRoute({
      ...shared,
      method: "post",
      path: `${REPO}/commits`,
      id: "commitFiles",
      summary: "Commit files to a branch without a clone: all of it, or nothing",
      permissions: ["artifacts.write"],
      parameters: RepoPath,
      query: nothing,
      body: { schema: commitFilesOf(sizes.fileBytes), bytesMax: commitBodyBytes(sizes) },
      refusals: [
        "branch_moved",
        "import_in_progress",
        "conflict",
        "storage_full",
        "object_too_large",
      ],
      answer: { result: CommittedFiles, status: 201 },
      handle: makeCommit,
    }),
  ];

  async function refs({ parameters, query, signal }: Asked<RepoPath, RefsQuery>) {
    const { prefix, limit } = query;
    const question = questionOf(parameters, prefix);
    const cursor = readCursor(query.cursor, question, z.string());
    const { manifest } = await repositories.open(addressOf(parameters), signal);
    const names = [...manifest.refs.keys()].filter((name) => name.startsWith(prefix)).sort();
    const after = cursor?.after;
    const from = after === undefined ? 0 : names.findIndex((name) => name > after);
    const shown = from < 0 ? [] : names.slice(from, from + limit);
    const last = from >= 0 && from + limit < names.length ? shown.at(-1) : undefined;
    const next = last === undefined ? undefined : { question, after: last };
    return {
      result: shown.map((name) => ({
        name,
        hash: manifest.refs.get(name) ?? "",
        is_default: name === manifest.head,
        is_protected: isProtected(manifest.protectedRefs, name),
      })),
      resultInfo: pageInfo({ limit, cursor }, { count: shown.length, total: names.length, next }),
    };
  }

  async function log({ parameters, query, signal }: Asked<RepoPath, LogQuery>, response: Response) {
    const reader = await repositories.reader(addressOf(parameters), signal);
    return { result: await reader.log(query.ref, query, shownTo(response)) };
  }

  async function commit(
    { parameters, signal }: Asked<z.output<typeof ObjectPath>>,
    response: Response,
  ) {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = await reader.commit(parameters.hash, shownTo(response));
    return { result: found ?? notFound("Commit") };
  }

  async function tree(
    { parameters, signal }: Asked<z.output<typeof ObjectPath>>,
    response: Response,
  ) {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = await reader.tree(parameters.hash, shownTo(response));
    return { result: found ?? notFound("Tree") };
  }

  async function blob(
    { parameters, signal }: Asked<z.output<typeof ObjectPath>>,
    response: Response,
  ) {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = (await reader.blob(parameters.hash)) ?? notFound("Blob");
    await sendFile(found, response, signal, async () => BYTES);
  }

  function raw({ parameters, ...asked }: Asked<z.output<typeof RawPath>>, response: Response) {
    const { ref, path, ...repo } = parameters;
    // Whatever it is, it is somebody's file and no page of ours.
    const policy = "default-src 'none'; sandbox; frame-ancestors 'none'";
    response.set("Content-Security-Policy", policy);
    return fileAt({ ...asked, parameters: repo }, { ref, path }, response, async (content) =>
      sniffType(await content()),
    );
  }

  async function fileAt(
    { parameters, signal }: Pick<Asked<RepoPath>, "parameters" | "signal">,
    { ref, path }: FileQuery,
    response: Response,
    typeOf: TypeOf,
  ) {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = (await reader.file(ref, path)) ?? notFound("File");
    await sendFile(found, response, signal, typeOf);
  }

  async function diff({ parameters, query, signal }: Asked<RepoPath, DiffQuery>) {
    const repo = await repositories.open(addressOf(parameters), signal);
    const reader = repositories.readerOf(repo, signal);
    const [base, head] = await Promise.all(
      [query.base, query.head].map(async (ref) => (await reader.resolve(ref)) ?? notFound("Ref")),
    );
    if (base === undefined || head === undefined) return notFound("Ref");
    const { files, patch, truncated } = await readDiff(repositories.parts, repo, {
      base,
      head,
      signal,
    });
    const wire = files.map(({ oldPath, oldMode, newMode, oldHash, newHash, ...file }) => ({
      ...file,
      ...(oldPath !== undefined && { old_path: oldPath }),
      old_mode: oldMode,
      new_mode: newMode,
      old_hash: oldHash,
      new_hash: newHash,
    }));
    return { result: { base, head, files: wire, patch, truncated } };
  }

  async function archive(
    { parameters, signal }: Asked<z.output<typeof ArchivePath>>,
    response: Response,
  ) {
    const [, ref = "", format = ""] = /^(.+)\.(tar\.gz|zip)$/s.exec(parameters.archive) ?? [];
    // The path's schema takes no other.
    const known = format as ArchiveFormat;
    const repo = await repositories.open(addressOf(parameters), signal);
    const id = await repositories.readerOf(repo, signal).resolve(ref);
    if (id === undefined) return notFound("Ref");
    const made = await archives.get(repo, { commit: id, format: known });
    const name = `${repo.address.name}-${id.slice(0, 12)}.${known}`;
    response.set("Content-Disposition", `attachment; filename="${name}"`);
    const named = {
      tag: `${id}.${known}`,
      bytes: made.bytes,
      type: ARCHIVE_FORMATS[known],
      read: (start: number, end: number) => createReadStream(made.path, { start, end }),
    };
    await answerRanged(response.req, response, named, signal);
  }

  async function makeCommit({ parameters, body, signal }: Asked<RepoPath, unknown, CommitFiles>) {
    const changes = body.changes.map(({ path, content, base64, mode }) => {
      if (content !== undefined) return { path, content: Buffer.from(content), mode };
      if (base64 !== undefined) return { path, content: Buffer.from(base64, "base64"), mode };
      return { path, delete: true as const };
    });
    const { allow_empty: allowEmpty, ...rest } = body;
    const asked = { ...rest, changes, allowEmpty };
    const made = await commitFiles(repositories, addressOf(parameters), asked, signal);
    return { result: { ...made.commit, ref: made.ref, before: made.before } };
  }

  /** Bounds the bytes that wait in memory until clients have them. */
  async function sendFile(
    found: FoundFile,
    response: Response,
    signal: AbortSignal,
    typeOf: TypeOf,
  ): Promise<void> {
    held.hold(found.bytes, response);
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
}

type TypeOf = (content: () => Promise<Buffer>) => Promise<string>;

function notFound(what: string): never {
  throw new ActorError("not_found", `${what} not found`);
}
