/** Reads the commands of a guide, so that tests run what people read. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

/**
 * Guides work in a folder that `mktemp -d` makes. Put before a guide's commands, this makes it "work" in the home
 * folder.
 */
export const WORK_FOLDER = 'mktemp() { mkdir -p "$HOME/work" && echo "$HOME/work"; }\n';

/** Returns the shell blocks of a Markdown file in order. `path` is relative to the repository. */
export function shellBlocksOf(path: string): string[] {
  const text = readFileSync(join(REPOSITORY, path), "utf8");
  return Array.from(text.matchAll(/```sh\n([\s\S]*?)```/g), ([, lines = ""]) => lines);
}
