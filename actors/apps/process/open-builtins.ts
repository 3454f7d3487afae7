/** Which modules of Node code of apps may use: those that compute, and reach nothing outside of the process. */

export const OPEN_BUILTINS: ReadonlySet<string> = new Set([
  "assert",
  "assert/strict",
  "buffer",
  "crypto",
  "events",
  "path",
  "path/posix",
  "punycode",
  "querystring",
  "stream",
  "stream/consumers",
  "stream/promises",
  "stream/web",
  "string_decoder",
  "timers",
  "timers/promises",
  "url",
  "util",
  "util/types",
  "zlib",
]);

export const bareName = (specifier: string) => specifier.replace(/^node:/, "");
