/** REST routes that list refs, show history, directories and differences, and commit files without a clone. */
import type { Response } from "express";
import { z } from "zod";
import { nothing } from "../../../schemas/http/nothing.ts";
import { isProtected } from "../../../schemas/repositories/git-names.ts";
import { commitBodyBytes } from "../../../schemas/repositories/git-sizes.ts";
import {
  type CommitFiles,
  commitFilesOf,
  DiffQuery,
  LogQuery,
  ObjectPath,
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
import { READ_BYTES_MAX } from "../../../schemas/repositories/limits.ts";
import { callerOf } from "../../http/locals.ts";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";
import { Archives } from "../read/read-archive.ts";
import { readDiff } from "../read/read-diff.ts";
import type { Repositories } from "../repositories.ts";
import { commitFiles } from "../write/commit-files.ts";
import {
  artifactFileRoutes,
  type ContentParts,
  notFound,
  REPOSITORY_CONTENT_TAG,
} from "./artifacts-files.ts";
import { addressOf, pageInfo, questionOf, REPO, readCursor } from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { ReadBudget } from "./read-budget.ts";

/** The id of the tree without entries, which git knows in every repository. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/**
 * Each byte of an object reserves this many bytes of memory, because tree entries are three to four times as long in
 * JSON.
 */
const SHOWN_OBJECT_FACTOR = 4;

const LIST_REFS = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/refs`,
  id: "listRefs",
  summary: "List branches, tags and notes by name",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: RefsQuery,
  answer: { result: WireRef.array(), paged: "both" },
} as const;

const GET_LOG = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/log`,
  id: "getLog",
  summary: "List the history of a ref by first parents, newest first; empty in an empty repository",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: LogQuery,
  refusals: ["object_too_large"],
  answer: { result: WireCommit.array() },
} as const;

const GET_COMMIT = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/commit/{hash}`,
  id: "getCommit",
  summary: "Get a commit",
  permissions: ["artifacts.read"],
  parameters: ObjectPath,
  query: nothing,
  refusals: ["object_too_large"],
  answer: { result: WireCommit },
} as const;

const GET_TREE = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/tree/{hash}`,
  id: "getTree",
  summary: "List a directory",
  permissions: ["artifacts.read"],
  parameters: ObjectPath,
  query: nothing,
  refusals: ["object_too_large"],
  answer: { result: WireTreeEntry.array() },
} as const;

const GET_DIFF = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "get",
  path: `${REPO}/diff`,
  id: "getDiff",
  summary: "Get the diff between two commits; for a first commit, all that it adds",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: DiffQuery,
  answer: { result: WireDiff },
} as const;

/** The body is added later, because the operator's settings limit it. */
const COMMIT_FILES = {
  tag: REPOSITORY_CONTENT_TAG,
  wording: artifactsWording,
  method: "post",
  path: `${REPO}/commits`,
  id: "commitFiles",
  summary: "Commit files to a branch without a clone; all files are stored, or none",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  refusals: [
    "branch_moved",
    "import_in_progress",
    "fork_in_progress",
    "conflict",
    "storage_full",
    "object_too_large",
  ],
  answer: { result: CommittedFiles, status: 201 },
} as const;

type OfObject = RouteRequest<z.output<typeof ObjectPath>>;

/** The REST routes of a repository's content. */
export function artifactContentRoutes(repositories: Repositories): Route[] {
  const { sizes } = repositories.parts;
  const held = new ReadBudget(READ_BYTES_MAX);
  const parts = { repositories, held };
  const archives = new Archives(repositories.parts, repositories.parts);
  const body = { schema: commitFilesOf(sizes.fileBytes), bytesMax: commitBodyBytes(sizes) };
  return [
    defineRoute({ ...LIST_REFS, handle: refs(parts) }),
    defineRoute({ ...GET_LOG, handle: log(parts) }),
    defineRoute({ ...GET_COMMIT, handle: commit(parts) }),
    defineRoute({ ...GET_TREE, handle: tree(parts) }),
    defineRoute({ ...GET_DIFF, handle: diff(parts) }),
    ...artifactFileRoutes({ ...parts, archives }),
    defineRoute({ ...COMMIT_FILES, body, handle: makeCommit(parts) }),
  ];
}

function refs({ repositories }: ContentParts) {
  return async ({ parameters, query, signal }: RouteRequest<RepoPath, RefsQuery>) => {
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
  };
}

function log({ repositories, held }: ContentParts) {
  return async (
    { parameters, query, signal }: RouteRequest<RepoPath, LogQuery>,
    response: Response,
  ) => {
    const reader = await repositories.reader(addressOf(parameters), signal);
    return { result: await reader.log(query.ref, query, shownTo(held, response)) };
  };
}

function commit({ repositories, held }: ContentParts) {
  return async ({ parameters, signal }: OfObject, response: Response) => {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = await reader.commit(parameters.hash, shownTo(held, response));
    return { result: found ?? notFound("Commit") };
  };
}

function tree({ repositories, held }: ContentParts) {
  return async ({ parameters, signal }: OfObject, response: Response) => {
    const reader = await repositories.reader(addressOf(parameters), signal);
    const found = await reader.tree(parameters.hash, shownTo(held, response));
    return { result: found ?? notFound("Tree") };
  };
}

function diff({ repositories }: ContentParts) {
  return async ({ parameters, query, signal }: RouteRequest<RepoPath, DiffQuery>) => {
    const repo = await repositories.open(addressOf(parameters), signal);
    const reader = repositories.readerOf(repo, signal);
    const find = async (ref: string) => (await reader.resolve(ref)) ?? notFound("Ref");
    const [base, head] = await Promise.all([
      query.base === undefined ? EMPTY_TREE : find(query.base),
      find(query.head),
    ]);
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
  };
}

function makeCommit({ repositories }: ContentParts) {
  return async ({ parameters, body, signal }: RouteRequest<RepoPath, unknown, CommitFiles>) => {
    const changes = body.changes.map(({ path, content, base64, mode }) => {
      if (content !== undefined) return { path, content: Buffer.from(content), mode };
      if (base64 !== undefined) return { path, content: Buffer.from(base64, "base64"), mode };
      return { path, delete: true as const };
    });
    const { allow_empty: allowEmpty, ...rest } = body;
    const commit = { ...rest, changes, allowEmpty };
    const made = await commitFiles(repositories, addressOf(parameters), commit, signal);
    return { result: { ...made.commit, ref: made.ref, before: made.before } };
  };
}

/** Reserves the memory of an object as JSON until the client has received the response. */
const shownTo = (held: ReadBudget, response: Response) => (bytes: number) =>
  held.hold(SHOWN_OBJECT_FACTOR * bytes, callerOf(response).accountId, response);
