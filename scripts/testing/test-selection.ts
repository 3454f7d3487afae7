/**
 * Selects the test files of a run: the files of a suite, or the files that the command line names by path or by test
 * name.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { REPOSITORY } from "../tools.ts";

/**
 * `quick` is the suite of `npm test`. `faults` are tests that kill processes, inject faults, run clusters or send
 * hostile input.
 */
export type Suite = "quick" | "faults";

export interface Selection {
  /** Paths relative to the repository's root. Files outside of the repository have absolute paths. */
  files: string[];
  /** If set, only tests whose full name matches this pattern run. */
  grep?: string;
}

const FILES = "{schemas,agents,actors,gateway,deploy,scripts}/**/*.test.ts";
/** The benchmarks install packages for themselves, which bring tests of their own. */
const isPackages = (path: string) => path.split(sep).includes("node_modules");

/** Returns the suite of a file, which is part of the file's name. */
export const suiteOf = (file: string): Suite =>
  file.endsWith(".faults.test.ts") ? "faults" : "quick";

export function allTestFiles(): string[] {
  return globSync(FILES, { cwd: REPOSITORY, exclude: isPackages }).sort();
}

/**
 * Selects all files of the suite if `wanted` is empty. If each word is the path of a test file in either suite, or a
 * part of the paths of some files in the suite, selects these files. Otherwise all words together are the name of a
 * test in either suite. Returns no files if nothing matches.
 */
export function selectTests(suite: Suite, wanted: readonly string[]): Selection {
  const files = allTestFiles();
  const ofSuite = files.filter((file) => suiteOf(file) === suite);
  if (wanted.length === 0) return { files: ofSuite };
  const named = wanted.map((word) => filesAt(word, ofSuite));
  if (named.every((some) => some.length > 0)) return { files: [...new Set(named.flat())] };
  const name = wanted.join(" ");
  return { files: filesWithTest(name, files), grep: RegExp.escape(name) };
}

function filesAt(word: string, files: readonly string[]): string[] {
  if (word.endsWith(".test.ts") && existsSync(word)) {
    const path = relative(REPOSITORY, resolve(word));
    return [path.startsWith("..") ? resolve(word) : path];
  }
  return files.filter((file) => file.includes(word.replace(/^\.\//, "")));
}

/**
 * Returns the files that may contain a test of this name: files that contain the whole name, or else files that
 * contain all its words.
 */
function filesWithTest(name: string, files: readonly string[]): string[] {
  const texts = files.map((file) => ({
    file,
    text: readFileSync(join(REPOSITORY, file), "utf8"),
  }));
  const whole = texts.filter(({ text }) => text.includes(name));
  const words = name.split(/\s+/);
  const some =
    whole.length > 0
      ? whole
      : texts.filter(({ text }) => words.every((word) => text.includes(word)));
  return some.map(({ file }) => file);
}
