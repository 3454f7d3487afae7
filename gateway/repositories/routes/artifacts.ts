/** Namespaces and repositories: made, listed, shown, changed, forked, deleted. */
import { z } from "zod";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import { namespaceKey } from "../../../schemas/repositories/git-names.ts";
import {
  ChangeRepo,
  CreateNamespace,
  CreateRepo,
  ForkRepo,
  ImportRepo,
  NamespacePath,
  NamespacesQuery,
  RepoPath,
  ReposQuery,
} from "../../../schemas/repositories/http/artifacts.ts";
import {
  CreatedRepo,
  DeletedRepo,
  ForkedRepo,
  WireNamespace,
  WireRepo,
  WireRepoDetails,
  WireStored,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import type { RepoListing, RepoSort } from "../../../schemas/repositories/namespace.ts";
import type { Caller } from "../../http/locals.ts";
import { type Asked, defineRoute, type Route } from "../../http/route.ts";
import type { CreatedRepo as MadeRepo, Repositories } from "../repositories.ts";
import { forkRepo } from "../write/fork-repo.ts";
import {
  addressOf,
  NAMESPACE,
  NAMESPACES,
  pageInfo,
  questionOf,
  REPO,
  REPOS,
  readCursor,
  STORED,
  wireDetails,
  wireNamespace,
  wireRepo,
} from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { mustOpenNamespace } from "./check-namespace.ts";

type InAccount<Q = unknown, B = unknown> = Asked<z.output<typeof AccountPath>, Q, B>;
type InNamespace<Q = unknown, B = unknown> = Asked<z.output<typeof NamespacePath>, Q, B>;
type OfRepo<Q = unknown, B = unknown> = Asked<RepoPath, Q, B>;

/** What the last entry of a page stands at, in the order that was asked for. */
const Place = z.object({
  value: z.union([z.string(), z.int()]),
  id: z.string().regex(/^[0-9a-z]{16}$/),
});

export function artifactRoutes(repositories: Repositories): Route[] {
  const shared = { tag: "Repositories", wording: artifactsWording };
  const reading = { ...shared, permissions: ["artifacts.read" as const], query: nothing };
  const writing = { ...shared, permissions: ["artifacts.write" as const], query: nothing };
  const json = <S extends z.ZodType>(schema: S) => ({ schema, bytesMax: JSON_BODY_BYTES_MAX });
  return [
    defineRoute({
      ...reading,
      method: "get",
      path: STORED,
      id: "getStoredBytes",
      isOpenToBindings: true,
      summary: "Bytes that the account has in repositories, and may have",
      parameters: AccountPath,
      answer: { result: WireStored },
      handle: getStored,
    }),
    defineRoute({
      ...writing,
      method: "post",
      path: NAMESPACES,
      id: "createNamespace",
      isOpenToBindings: true,
      summary: "Make a namespace; one also comes to be with its first repository",
      parameters: AccountPath,
      body: json(CreateNamespace),
      refusals: ["conflict", "limit_reached"],
      answer: { result: WireNamespace, status: 201 },
      handle: createNamespace,
    }),
    defineRoute({
      ...reading,
      method: "get",
      path: NAMESPACES,
      id: "listNamespaces",
      isOpenToBindings: true,
      summary: "The account's namespaces, by name",
      parameters: AccountPath,
      query: NamespacesQuery,
      answer: { result: WireNamespace.array(), paged: "both" },
      handle: listNamespaces,
    }),
    defineRoute({
      ...reading,
      method: "get",
      path: NAMESPACE,
      id: "getNamespace",
      summary: "One namespace",
      parameters: NamespacePath,
      answer: { result: WireNamespace },
      handle: getNamespace,
    }),
    defineRoute({
      ...writing,
      method: "delete",
      path: NAMESPACE,
      id: "deleteNamespace",
      summary: "Delete a namespace that has no repositories",
      parameters: NamespacePath,
      refusals: ["conflict"],
      answer: { result: nothing, status: 204 },
      handle: deleteNamespace,
    }),
    defineRoute({
      ...writing,
      method: "post",
      path: REPOS,
      id: "createRepo",
      summary: "Make an empty repository, with a token to push to it",
      parameters: NamespacePath,
      body: json(CreateRepo),
      refusals: ["conflict", "limit_reached"],
      answer: { result: CreatedRepo, status: 201 },
      handle: createRepo,
    }),
    defineRoute({
      ...reading,
      method: "get",
      path: REPOS,
      id: "listRepos",
      summary: "Repositories of a namespace",
      parameters: NamespacePath,
      query: ReposQuery,
      answer: { result: WireRepo.array(), paged: "both" },
      handle: listRepos,
    }),
    defineRoute({
      ...reading,
      method: "get",
      path: REPO,
      id: "getRepo",
      summary: "One repository, and how far its import is",
      parameters: RepoPath,
      answer: { result: WireRepoDetails },
      handle: getRepo,
    }),
    defineRoute({
      ...writing,
      method: "patch",
      path: REPO,
      id: "changeRepo",
      summary: "Change what is said of a repository, and what pushes may do",
      parameters: RepoPath,
      body: json(ChangeRepo),
      answer: { result: WireRepoDetails },
      handle: changeRepo,
    }),
    defineRoute({
      ...writing,
      method: "delete",
      path: REPO,
      id: "deleteRepo",
      summary: "Delete a repository, its history and its tokens, for good",
      parameters: RepoPath,
      answer: { result: DeletedRepo, status: 202 },
      handle: deleteRepo,
    }),
    defineRoute({
      ...writing,
      method: "post",
      path: `${REPO}/fork`,
      id: "forkRepo",
      summary: "Make a repository that begins as this one is now",
      parameters: RepoPath,
      body: json(ForkRepo),
      refusals: [
        "conflict",
        "limit_reached",
        "import_in_progress",
        "fork_in_progress",
        "storage_full",
      ],
      answer: { result: ForkedRepo, status: 201 },
      handle: fork,
    }),
    defineRoute({
      ...writing,
      method: "post",
      path: `${REPO}/prune`,
      id: "pruneRepo",
      summary:
        "Drop what no ref leads to any more, for good and soon: a secret that was forced away",
      parameters: RepoPath,
      refusals: ["import_in_progress", "fork_in_progress"],
      answer: { result: DeletedRepo, status: 202 },
      handle: prune,
    }),
    defineRoute({
      ...writing,
      method: "post",
      path: `${REPO}/import`,
      id: "importRepo",
      summary: "Make a repository of a public one elsewhere; getRepo tells how far it is",
      parameters: RepoPath,
      body: json(ImportRepo),
      refusals: ["conflict", "limit_reached", "import_in_progress"],
      answer: { result: CreatedRepo, status: 201 },
      handle: importRepo,
    }),
  ];

  async function getStored({ caller, signal }: InAccount) {
    const { storage } = repositories.parts;
    const { bytes } = await storage.get(caller.accountId, signal);
    return { result: { bytes, bytes_max: storage.bytesMax === 0 ? null : storage.bytesMax } };
  }

  async function createNamespace({
    caller,
    body,
  }: InAccount<unknown, z.output<typeof CreateNamespace>>) {
    mustOpenNamespace(caller, body.namespace);
    const made = await repositories.createNamespace(caller.accountId, body.namespace);
    return { result: wireNamespace(made) };
  }

  async function listNamespaces({ parameters, query, caller }: InAccount<NamespacesQuery>) {
    const { limit } = query;
    if (caller.namespace !== undefined) return listOwnNamespace(caller, limit);
    const question = questionOf(parameters);
    const cursor = readCursor(query.cursor, question, z.string());
    const { namespaces, more, total } = await repositories.listNamespaces(caller.accountId, {
      limit,
      after: cursor?.after,
    });
    const last = more ? namespaces.at(-1) : undefined;
    const next = last && { question, after: last.name };
    const count = namespaces.length;
    return {
      result: namespaces.map(wireNamespace),
      resultInfo: pageInfo({ limit, cursor }, { count, total, next }),
    };
  }

  /** Lists the only namespace of a bound caller; nothing when it has no repository yet. */
  async function listOwnNamespace({ accountId, namespace = "" }: Caller, limit: number) {
    const found = await repositories.getNamespace(accountId, namespace).catch((error: unknown) => {
      if (error instanceof ActorError && error.code === "not_found") return undefined;
      throw error;
    });
    const result = found ? [wireNamespace(found)] : [];
    const { length: count } = result;
    const resultInfo = pageInfo(
      { limit, cursor: undefined },
      { count, total: count, next: undefined },
    );
    return { result, resultInfo };
  }

  async function getNamespace({ parameters, caller }: InNamespace) {
    const found = await repositories.getNamespace(caller.accountId, parameters.namespace);
    return { result: wireNamespace(found) };
  }

  async function deleteNamespace({ parameters, caller }: InNamespace) {
    await repositories.deleteNamespace(caller.accountId, parameters.namespace);
    return { result: {} };
  }

  async function createRepo({
    parameters,
    body,
  }: InNamespace<unknown, z.output<typeof CreateRepo>>) {
    const address = addressOf({ ...parameters, name: body.name });
    const made = await repositories.create(address, {
      description: body.description,
      defaultBranch: body.default_branch,
      readOnly: body.read_only,
    });
    return { result: wireCreated(made) };
  }

  async function listRepos({ parameters, query, caller }: InNamespace<ReposQuery>) {
    const { cursor: text, limit, search, sort, direction } = query;
    const { accountId } = caller;
    const key = namespaceKey(accountId, parameters.namespace);
    const question = questionOf({ account_id: key }, sort, direction, search ?? "");
    const cursor = readCursor(text, question, Place);
    const asked = { limit, search, sort, direction, after: cursor?.after };
    const { repos, more, total } = await repositories.list(accountId, parameters.namespace, asked);
    // Refuses an unknown namespace; one that has repositories is known.
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
  }

  async function getRepo({ parameters, signal }: OfRepo) {
    const entry = await repositories.get(addressOf(parameters), signal);
    return { result: wireDetails(entry, repositories.remote(entry)) };
  }

  async function changeRepo({
    parameters,
    body,
    signal,
  }: OfRepo<unknown, z.output<typeof ChangeRepo>>) {
    const settings = {
      description: body.description,
      defaultBranch: body.default_branch,
      readOnly: body.read_only,
      protectedRefs: body.protected_refs,
    };
    const entry = await repositories.configure(addressOf(parameters), settings, signal);
    return { result: wireDetails(entry, repositories.remote(entry)) };
  }

  async function deleteRepo({ parameters }: OfRepo) {
    return { result: await repositories.delete(addressOf(parameters)) };
  }

  async function prune({ parameters, signal }: OfRepo) {
    return { result: await repositories.prune(addressOf(parameters), signal) };
  }

  async function fork({ parameters, body, signal }: OfRepo<unknown, z.output<typeof ForkRepo>>) {
    const request = {
      name: body.name,
      description: body.description,
      readOnly: body.read_only,
      defaultBranchOnly: body.default_branch_only,
    };
    const made = await forkRepo(repositories, addressOf(parameters), request, signal);
    return { result: { ...wireCreated(made), objects: made.objects } };
  }

  async function importRepo({
    parameters,
    body,
    signal,
  }: OfRepo<unknown, z.output<typeof ImportRepo>>) {
    const address = addressOf(parameters);
    const { url, branch, depth, read_only: readOnly } = body;
    const asked = { url, branch, depth, readOnly };
    const made = await repositories.import(address, asked).catch(async (error: unknown) => {
      if (!(error instanceof ActorError) || error.code !== "conflict") throw error;
      const known = await repositories.get(address, signal);
      if (known.status !== "importing") throw error;
      throw new ActorError("import_in_progress", "Cannot import: it is being imported already");
    });
    return { result: wireCreated(made) };
  }
}

function wireCreated(made: MadeRepo): z.input<typeof CreatedRepo> {
  const { id, name, description, defaultBranch, remote, token } = made;
  return { id, name, description, default_branch: defaultBranch, remote, token };
}

/** As the namespace orders them. */
function placeOf(entry: RepoListing, sort: RepoSort): z.output<typeof Place> {
  const values = {
    created_at: entry.createdAt,
    updated_at: entry.updatedAt,
    last_push_at: entry.lastPushAt ?? 0,
    name: entry.name.toLowerCase(),
  };
  return { value: values[sort], id: entry.id };
}
