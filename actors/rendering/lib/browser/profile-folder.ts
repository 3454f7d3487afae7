/**
 * Creates the folders in which browsers store their files, one for each browser. Folders of workers that were killed
 * are removed.
 */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

// The host name is part of the folder name: containers may share a folder for temporary files, but they do not share
// process ids.
const OF_THIS_HOST = `trunkline-chromium-${hostname().replace(/[^A-Za-z0-9-]/g, "-")}-`;

/**
 * Creates a new folder, whose name contains the id of this process. Removes the folders of processes that no longer
 * exist.
 */
export async function createProfileFolder(parent = tmpdir()): Promise<string> {
  await removeOrphans(parent);
  return await mkdtemp(join(parent, `${OF_THIS_HOST}${process.pid}-`));
}

async function removeOrphans(parent: string): Promise<void> {
  const orphans = (await readdir(parent)).filter((name) => {
    const [, pid] =
      /^(\d+)-/.exec(name.startsWith(OF_THIS_HOST) ? name.slice(OF_THIS_HOST.length) : "") ?? [];
    return pid !== undefined && !isAlive(Number(pid));
  });
  // Errors are ignored: a folder may belong to another user, or another worker may remove it at the same time. That
  // must not prevent the start of a browser.
  await Promise.allSettled(
    orphans.map((name) => rm(join(parent, name), { recursive: true, force: true })),
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user exists, although this process may not send it a signal.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}
