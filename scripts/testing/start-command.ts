/** The program as `npm start` runs it, with the same flags of Node. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

export function startCommand(): string[] {
  const text = readFileSync(join(REPOSITORY, "package.json"), "utf8");
  const { scripts } = JSON.parse(text) as { scripts: { start: string } };
  const flags = /bin\/node ((?:--\S+ )*)scripts\/start\.ts$/.exec(scripts.start)?.[1];
  if (flags === undefined) throw new Error(`Cannot read the start command: "${scripts.start}"`);
  return [
    process.execPath,
    ...flags.split(" ").filter((flag) => flag !== ""),
    join(REPOSITORY, "scripts/start.ts"),
  ];
}
