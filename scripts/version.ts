/** Reads this program's version from package.json. */
import { readFileSync } from "node:fs";
import { REPOSITORY } from "./tools.ts";

export function version(): string {
  const text = readFileSync(`${REPOSITORY}/package.json`, "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
