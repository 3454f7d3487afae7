/** The path of the console, and a check of paths in the console that pages may link to. */

export const CONSOLE = "/console";

/** Limits the characters of such a path: enough for every page of the console, and few enough for a hidden field. */
const PATH_CHARS_MAX = 1_000;

/**
 * Returns the path with its query if it is a path of the console. Otherwise returns an empty text, because a link
 * must not lead to another site.
 */
export function consolePathOf(text: string): string {
  if (text.length > PATH_CHARS_MAX || !text.startsWith(CONSOLE)) return "";
  // The URL parser resolves ".." and converts backslashes to slashes.
  const { pathname, search } = new URL(text, "http://own.invalid");
  return pathname === CONSOLE || pathname.startsWith(`${CONSOLE}/`) ? pathname + search : "";
}
