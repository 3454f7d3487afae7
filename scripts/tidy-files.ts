/** The input of every house rule. */

export interface SourceFile {
  /** From the repository's root, with slashes. */
  path: string;
  text: string;
}

/** Tests and measurements, their helpers and suites: they may reach wherever they need, and nothing reaches them. */
export const isTest = (path: string) =>
  /\.(test|contract)\.ts$/.test(path) || /(^|\/)(testing|bench)\//.test(path);
