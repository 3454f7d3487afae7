/** One repository, as the binding for app code offers it. */
import type { z } from "zod";
import type {
  CommittedFiles,
  MintedRepoToken,
  WireCommit,
  WireDiff,
  ForkedRepo as WireForked,
  WireRef,
  WireRepoDetails,
  WireRepoToken,
} from "../../../schemas/repositories/http/artifacts-answers.ts";
import { ArtifactsError } from "../package/api-error.ts";
import type { ArtifactsRepo, TreeEntry } from "../package/artifacts.ts";
import { camelized } from "../package/camel-case.ts";
import { pageOf, type RestCalls } from "./rest-binding.ts";

interface Place {
  namespacePath: string;
  path: string;
  name: string;
}

export function artifactsRepo(calls: RestCalls, place: Place): ArtifactsRepo {
  return Object.freeze({
    name: place.name,
    ...settings(calls, place),
    ...content(calls, place),
    ...tokens(calls, place),
    // The object holds no resources. This method exists for code that declares it with `using`.
    [Symbol.dispose]() {},
  });
}

function settings(
  calls: RestCalls,
  { path }: Place,
): Pick<ArtifactsRepo, "info" | "update" | "fork" | "prune"> {
  type Details = z.output<typeof WireRepoDetails>;
  return {
    info: async () => camelized(await calls.one<Details>(path)),
    async update({ description, defaultBranch, readOnly, protectedRefs }) {
      const json = {
        description,
        default_branch: defaultBranch,
        read_only: readOnly,
        protected_refs: protectedRefs,
      };
      return camelized(await calls.one<Details>(path, { method: "PATCH", json }));
    },
    async fork(name, { description, readOnly, defaultBranchOnly } = {}) {
      const json = {
        name,
        description,
        read_only: readOnly,
        default_branch_only: defaultBranchOnly,
      };
      const forked = calls.one<z.output<typeof WireForked>>(`${path}/fork`, {
        method: "POST",
        json,
      });
      return camelized(await forked);
    },
    async prune() {
      await calls.one(`${path}/prune`, { method: "POST" });
    },
  };
}

function content(
  calls: RestCalls,
  { path }: Place,
): Omit<
  ArtifactsRepo,
  | keyof ReturnType<typeof settings>
  | keyof ReturnType<typeof tokens>
  | "name"
  | typeof Symbol.dispose
> {
  const blob = async (below: string, query?: Record<string, string>) =>
    (await calls.bytes(`${path}${below}`, { query })).blob();
  return {
    log: async (options = {}) =>
      camelized(await calls.one<z.output<typeof WireCommit>[]>(`${path}/log`, { query: options })),
    async refs(options = {}) {
      const { result, info } = await calls.list<z.output<typeof WireRef>>(`${path}/refs`, options);
      return { refs: camelized(result), ...pageOf(info) };
    },
    diff: async (base, head) =>
      camelized(
        await calls.one<z.output<typeof WireDiff>>(`${path}/diff`, { query: { base, head } }),
      ),
    readCommit: (hash) =>
      orNull("Commit", async () =>
        camelized(await calls.one<z.output<typeof WireCommit>>(`${path}/commit/${step(hash)}`)),
      ),
    readTree: (hash) => orNull("Tree", () => calls.one<TreeEntry[]>(`${path}/tree/${step(hash)}`)),
    readBlob: (hash) => orNull("Blob", () => blob(`/blob/${step(hash)}`)),
    readFile: (what) => orNull("File", () => blob("/file", what)),
    readRaw: ({ ref, path: file }) =>
      orNull("File", () => blob(`/raw/${step(ref)}/${file.split("/").map(step).join("/")}`)),
    archive: (ref, format = "tar.gz") => blob(`/archive/${step(ref)}.${format}`),
    async createCommit(commit) {
      const made = calls.one<z.output<typeof CommittedFiles>>(`${path}/commits`, {
        method: "POST",
        json: commit,
      });
      return camelized(await made);
    },
  };
}

function tokens(
  calls: RestCalls,
  { namespacePath, path, name }: Place,
): Pick<ArtifactsRepo, "createToken" | "listTokens" | "revokeToken"> {
  return {
    async createToken(scope, ttl) {
      const minted = calls.one<z.output<typeof MintedRepoToken>>(`${namespacePath}/tokens`, {
        method: "POST",
        json: { repo: name, scope, ttl },
      });
      return camelized(await minted);
    },
    async listTokens({ state, page, perPage } = {}) {
      const { result, info } = await calls.list<z.output<typeof WireRepoToken>>(`${path}/tokens`, {
        state,
        page,
        per_page: perPage,
      });
      return { tokens: camelized(result), ...pageOf(info) };
    },
    async revokeToken(id) {
      const revoked = await orNull("Token", () =>
        calls.one(`${namespacePath}/tokens/${step(id)}`, { method: "DELETE" }),
      );
      return revoked !== null;
    },
  };
}

const step = encodeURIComponent;

/** Returns null if the object in the repository does not exist. Throws if the repository itself does not exist. */
async function orNull<T>(what: string, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const isMissing =
      error instanceof ArtifactsError &&
      error.code === "NOT_FOUND" &&
      error.message.startsWith(what);
    if (isMissing) return null;
    throw error;
  }
}
