/**
 * Makes declarations of `trunkline/agents` for editors, because an editor would check the sources themselves with the
 * settings of the app's project.
 */
import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { IS_PACKAGE, REPOSITORY } from "../tools.ts";
import { CommandFailure } from "./command.ts";

/** The folder that `exports` of package.json names in a clone. In the package, declarations lie beside the code. */
const FOLDER = join(REPOSITORY, "declarations");
const ENTRY = "actors/apps/package/index.ts";
export const COMPILER = join(REPOSITORY, "node_modules/typescript/bin/tsc");
const COMPILER_MS_MAX = 120_000;

/** Makes them where they are missing or older than the sources. The package has no sources, and has them. */
export function makeDeclarations(): void {
  if (IS_PACKAGE) return;
  const made = statSync(join(FOLDER, "actors/apps/package/index.d.ts"), { throwIfNoEntry: false });
  const sources = ["actors/apps/{package,process}/**/*.ts", "schemas/**/*.ts"].flatMap((pattern) =>
    globSync(pattern, { cwd: REPOSITORY }),
  );
  const newest = Math.max(...sources.map((path) => statSync(join(REPOSITORY, path)).mtimeMs));
  if (made && made.mtimeMs >= newest) return;
  // Without the compiler, as in an image of the platform, no app is written.
  if (!existsSync(COMPILER)) return;
  const next = mkdtempSync(`${FOLDER}.`);
  try {
    compileDeclarations(next);
    rmSync(FOLDER, { recursive: true, force: true });
    renameSync(next, FOLDER);
  } catch (error) {
    // Another command has made the folder first.
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
