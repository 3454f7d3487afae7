/** Provides the real git-lfs to a test, in a folder for the PATH. */
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { goTool } from "./go-tool.ts";

/** Creates a folder in `parent` that contains git-lfs, and returns its path. Returns undefined if Go is missing. */
export async function gitLfs(parent: string): Promise<string | undefined> {
  const path = await goTool({
    name: "git-lfs",
    version: "3.7.1",
    package: "github.com/git-lfs/git-lfs/v3",
    folder: "gitlfs",
  });
  if (path === undefined) return undefined;
  const folder = join(parent, "bin");
  await mkdir(folder);
  await symlink(path, join(folder, "git-lfs"));
  return folder;
}
