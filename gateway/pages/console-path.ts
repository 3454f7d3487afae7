/** The address of the console, and addresses within it that a page may lead to. */

export const CONSOLE = "/console";

/** Long enough for each page of the console, and short enough for a hidden field. */
const PATH_CHARS_MAX = 1_000;

/** Returns the path with its query if it is one of the console's, else nothing: a link must not lead elsewhere. */
export function consolePathOf(text: string): string {
  if (text.length > PATH_CHARS_MAX || !text.startsWith(CONSOLE)) return "";
  // The parser resolves "..", and turns backslashes into slashes.
  const { pathname, search } = new URL(text, "http://own.invalid");
  return pathname === CONSOLE || pathname.startsWith(`${CONSOLE}/`) ? pathname + search : "";
}
