/** The paths of a repository in the REST API and in the console. */
import { useAccount } from "../lib/account.tsx";
import type { PageParameters } from "../lib/pages.ts";
import { type Query, queryOf } from "../lib/query.ts";

export interface RepoPlace {
  namespace: string;
  name: string;
  /** A path of the REST API in this repository: `rest("/refs")`. */
  rest: (path: string) => string;
  /** A page of this repository: `page("history", { ref })`. */
  page: (path?: string, query?: Query) => string;
}

export function useRepo(parameters: PageParameters["parameters"]): RepoPlace {
  const { restPath, placeOf } = useAccount();
  const { namespace = "", name = "" } = parameters;
  const own = `${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const rest = `/artifacts/namespaces/${encodeURIComponent(namespace)}/repos/${encodeURIComponent(name)}`;
  return {
    namespace,
    name,
    rest: (path) => restPath(rest + path),
    page: (path = "", query = {}) =>
      placeOf(`repositories/${own}${path && `/${path}`}`) + queryOf(query),
  };
}

/** A path of files for an address. */
export const encodePath = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** The short form of a commit's id. */
export const shortHash = (hash: string) => hash.slice(0, 10);

export const subjectOf = (message: string) => message.split("\n", 1)[0] || "(no message)";

/** "refs/heads/main" as people write it. */
export const shortRef = (name: string) => name.replace(/^refs\/(heads|tags)\//, "");
