/** REST routes of namespaces, and of the bytes that an account stores. */
import { z } from "zod";
import { AccountPath } from "../../../schemas/account/http/accounts.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { nothing } from "../../../schemas/http/nothing.ts";
import { JSON_BODY_BYTES_MAX } from "../../../schemas/limits.ts";
import {
  CreateNamespace,
  NamespacePath,
  NamespacesQuery,
} from "../../../schemas/repositories/http/artifacts.ts";
import { WireNamespace, WireStored } from "../../../schemas/repositories/http/artifacts-answers.ts";
import type { Caller } from "../../http/locals.ts";
import { defineRoute, type Route, type RouteRequest } from "../../http/route.ts";
import type { Repositories } from "../repositories.ts";
import { REPOSITORIES_TAG } from "./artifacts.ts";
import {
  NAMESPACE,
  NAMESPACES,
  pageInfo,
  questionOf,
  readCursor,
  STORED,
  wireNamespace,
} from "./artifacts-shapes.ts";
import { artifactsWording } from "./artifacts-wording.ts";
import { mustOpenNamespace } from "./check-namespace.ts";

const GET_STORED_BYTES = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "get",
  path: STORED,
  id: "getStoredBytes",
  isOpenToBindings: true,
  summary: "Get the bytes that the account's repositories use, and their limit",
  permissions: ["artifacts.read"],
  parameters: AccountPath,
  query: nothing,
  answer: { result: WireStored },
} as const;

const CREATE_NAMESPACE = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "post",
  path: NAMESPACES,
  id: "createNamespace",
  isOpenToBindings: true,
  summary: "Create a namespace; the first repository also creates its namespace",
  permissions: ["artifacts.write"],
  parameters: AccountPath,
  query: nothing,
  body: { schema: CreateNamespace, bytesMax: JSON_BODY_BYTES_MAX },
  refusals: ["conflict", "limit_reached"],
  answer: { result: WireNamespace, status: 201 },
} as const;

const LIST_NAMESPACES = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "get",
  path: NAMESPACES,
  id: "listNamespaces",
  isOpenToBindings: true,
  summary: "List the account's namespaces by name",
  permissions: ["artifacts.read"],
  parameters: AccountPath,
  query: NamespacesQuery,
  answer: { result: WireNamespace.array(), paged: "both" },
} as const;

const GET_NAMESPACE = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "get",
  path: NAMESPACE,
  id: "getNamespace",
  summary: "Get a namespace",
  permissions: ["artifacts.read"],
  parameters: NamespacePath,
  query: nothing,
  answer: { result: WireNamespace },
} as const;

const DELETE_NAMESPACE = {
  tag: REPOSITORIES_TAG,
  wording: artifactsWording,
  method: "delete",
  path: NAMESPACE,
  id: "deleteNamespace",
  summary: "Delete a namespace that has no repositories",
  permissions: ["artifacts.write"],
  parameters: NamespacePath,
  query: nothing,
  refusals: ["conflict"],
  answer: { result: nothing, status: 204 },
} as const;

type InAccount<Q = unknown, B = unknown> = RouteRequest<z.output<typeof AccountPath>, Q, B>;
type InNamespace = RouteRequest<z.output<typeof NamespacePath>>;

/** The REST routes of an account's namespaces. */
export function artifactNamespaceRoutes(repositories: Repositories): Route[] {
  return [
    defineRoute({ ...GET_STORED_BYTES, handle: getStored(repositories) }),
    defineRoute({ ...CREATE_NAMESPACE, handle: createNamespace(repositories) }),
    defineRoute({ ...LIST_NAMESPACES, handle: listNamespaces(repositories) }),
    defineRoute({ ...GET_NAMESPACE, handle: getNamespace(repositories) }),
    defineRoute({ ...DELETE_NAMESPACE, handle: deleteNamespace(repositories) }),
  ];
}

function getStored(repositories: Repositories) {
  return async ({ caller, signal }: InAccount) => {
    const { storage } = repositories.parts;
    const { bytes } = await storage.get(caller.accountId, signal);
    return { result: { bytes, bytes_max: storage.bytesMax === 0 ? null : storage.bytesMax } };
  };
}

function createNamespace(repositories: Repositories) {
  return async ({ caller, body }: InAccount<unknown, z.output<typeof CreateNamespace>>) => {
    mustOpenNamespace(caller, body.namespace);
    const made = await repositories.createNamespace(caller.accountId, body.namespace);
    return { result: wireNamespace(made) };
  };
}

function listNamespaces(repositories: Repositories) {
  return async ({ parameters, query, caller }: InAccount<NamespacesQuery>) => {
    const { limit } = query;
    if (caller.namespace !== undefined) return listOwnNamespace(repositories, caller, limit);
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
  };
}

/**
 * Lists the only namespace to which the caller has access. The list is empty if this namespace does not exist yet.
 */
async function listOwnNamespace(
  repositories: Repositories,
  { accountId, namespace = "" }: Caller,
  limit: number,
) {
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

function getNamespace(repositories: Repositories) {
  return async ({ parameters, caller }: InNamespace) => {
    const found = await repositories.getNamespace(caller.accountId, parameters.namespace);
    return { result: wireNamespace(found) };
  };
}

function deleteNamespace(repositories: Repositories) {
  return async ({ parameters, caller }: InNamespace) => {
    await repositories.deleteNamespace(caller.accountId, parameters.namespace);
    return { result: {} };
  };
}
