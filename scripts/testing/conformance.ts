/** Finds the published test material that lies beside the repository and is no part of it. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

const FOLDER = join(REPOSITORY, "../shared/conformance");

/** For `describe`: says in the report why its tests are skipped. */
export const CONFORMANCE_NOTE = hasConformance() ? "" : " (skipped: no ../shared/conformance)";

export function hasConformance(): boolean {
  return existsSync(FOLDER);
}

/** Skips what follows where the material is absent. To be given to `before`. */
export function needsConformance(this: Mocha.Context): void {
  if (!hasConformance()) this.skip();
}

export function conformanceFile(...path: string[]): Buffer {
  return readFileSync(join(FOLDER, ...path));
}

/** Names of the files, not of the folders, in one of its folders. */
export function conformanceFiles(...path: string[]): string[] {
  return readdirSync(join(FOLDER, ...path), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}
