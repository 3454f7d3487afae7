/** Waits until the spawner process starts git, as in a gateway that has run for a while. */
import { until } from "../../../scripts/testing/until.ts";
import { runGit } from "../process/git-process.ts";

const PARENT_OF_GIT = ["-c", "alias.parent=!ps -o ppid= -p $PPID", "parent"];

export async function warmSpawner(cwd: string): Promise<void> {
  const { signal } = new AbortController();
  await until("the spawner process starts git", async () => {
    const { stdout } = await runGit(PARENT_OF_GIT, { cwd, signal });
    return Number(stdout.toString()) !== process.pid;
  });
}
