/** Reads the commands of a guide, so that tests run the same commands as its readers. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { REPOSITORY } from "../tools.ts";

/**
 * Replaces `mktemp` with a function that creates the folder "work" in the home folder. Put it before the commands of
 * a guide, which work in a folder that `mktemp -d` creates.
 */
export const WORK_FOLDER = 'mktemp() { mkdir -p "$HOME/work" && echo "$HOME/work"; }\n';

/** Returns the shell blocks of a Markdown file in order. `path` is relative to the repository. */
export function shellBlocksOf(path: string): string[] {
  const text = readFileSync(join(REPOSITORY, path), "utf8");
  return Array.from(text.matchAll(/```sh\n([\s\S]*?)```/g), ([, lines = ""]) => lines);
}
