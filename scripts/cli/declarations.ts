/**
 * Generates the type declarations of `trunkline/agents`. Editors need them: without declarations, an editor would
 * check the package's TypeScript sources with the settings of the app's project.
 */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { IS_PACKAGE, REPOSITORY } from "../tools.ts";
import { CommandFailure } from "./command.ts";

/**
 * In a clone of the repository, `exports` of package.json names this folder. In the npm package, the declarations are
 * beside the code.
 */
const FOLDER = join(REPOSITORY, "declarations");
const ENTRY = "actors/apps/package/index.ts";
export const COMPILER = join(REPOSITORY, "node_modules/typescript/bin/tsc");
const COMPILER_MS_MAX = 120_000;

/**
 * Generates the declarations if they are missing or older than the sources. Does nothing in the npm package, which
 * already contains the declarations.
 */
export function makeDeclarations(): void {
  if (IS_PACKAGE) return;
  const made = statSync(join(FOLDER, "actors/apps/package/index.d.ts"), { throwIfNoEntry: false });
  const sources = ["actors/apps/{package,process}/**/*.ts", "schemas/**/*.ts"].flatMap((pattern) =>
    globSync(pattern, { cwd: REPOSITORY }),
  );
  const newest = Math.max(...sources.map((path) => statSync(join(REPOSITORY, path)).mtimeMs));
  if (made && made.mtimeMs >= newest) return;
  // Nobody writes apps where the compiler is missing, as in an image of the platform.
  if (!existsSync(COMPILER)) return;
  const next = mkdtempSync(`${FOLDER}.`);
  try {
    compileDeclarations(next);
    rmSync(FOLDER, { recursive: true, force: true });
    renameSync(next, FOLDER);
  } catch (error) {
    // Another command has created the folder at the same time, so its declarations are used.
    if (!(error instanceof Error && "code" in error && error.code === "ENOTEMPTY")) throw error;
  } finally {
    rmSync(next, { recursive: true, force: true });
  }
}

/** Writes the declarations of `trunkline/agents` into a folder, in the layout of the sources. */
export function compileDeclarations(folder: string): void {
  const options = ["--ignoreConfig", "--declaration", "--emitDeclarationOnly", "--stripInternal"];
  const language = ["--module", "nodenext", "--target", "esnext", "--allowImportingTsExtensions"];
  const checks = ["--strict", "--skipLibCheck", "--types", "node"];
  const places = ["--rootDir", ".", "--outDir", folder];
  try {
    execFileSync(
      process.execPath,
      [COMPILER, ENTRY, ...options, ...language, ...checks, ...places],
      { cwd: REPOSITORY, timeout: COMPILER_MS_MAX, encoding: "utf8" },
    );
  } catch (error) {
    const output =
      error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
    throw new CommandFailure(`Cannot make declarations of trunkline/agents: ${output}`, {
      cause: error,
    });
  }
}
