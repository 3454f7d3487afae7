/** The source files that the rules of the repository check. */

export interface SourceFile {
  /** Path relative to the repository's root, with slashes. */
  path: string;
  text: string;
}

/**
 * Returns true for tests and benchmarks, including their helpers and suites. They may import everything, and no other
 * code may import them.
 */
export const isTest = (path: string) =>
  /\.(test|contract)\.ts$/.test(path) || /(^|\/)(testing|bench)\//.test(path);
