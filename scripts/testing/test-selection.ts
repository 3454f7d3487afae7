/** Chooses the test files of a run: those of a suite, or those that the command line names by path or by test name. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, relative, resolve, sep } from "node:path";
import { REPOSITORY } from "../tools.ts";

/** `quick` is what `npm test` runs; `faults` kills processes, injects faults, runs clusters or sends hostile input. */
export type Suite = "quick" | "faults";

export interface Selection {
  /** From the repository's root; outside of it absolute. */
  files: string[];
  /** Tests run whose full name matches. */
  grep?: string;
}

const FILES = "{schemas,agents,actors,gateway,deploy,scripts}/**/*.test.ts";
/** The benchmarks install packages for themselves, which bring tests of their own. */
const isPackages = (path: string) => path.split(sep).includes("node_modules");

/** A file's name says which suite it belongs to. */
export const suiteOf = (file: string): Suite =>
  file.endsWith(".faults.test.ts") ? "faults" : "quick";

export function allTestFiles(): string[] {
  return globSync(FILES, { cwd: REPOSITORY, exclude: isPackages }).sort();
}

/**
 * Without `wanted` selects every file of the suite. A word that is a file selects it, from either suite; a word that
 * is part of paths selects the suite's files with such a path; all others together are the name of a test. Returns no
 * files where nothing matches.
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

/** Files that may hold a test of this name: those with the name, or else those with all its words. */
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
