/** Finds a path at which new commits have an object, for messages to the person who pushed it. */
import { createInterface } from "node:readline";
import { startGit } from "../process/git-process.ts";
import type { ObjectFolders } from "./tree-depth.ts";

/** Time to find the path of a refused object: some million objects. After that the message names its id alone. */
const OBJECT_PATH_MS = 10_000;

/** Undefined when no new commit leads to the object, or when the search takes too long. */
export async function pathOf(
  id: string,
  { cwd, together }: Pick<ObjectFolders, "cwd" | "together">,
  { tips, known }: { tips: Iterable<string>; known: Iterable<string> },
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = new AbortController();
  const git = startGit(["rev-list", "--objects", "--ignore-missing", "--stdin"], {
    cwd,
    environment: together,
    msMax: OBJECT_PATH_MS,
    signal: AbortSignal.any([signal, found.signal]),
  });
  const revisions = [...tips, ...Array.from(known, (tip) => `^${tip}`)];
  git.stdin.end(`${revisions.join("\n")}\n`);
  try {
    for await (const line of createInterface({ input: git.stdout })) {
      if (line.startsWith(`${id} `)) return line.slice(id.length + 1);
    }
    return undefined;
  } finally {
    found.abort();
    await git.exit;
  }
}
