/** Returns the command and the environment with which `npm start` runs the program. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

export function startCommand(): string[] {
  return [process.execPath, ...startFlags(), join(REPOSITORY, "scripts/start.ts")];
}

/** Returns the flags of Node with which `npm start` runs the program. */
export function startFlags(): string[] {
  const text = startScript();
  const flags = /exec "\$node" ((?:--\S+ )+)"\$here\/start/.exec(text)?.[1];
  if (flags === undefined) throw new Error(`Cannot read the start command in: ${text}`);
  return flags.split(" ").filter((flag) => flag !== "");
}

/**
 * Returns the settings of Node and of its C library with which `npm start` runs the program. Without them, a process
 * of a test or a benchmark takes more memory than the product.
 */
export function startEnvironment(): Record<string, string> {
  const exports = startScript().matchAll(/^ +export (\w+)=(\d+)$/gm);
  return Object.fromEntries(Array.from(exports, ([, name = "", value = ""]) => [name, value]));
}

const startScript = () => readFileSync(join(REPOSITORY, "scripts/trunkline"), "utf8");
