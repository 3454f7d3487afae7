/** REST routes that create, list, show, change, fork, import, prune and delete repositories. */
import { z } from "zod";
import { ActorError, type ErrorCode } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { namespaceKey } from "../../../schemas/repositories/git-names.ts";
import {
  ChangeRepo,
  CreateRepo,
  ForkRepo,
  ImportRepo,
  NamespacePath,
  RepoPath,
  ReposQuery,
} from "../../../schemas/repositories/http/artifacts.ts";
import {
  CreatedRepo,
  DeletedRepo,
  ForkedRepo,
  PrunedRepo,
  WireRepo,
  WireRepoDetails,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import type { RepoListing, RepoSort } from "../../../schemas/repositories/namespace.ts";
import { defineRoute, type Route, type RouteRequest, type Tag } from "../../http/route.ts";
import type { CreatedRepo as MadeRepo, Repositories } from "../repositories.ts";
import { forkRepo } from "../write/fork-repo.ts";
import {
  addressOf,
  pageInfo,
  questionOf,
  REPO,
  REPOS,
  readCursor,
  timeOf,
  wireDetails,
  wireRepo,
} from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { tokenBounds } from "./token-bounds.ts";

export const REPOSITORIES_TAG: Tag = {
  name: "Repositories",
  description: "Git repositories and their namespaces",
};

const CREATE_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "post",
  path: REPOS,
  id: "createRepo",
  summary: "Create an empty repository, with a token to push to it",
  permissions: ["artifacts.write"],
  parameters: NamespacePath,
  query: nothing,
  body: { schema: CreateRepo, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached"],
  answer: { result: CreatedRepo, status: 201 },
} as const;

const LIST_REPOS = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "get",
  path: REPOS,
  id: "listRepos",
  summary: "List the repositories of a namespace",
  permissions: ["artifacts.read"],
  parameters: NamespacePath,
  query: ReposQuery,
  answer: { result: WireRepo.array(), paged: "both" },
} as const;

const GET_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "get",
  path: REPO,
  id: "getRepo",
  summary: "Get a repository, and the progress of its import",
  permissions: ["artifacts.read"],
  parameters: RepoPath,
  query: nothing,
  answer: { result: WireRepoDetails },
} as const;

const CHANGE_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "patch",
  path: REPO,
  id: "changeRepo",
  summary: "Change a repository's description, default branch and push rules",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  body: { schema: ChangeRepo, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["import_in_progress", "fork_in_progress"],
  answer: { result: WireRepoDetails },
} as const;

const DELETE_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "delete",
  path: REPO,
  id: "deleteRepo",
  summary: "Delete a repository with its history and tokens; this cannot be undone",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  answer: { result: DeletedRepo, status: 202 },
} as const;

const FORK_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "post",
  path: `${REPO}/fork`,
  id: "forkRepo",
  summary: "Fork a repository as it is now",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  body: { schema: ForkRepo, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached", "import_in_progress", "fork_in_progress", "storage_full"],
  answer: { result: ForkedRepo, status: 201 },
} as const;

const PRUNE_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "post",
  path: `${REPO}/prune`,
  id: "pruneRepo",
  summary:
    "Delete objects that no ref reaches, soon and permanently, such as a secret removed by a forced push",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  refusals: ["import_in_progress", "fork_in_progress"],
  answer: { result: PrunedRepo, status: 202 },
} as const;

const IMPORT_REPO = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "post",
  path: `${REPO}/import`,
  id: "importRepo",
  summary: "Import a public repository from another server; `getRepo` shows the progress",
  permissions: ["artifacts.write"],
  parameters: RepoPath,
  query: nothing,
  body: { schema: ImportRepo, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached", "import_in_progress"],
  answer: { result: CreatedRepo, status: 201 },
} as const;

type InNamespace<Q = unknown, B = unknown> = RouteRequest<z.output<typeof NamespacePath>, Q, B>;
type OfRepo<Q = unknown, B = unknown> = RouteRequest<RepoPath, Q, B>;

/** The position of a page's last entry in the requested order. */
const Place = z.object({
  value: z.union([z.string(), z.int()]),
  id: z.string().regex(/^[0-9a-z]{16}$/),
});

/** The REST routes of repositories. */
export function artifactRoutes(repositories: Repositories): Route[] {
  return [
    defineRoute({ ...CREATE_REPO, handle: createRepo(repositories) }),
    defineRoute({ ...LIST_REPOS, handle: listRepos(repositories) }),
    defineRoute({ ...GET_REPO, handle: getRepo(repositories) }),
    defineRoute({ ...CHANGE_REPO, handle: changeRepo(repositories) }),
    defineRoute({ ...DELETE_REPO, handle: deleteRepo(repositories) }),
    defineRoute({ ...FORK_REPO, handle: fork(repositories) }),
    defineRoute({ ...PRUNE_REPO, handle: prune(repositories) }),
    defineRoute({ ...IMPORT_REPO, handle: importRepo(repositories) }),
  ];
}

function createRepo(repositories: Repositories) {
  return async ({
    parameters,
    body,
    caller,
  }: InNamespace<unknown, z.output<typeof CreateRepo>>) => {
    const address = addressOf({ ...parameters, name: body.name });
    const made = await repositories.create(address, {
      description: body.description,
      defaultBranch: body.default_branch,
      readOnly: body.read_only,
      bounds: tokenBounds(caller, repositories.parts.now()),
    });
    return { result: wireCreated(made) };
  };
}

function listRepos(repositories: Repositories) {
  return async ({ parameters, query, caller }: InNamespace<ReposQuery>) => {
    const { cursor: text, limit, search, sort, direction } = query;
    const { accountId } = caller;
    const key = namespaceKey(accountId, parameters.namespace);
    const question = questionOf({ account_id: key }, sort, direction, search ?? "");
    const cursor = readCursor(text, question, Place);
    const listing = { limit, search, sort, direction, after: cursor?.after };
    const { repos, more, total } = await repositories.list(
      accountId,
      parameters.namespace,
      listing,
    );
    // An empty list may mean that the namespace does not exist. Then this call refuses with `not_found`.
    if (total === 0) await repositories.getNamespace(accountId, parameters.namespace);
    const last = more ? repos.at(-1) : undefined;
    const next = last && { question, after: placeOf(last, sort) };
    const { namespace } = parameters;
    return {
      result: repos.map((entry) =>
        wireRepo(entry, repositories.remote({ accountId, namespace, name: entry.name })),
      ),
      resultInfo: pageInfo({ limit, cursor }, { count: repos.length, total, next }),
    };
  };
}

function getRepo(repositories: Repositories) {
  return async ({ parameters, signal }: OfRepo) => {
    const entry = await repositories.get(addressOf(parameters), signal);
    return { result: wireDetails(entry, repositories.remote(entry)) };
  };
}

function changeRepo(repositories: Repositories) {
  return async ({ parameters, body, signal }: OfRepo<unknown, z.output<typeof ChangeRepo>>) => {
    const settings = {
      description: body.description,
      defaultBranch: body.default_branch,
      readOnly: body.read_only,
      protectedRefs: body.protected_refs,
    };
    const entry = await repositories.configure(addressOf(parameters), settings, signal);
    return { result: wireDetails(entry, repositories.remote(entry)) };
  };
}

function deleteRepo(repositories: Repositories) {
  return async ({ parameters }: OfRepo) => {
    return { result: await repositories.delete(addressOf(parameters)) };
  };
}

function fork(repositories: Repositories) {
  return async (asked: OfRepo<unknown, z.output<typeof ForkRepo>>) => {
    const { parameters, body, caller, signal } = asked;
    const request = {
      name: body.name,
      description: body.description,
      readOnly: body.read_only,
      defaultBranchOnly: body.default_branch_only,
      bounds: tokenBounds(caller, repositories.parts.now()),
    };
    const made = await forkRepo(repositories, addressOf(parameters), request, signal);
    return { result: { ...wireCreated(made), objects: made.objects } };
  };
}

function prune(repositories: Repositories) {
  return async ({ parameters, signal }: OfRepo) => {
    const { id, at } = await repositories.prune(addressOf(parameters), signal);
    return { result: { id, runs_at: timeOf(at) } };
  };
}

/** Refusals of an import that may be a repetition: the name is taken, or the account has too many imports. */
const TAKEN: ReadonlySet<ErrorCode> = new Set(["conflict", "limit_reached"]);

function importRepo(repositories: Repositories) {
  return async (asked: OfRepo<unknown, z.output<typeof ImportRepo>>) => {
    const { parameters, body, caller, signal } = asked;
    const address = addressOf(parameters);
    const { url, branch, depth, read_only: readOnly } = body;
    const bounds = tokenBounds(caller, repositories.parts.now());
    const origin = { url, branch, depth, readOnly, bounds };
    const made = await repositories.import(address, origin).catch(async (error: unknown) => {
      if (!(error instanceof ActorError) || !TAKEN.has(error.code)) throw error;
      const known = await repositories.get(address, signal).catch(() => undefined);
      if (known?.status !== "importing") throw error;
      throw new ActorError("import_in_progress", "Cannot import: it is being imported already");
    });
    return { result: wireCreated(made) };
  };
}

function wireCreated(made: MadeRepo): z.input<typeof CreatedRepo> {
  const { id, name, description, defaultBranch, remote, token } = made;
  return { id, name, description, default_branch: defaultBranch, remote, token };
}

/** Returns the position of a repository in the requested order. */
function placeOf(entry: RepoListing, sort: RepoSort): z.output<typeof Place> {
  const values = {
    created_at: entry.createdAt,
    updated_at: entry.updatedAt,
    last_push_at: entry.lastPushAt ?? 0,
    name: entry.name.toLowerCase(),
  };
  return { value: values[sort], id: entry.id };
}
