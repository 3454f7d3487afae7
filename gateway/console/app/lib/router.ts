/** The router: derives the shown page from the browser's address, so that every page has a link. */
import { type ComponentType, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";

/** The path prefix of the platform. Empty if the platform is at the root of its host. */
export const ROOT = document.documentElement.dataset.root ?? "";
const BASE = `${ROOT}/console`;

/**
 * The pages of an area. Each key is a pattern of a path below the area, and the value is the component. The first
 * matching pattern is used.
 */
export type Pages = Readonly<Record<string, ComponentType>>;

type Parameters = Readonly<Record<string, string>>;

export const ParametersContext = createContext<Parameters>({});

/** Returns the values from the path for the pattern's parameters, such as `clientId` for ":clientId". */
export const useParameters = () => useContext(ParametersContext);

interface Place {
  /** The path below the console's path, without slashes at both ends. */
  path: string;
  query: URLSearchParams;
}

const listeners = new Set<() => void>();
addEventListener("popstate", notify);

function notify(): void {
  for (const listener of listeners) listener();
}

function currentPlace(): Place {
  const { pathname, search } = location;
  const path = pathname.slice(BASE.length).replace(/^\/+|\/+$/g, "");
  return { path, query: new URLSearchParams(search) };
}

/** Returns the path and query of the address bar, and updates the component when they change. */
export function usePlace(): Place {
  const [place, setPlace] = useState(currentPlace);
  useEffect(() => {
    const follow = () => setPlace(currentPlace());
    listeners.add(follow);
    return () => void listeners.delete(follow);
  }, []);
  return place;
}

/**
 * Returns the message that the page shows, and a setter. At first it is the message that the previous page passed to
 * this one.
 */
export function useSaid() {
  const [said, setSaid] = useState<string>(() => history.state?.said ?? "");
  // Removes the message from the history entry, so that it does not appear again after a reload or a return to this
  // page.
  useEffect(() => history.replaceState(null, ""), []);
  return [said, setSaid] as const;
}

/** Returns the URL path of a path below the console. */
export const addressOf = (path: string) => (path === "" ? BASE : `${BASE}/${path}`);

interface Navigation {
  /** True to replace the present page in the history, so that the browser's Back button skips it. */
  replace?: boolean;
  /** The message that the next page shows one time. */
  said?: string;
}

/** Shows another page. */
export function navigate(path: string, { replace = false, said }: Navigation = {}): void {
  const state = said === undefined ? null : { said };
  if (replace) history.replaceState(state, "", addressOf(path));
  else history.pushState(state, "", addressOf(path));
  notify();
  scrollTo(0, 0);
}

/** Keeps choices of the page in its address, so that a reload and a shared link have them. */
export function keepInAddress(choices: Readonly<Record<string, string>>): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(choices)) {
    if (value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history.replaceState(history.state, "", url);
}

/**
 * Compares a path with a pattern such as "clients/:id". Returns the parameters, or undefined if they do not match. A
 * last part such as ":path*" matches the rest of the path, including slashes.
 */
export function matchPath(pattern: string, path: string): Parameters | undefined {
  const wanted = pattern.split("/");
  const given = path.split("/");
  const parameters: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index];
    if (part.endsWith("*")) {
      parameters[part.slice(1, -1)] = given.slice(index).map(decodePart).join("/");
      return parameters;
    }
    if (value === undefined || (value === "" && part !== "")) return undefined;
    if (part.startsWith(":")) parameters[part.slice(1)] = decodePart(value);
    else if (part !== value) return undefined;
  }
  return given.length === wanted.length ? parameters : undefined;
}

function decodePart(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A percent sign without a valid code after it: returns the text unchanged.
    return text;
  }
}
