/** Finds a path of an object in the pushed commits, for messages to the user who pushed it. */
import { createInterface } from "node:readline";
import { startGit } from "../process/git-process.ts";
import type { ObjectFolders } from "./tree-depth.ts";

/**
 * Time limit for finding the path of a refused object. Git visits some million objects in this time. After the limit,
 * the message names only the object's id.
 */
const OBJECT_PATH_MS = 10_000;

/**
 * Returns a path of the object. Returns undefined if no new commit reaches the object, or the search takes too long.
 */
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
    // Unread output would keep `exit` waiting for ever.
    git.stdout.destroy();
    await git.exit;
  }
}
