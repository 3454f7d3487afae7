/** The paths of a repository in the REST API and in the console, and components for navigation in it. */
import { useAccount } from "../lib/account.tsx";
import { type Query, queryOf } from "../lib/rest.ts";
import { useParameters, usePlace } from "../lib/router.ts";
import { useRest } from "../lib/use-rest.ts";
import type { WireRef, WireTreeEntry } from "../lib/wire.ts";
import { Link } from "../parts/link.tsx";

export interface RepoPlace {
  namespace: string;
  name: string;
  /** The path of the shown file or directory. Empty for the root. */
  path: string;
  /** The chosen ref. Undefined for the default branch. */
  reference: string | undefined;
  /** Returns a path of this repository in the REST API: `rest("/refs")`. */
  rest: (path: string) => string;
  /** The path in the REST API that creates tokens of this repository. */
  tokens: string;
  /** Returns the console path of a page of this repository: `page("history", { ref })`. */
  page: (path?: string, query?: Query) => string;
}

/** Returns the paths of the repository in the page's address, or of the named one. */
export function useRepo(named?: { namespace: string; name: string }): RepoPlace {
  const { restPath } = useAccount();
  const { path = "", ...parameters } = useParameters();
  const { namespace = "", name = "" } = named ?? parameters;
  const reference = usePlace().query.get("ref") ?? undefined;
  const above = restPath(`/artifacts/namespaces/${encodeURIComponent(namespace)}`);
  const own = repoPlace(namespace, name);
  return {
    ...{ namespace, name, path, reference },
    rest: (path) => `${above}/repos/${encodeURIComponent(name)}${path}`,
    tokens: `${above}/tokens`,
    page: (below = "", query = {}) => `${own}${below && `/${below}`}${queryOf(query)}`,
  };
}

/** Returns the console path of a namespace, or of a repository in it. */
export const repoPlace = (namespace: string, name?: string) =>
  ["repositories", namespace, ...(name === undefined ? [] : [name])]
    .map(encodeURIComponent)
    .join("/");

/** Encodes the path of a file for a URL, and keeps its slashes. */
export const encodePath = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** The short form of a commit's id. */
export const shortHash = (hash: string) => hash.slice(0, 10);

export const subjectOf = (message: string) => message.split("\n", 1)[0] || "(no message)";

/** Returns the short name of a ref: "main" for "refs/heads/main". */
export const shortRef = (name: string) => name.replace(/^refs\/(heads|tags)\//, "");

export function PathBar() {
  const { path, name, reference, page } = useRepo();
  if (path === "") return null;
  const steps = path.split("/");
  return (
    <nav class="path-bar" aria-label="Path">
      <Link to={page("", { ref: reference })}>{name}</Link>
      {steps.map((step, index) => (
        <span key={index}>
          <span class="quiet"> / </span>
          {index === steps.length - 1 ? (
            <span aria-current="page">{step}</span>
          ) : (
            <Link
              to={page(`tree/${encodePath(steps.slice(0, index + 1).join("/"))}`, {
                ref: reference,
              })}
            >
              {step}
            </Link>
          )}
        </span>
      ))}
    </nav>
  );
}

/** Maximum number of refs in the menu. Other refs can be opened by their address. */
const REFS_MAX = 1_000;

interface PickerProps {
  label?: string;
  value: string;
  onChange: (ref: string) => void;
}

export function RefPicker({ label = "Branch or tag", value, onChange }: PickerProps) {
  const { value: refs = [] } = useRest<WireRef[]>(useRepo().rest(`/refs?limit=${REFS_MAX}`));
  const of = (prefix: string) => refs.filter(({ name }) => name.startsWith(prefix));
  const known = refs.some(({ name }) => name === value);
  return (
    <label class="ref-picker">
      <span class="hidden">{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {!known && (
          <option value={value}>
            {/^[0-9a-f]{40}$/.test(value) ? shortHash(value) : shortRef(value)}
          </option>
        )}
        <Refs label="Branches" refs={of("refs/heads/")} />
        <Refs label="Tags" refs={of("refs/tags/")} />
      </select>
    </label>
  );
}

function Refs({ label, refs }: { label: string; refs: readonly WireRef[] }) {
  if (refs.length === 0) return null;
  return (
    <optgroup label={label}>
      {refs.map(({ name }) => (
        <option key={name} value={name}>
          {shortRef(name)}
        </option>
      ))}
    </optgroup>
  );
}

const NAMES = {
  tree: "Directory",
  blob: "File",
  exec: "File",
  symlink: "Link",
  gitlink: "Submodule",
};

/** Drawn by the style sheet: with an SVG element in each row, a long list takes 40 % more processor time to scroll. */
export function FileIcon({ type }: { type: WireTreeEntry["type"] }) {
  const kind = type === "tree" || type === "gitlink" ? "folder" : "file";
  return <span class={`icon ${kind}`} role="img" aria-label={NAMES[type]} />;
}
