/** Lets only one instance at a time use a data folder. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

const SQLITE_BUSY = 5;

interface DataLock extends Disposable {
  release(): void;
}

/**
 * Takes the lock, or throws an error that names its holder. Uses SQLite, because this is Node's only access to a lock
 * of the operating system: the kernel releases the lock even if the process is killed.
 */
export function lockDataDir(dataDir: string): DataLock {
  const pidFile = join(dataDir, "trunkline.pid");
  const database = new DatabaseSync(join(dataDir, "trunkline.lock"), { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (!(error instanceof Error && "errcode" in error && error.errcode === SQLITE_BUSY)) {
      throw new Error(`Cannot lock "${dataDir}": ${error}`, { cause: error });
    }
    throw new Error(`Cannot use "${dataDir}": another instance holds it (pid ${read(pidFile)})`);
  }
  writeFileSync(pidFile, `${process.pid}\n`);
  const release = () => {
    if (database.isOpen) database.close();
  };
  return { release, [Symbol.dispose]: release };
}

function read(pidFile: string): string {
  try {
    return readFileSync(pidFile, "utf8").trim() || "unknown";
  } catch {
    return "unknown"; // The holder has locked but not yet written it.
  }
}
