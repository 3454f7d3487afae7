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

/** Returns the variables with numbers that `npm start` sets for the program, such as those of the memory allocator. */
export function startVariables(): Record<string, string> {
  const set = startScript().matchAll(/^ +export (?<name>[A-Z_]+)=(?<value>\d+)$/gm);
  return Object.fromEntries(set.map(({ groups }) => [groups?.name ?? "", groups?.value ?? ""]));
}

const startScript = () => readFileSync(join(REPOSITORY, "scripts/trunkline"), "utf8");
