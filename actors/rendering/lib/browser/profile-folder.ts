/** Folders in which browsers keep their files: one each, and none left of a worker that was killed. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";

// Containers may share a folder for temporary files, but no process ids.
const OF_THIS_HOST = `trunkline-chromium-${hostname().replace(/[^A-Za-z0-9-]/g, "-")}-`;

/** A new folder, named for this process. Removes those of processes that are no more. */
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
  // A folder that belongs to another user, or that another worker removes, must not keep a browser from its start.
  await Promise.allSettled(
    orphans.map((name) => rm(join(parent, name), { recursive: true, force: true })),
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // A process of another user cannot be signalled, but it lives.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}
