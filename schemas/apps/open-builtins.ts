/**
 * The built-in modules of Node that app code may use, and the form in which a bundle marks an import of another one.
 */

/** Modules that only compute, and have no effect outside the process. */
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

/** Modules that the process replaces with a restricted version. */
export const REPLACED_BUILTINS = ["async_hooks", "module", "process"] as const;

export const bareName = (specifier: string) => specifier.replace(/^node:/, "");

const IMPORTER = "?importer=";

/**
 * Returns a specifier that names a closed module and the package or file that imports it. The error at the module's
 * first use shows both.
 */
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
