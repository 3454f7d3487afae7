/** Finds the published conformance tests in a folder beside the repository. They are not part of the repository. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

const FOLDER = join(REPOSITORY, "../shared/conformance");

/** Text to append to a `describe` title. The report then shows why the tests are skipped. */
export const CONFORMANCE_NOTE = hasConformance() ? "" : " (skipped: no ../shared/conformance)";

export function hasConformance(): boolean {
  return existsSync(FOLDER);
}

/** A `before` hook that skips the tests if the conformance material is missing. */
export function needsConformance(this: Mocha.Context): void {
  if (!hasConformance()) this.skip();
}

export function conformanceFile(...path: string[]): Buffer {
  return readFileSync(join(FOLDER, ...path));
}

/** Returns the names of the files in one folder of the conformance material, without subfolders. */
export function conformanceFiles(...path: string[]): string[] {
  return readdirSync(join(FOLDER, ...path), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}
