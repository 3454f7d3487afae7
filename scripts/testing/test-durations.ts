/** The recorded duration of each test file, so that a run can start the longest files first. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Seconds of each file. Files that take less than SHORT_S are absent. */
export type Durations = Record<string, number>;

const PATH = join(import.meta.dirname, "test-durations.json");
/** Files that take less time are not recorded. Their order does not matter, and the record stays small. */
const SHORT_S = 1;

export function readDurations(): Durations {
  return JSON.parse(readFileSync(PATH, "utf8"));
}

export function longestFirst(files: readonly string[], durations: Durations): string[] {
  const of = (file: string) => durations[file] ?? 0;
  return files.toSorted((a, b) => of(b) - of(a));
}

/** Updates the recorded durations by mergeDurations(). */
export function recordDurations(
  seconds: ReadonlyMap<string, number>,
  isThere: (file: string) => boolean,
): void {
  const merged = mergeDurations(readDurations(), seconds, isThere);
  writeFileSync(PATH, `${JSON.stringify(merged, null, 2)}\n`);
}

/**
 * Replaces the recorded seconds of the measured files. Removes short files, and files for which `isThere` returns
 * false.
 */
export function mergeDurations(
  recorded: Durations,
  measured: ReadonlyMap<string, number>,
  isThere: (file: string) => boolean,
): Durations {
  const merged = [...new Map([...Object.entries(recorded), ...measured])]
    .map(([file, seconds]): [string, number] => [file, Math.round(seconds)])
    .filter(([file, seconds]) => isThere(file) && seconds >= SHORT_S)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(merged);
}
