/** The binding to the repositories of one namespace: app code needs no token and no clone. */
import type { z } from "zod";
import type {
  CreatedRepo as WireCreated,
  WireNamespace,
  WireRepo,
  WireStored,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import { ArtifactsError } from "../package/api-error.ts";
import type { Artifacts } from "../package/artifacts.ts";
import { camelized } from "../package/camel-case.ts";
import { artifactsRepo } from "./artifacts-repo.ts";
import { errorReader, pageOf, type RestCalls, type RestDoor, restCalls } from "./rest-binding.ts";

/** The names of the error numbers that only this part of the API has. */
const NAMES = {
  10100: "INVALID_INPUT",
  10101: "INVALID_REPO_NAME",
  10103: "INVALID_TTL",
  10104: "INVALID_URL",
  10200: "NOT_FOUND",
  10201: "ALREADY_EXISTS",
  10400: "INTERNAL_ERROR",
} as const;
const USAGE = "/artifacts/usage";
const NAMESPACES = "/artifacts/namespaces";

export function artifactsBinding(door: RestDoor, namespace: string): Artifacts {
  const callsIn = (name: string) => callsOf(door.in?.(name) ?? door);
  const calls = callsOf(door);
  const here = `${NAMESPACES}/${encodeURIComponent(namespace)}`;
  const repoPath = (name: string) => `${here}/repos/${encodeURIComponent(name)}`;
  const create = async (path: string, json: unknown) =>
    camelized(await calls.one<z.output<typeof WireCreated>>(path, { method: "POST", json }));
  return Object.freeze({
    namespace,
    fetch: door.fetch,
    create: (
      name: string,
      { description, readOnly, setDefaultBranch }: Parameters<Artifacts["create"]>[1] = {},
    ) =>
      create(`${here}/repos`, {
        name,
        description,
        read_only: readOnly,
        default_branch: setDefaultBranch,
      }),
    async get(name: string) {
      const repo = artifactsRepo(calls, { namespacePath: here, path: repoPath(name), name });
      await repo.info();
      return repo;
    },
    async list(options: Parameters<Artifacts["list"]>[0] = {}) {
      const { result, info } = await calls
        .list<z.output<typeof WireRepo>>(`${here}/repos`, options)
        .catch(noneOfUnknown);
      return { repos: camelized(result), ...pageOf(info) };
    },
    delete: (name: string) => deleted(() => calls.one(repoPath(name), { method: "DELETE" })),
    import: ({ source, target }: Parameters<Artifacts["import"]>[0]) =>
      create(`${repoPath(target.name)}/import`, { ...source, read_only: target.opts?.readOnly }),
    usage: async () => camelized(await calls.one<z.output<typeof WireStored>>(USAGE)),
    in: (other: string) => artifactsBinding(door.in?.(other) ?? door, other),
    namespaces: Object.freeze(namespaces(calls, callsIn)),
  });
}

const callsOf = (door: RestDoor) => restCalls(door, errorReader(ArtifactsError, NAMES));

/**
 * Returns an empty list if the namespace does not exist yet. The first repository creates the namespace that a
 * binding names.
 */
function noneOfUnknown(error: unknown) {
  if (error instanceof ArtifactsError && error.status === 404) {
    return { result: [], info: { total_count: 0 } };
  }
  throw error;
}

function namespaces(
  calls: RestCalls,
  callsIn: (namespace: string) => RestCalls,
): Artifacts["namespaces"] {
  type Wire = z.output<typeof WireNamespace>;
  const pathOf = (name: string) => `${NAMESPACES}/${encodeURIComponent(name)}`;
  return {
    create: async (namespace) =>
      camelized(
        await callsIn(namespace).one<Wire>(NAMESPACES, { method: "POST", json: { namespace } }),
      ),
    get: async (name) => camelized(await callsIn(name).one<Wire>(pathOf(name))),
    async list(options = {}) {
      const { result, info } = await calls.list<Wire>(NAMESPACES, options);
      return { namespaces: camelized(result), ...pageOf(info) };
    },
    delete: (name) => deleted(() => callsIn(name).one(pathOf(name), { method: "DELETE" })),
  };
}

async function deleted(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof ArtifactsError && error.code === "NOT_FOUND") return false;
    throw error;
  }
}
