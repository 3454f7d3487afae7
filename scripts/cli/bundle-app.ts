/** Bundles an app's code and its imports into one ES module. */
import { statSync } from "node:fs";
import {
  type BuildFailure,
  type BuildOptions,
  build,
  formatMessages,
  type Message,
  type Plugin,
} from "esbuild";
import { APP_BUNDLE_BYTES_MAX } from "../../schemas/apps/limits.ts";
import { type AppConfigFile, mainOf } from "./app-config-file.ts";
import { builtInModules } from "./built-in-modules.ts";
import { CommandFailure } from "./command.ts";

/** The package that the platform provides in every app process, so it is never part of a bundle. */
export const OWN_PACKAGE = "trunkline/agents";

export function bundleOptions(
  file: AppConfigFile,
): BuildOptions & { write: false; plugins: Plugin[] } {
  const main = mainOf(file);
  if (!isFile(main)) {
    throw new CommandFailure(
      `${file.path}: "main" names ${file.config.main}, and there is no such file`,
    );
  }
  return {
    entryPoints: [main],
    absWorkingDir: file.folder,
    outfile: "bundle.js",
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    // Chooses the build of each package that needs no file system. Packages for web workers provide it under "worker"
    // or, if missing, under "browser".
    platform: "browser",
    conditions: ["workerd", "worker", "browser"],
    mainFields: ["browser", "module", "main"],
    define: { "process.env.NODE_ENV": '"production"' },
    external: [OWN_PACKAGE],
    // Keeps the names of classes and methods: the platform finds agents and their callable methods by name.
    keepNames: true,
    charset: "utf8",
    logLevel: "silent",
    // With the source map, stack traces show files and lines of the app's sources.
    sourcemap: "inline",
    sourcesContent: false,
    plugins: [builtInModules(file.folder)],
  };
}

/**
 * Bundles the app and prints warnings. Returns the bundle's text. Throws the errors of the code with their positions.
 */
export async function bundleApp(file: AppConfigFile): Promise<string> {
  const options = bundleOptions(file);
  try {
    const { outputFiles, warnings } = await build(options);
    for (const line of await linesOf(warnings, "warning")) console.error(line);
    return checkedBundle(outputFiles[0]?.text ?? "");
  } catch (error) {
    if (!isBuildFailure(error)) throw error;
    throw new CommandFailure((await linesOf(error.errors, "error")).join("\n"), { cause: error });
  }
}

/**
 * Returns the bundle. Removes the source map if the bundle is too large with it. Throws if the bundle is also too
 * large without it.
 */
export function checkedBundle(bundle: string): string {
  if (Buffer.byteLength(bundle) <= APP_BUNDLE_BYTES_MAX) return bundle;
  const code = codeOf(bundle);
  const bytes = Buffer.byteLength(code);
  if (bytes <= APP_BUNDLE_BYTES_MAX) {
    console.error(
      `warning: the source map is left out, since with it the bundle has more than ${APP_BUNDLE_BYTES_MAX} bytes`,
    );
    return code;
  }
  throw new CommandFailure(
    `Cannot deploy: the bundle has ${bytes} bytes, and may have ${APP_BUNDLE_BYTES_MAX}`,
  );
}

/** Returns the bundle without its source map. */
export function codeOf(bundle: string): string {
  const at = bundle.lastIndexOf("\n//# sourceMappingURL=data:");
  return at < 0 ? bundle : bundle.slice(0, at + 1);
}

/** Formats messages as compilers do: each begins with its file and line. */
export async function linesOf(messages: Message[], kind: "error" | "warning"): Promise<string[]> {
  const color = kind === "error" ? process.stderr.isTTY === true : false;
  const lines = await formatMessages(messages, { kind, color });
  return lines.map((line) => line.trimEnd());
}

const isBuildFailure = (error: unknown): error is BuildFailure =>
  error instanceof Error && "errors" in error && Array.isArray(error.errors);

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
