/** Which built-in modules of Node the code of apps may use, and how a bundle marks an import of any other. */

/** Modules that compute, and reach nothing outside of the process. */
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

/** Modules that the process replaces with a part of them. */
export const REPLACED_BUILTINS = ["async_hooks", "module", "process"] as const;

export const bareName = (specifier: string) => specifier.replace(/^node:/, "");

const IMPORTER = "?importer=";

/** Names a closed module together with the package or file that imports it, for the error at its first use. */
export function closedSpecifier(name: string, importer: string): string {
  return `node:${name}${IMPORTER}${encodeURIComponent(importer)}`;
}

interface ReadSpecifier {
  /** The module that Node would import. */
  module: string;
  /** The module without `node:`. */
  name: string;
  /** The importing package or file, if the bundle names one. */
  importer: string | undefined;
}

export function readSpecifier(specifier: string): ReadSpecifier {
  const [module = "", importer] = specifier.split(IMPORTER);
  const name = bareName(module);
  return { module, name, importer: importer && decodeURIComponent(importer) };
}
