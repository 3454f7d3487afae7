/** The router: the address bar holds which page is shown, so that every page can be linked to. */
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The path below which the platform is; empty at the root of its host. */
export const ROOT = document.documentElement.dataset.root ?? "";
const BASE = `${ROOT}/console`;

/** Pages of an area: the pattern of their path below the area, and what shows them. The first match counts. */
export type Pages = Readonly<Record<string, ComponentType<PageParameters>>>;

/** Parameters of the pattern, such as `clientId` of ":clientId". */
export interface PageParameters {
  parameters: Readonly<Record<string, string>>;
}

interface Place {
  /** The path below the console, without slashes at its ends. */
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

/** Follows the address bar. */
export function usePlace(): Place {
  const [place, setPlace] = useState(currentPlace);
  useEffect(() => {
    const follow = () => setPlace(currentPlace());
    listeners.add(follow);
    return () => void listeners.delete(follow);
  }, []);
  return place;
}

/** What the page says, at first what the page before gave it to say. */
export function useSaid() {
  const [said, setSaid] = useState<string>(() => history.state?.said ?? "");
  // On the way back to this page, or after a reload, it is no news.
  useEffect(() => history.replaceState(null, ""), []);
  return [said, setSaid] as const;
}

/** Returns the address of a path below the console. */
export const addressOf = (path: string) => (path === "" ? BASE : `${BASE}/${path}`);

interface Navigation {
  /** The way back skips this page. */
  replace?: boolean;
  /** What the other page says once. */
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
 * Matches a path with a pattern such as "clients/:id". Returns its parameters, or undefined. A last part such as
 * ":path*" takes the rest with its slashes.
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
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
    // A percent sign that begins no code stands for itself.
    return text;
  }
}
