/**
 * `trunkline admin backup`: copies all data of the bus into a folder while the platform runs, or verifies the backups of
 * a folder.
 */
import { resolve } from "node:path";
import { BackupFolder, DamagedBackup } from "./backup/backup-folder.ts";
import { type BackupResult, takeBackup } from "./backup/take-backup.ts";
import { verifyFolder } from "./backup/verify-folder.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

/** Bytes of a megabyte. Disk sizes use this decimal unit. */
const MB = 1_000_000;

export async function adminBackup(
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv,
  print: (text: string) => void = console.log,
): Promise<void> {
  const { path, keep, isVerify } = readParameters(parameters);
  const folder = new BackupFolder(resolve(path));
  if (isVerify) return print(await verify(folder));
  using _ = await folder.prepare();
  const result = await withBus(environment, (bus) => takeBackup(bus, folder));
  for (const note of result.notes) print(note);
  print(reportOf(result, folder.path));
  if (keep === undefined) return;
  for (const moment of await removeOld(folder, keep)) print(`Removed the backup of ${moment}`);
}

async function removeOld(folder: BackupFolder, keep: number): Promise<string[]> {
  try {
    return await folder.keep(keep);
  } catch (error) {
    if (!(error instanceof DamagedBackup)) throw error;
    throw new Error(
      `The new backup is whole, but no old one was removed: ${error.message}. Bring this file back from a copy of the folder, or remove it; the next backup with --keep then removes the old ones`,
      { cause: error },
    );
  }
}

/** Returns a report of all backups. Throws if a file is missing or damaged. */
async function verify(folder: BackupFolder): Promise<string> {
  const { backups, files, problems, harmed } = await verifyFolder(folder);
  if (backups === 0) throw new Error(`Cannot verify "${folder.path}": it has no finished backup`);
  if (problems.length === 0)
    return `Verified ${backups} backups in "${folder.path}": all of their ${files} files are whole`;
  const lines = harmed.map(
    (moment) => `Cannot restore the backup of ${moment}: its file is ${folder.pathOf(moment)}`,
  );
  throw new Error(`Cannot restore all backups in "${folder.path}": ${problems.length} of their ${files} files are missing or damaged
${[...problems, ...lines].join("\n")}
Remove the damaged files, and make a backup: it reads their streams anew. Then verify again, and remove the files of the
backups that still cannot be restored.`);
}

interface Parameters {
  path: string;
  keep?: number;
  isVerify?: true;
}

function readParameters(parameters: readonly string[]): Parameters {
  const [path, flag, count, ...more] = parameters;
  if (path === undefined || path.startsWith("-"))
    throw new UsageError('Cannot run "admin backup": expected a folder after it');
  if (flag === undefined) return { path };
  if (flag === "--verify" && count === undefined) return { path, isVerify: true };
  const keep = Number(count);
  if (flag !== "--keep" || more.length > 0 || !Number.isSafeInteger(keep) || keep < 1)
    throw new UsageError(
      'Cannot run "admin backup": expected nothing after the folder, --verify, or --keep and a number from 1 on',
    );
  return { path, keep };
}

function reportOf({ backup, addedBytes, pausedMs }: BackupResult, path: string): string {
  const { streams, moment } = backup;
  const messages = streams.reduce((sum, stream) => sum + stream.messages, 0);
  const size = (addedBytes / MB).toFixed(1);
  return `Backup of ${moment} in ${path}
${messages} messages of ${streams.length} streams; ${size} MB are new in the folder; writes paused for ${Math.ceil(pausedMs)} ms
The backup holds hashes of passwords and tokens, and signing keys: protect it as you protect the data itself.
These are not on the bus, so keep them elsewhere: the file secrets.key of the data folder, or TRUNKLINE_SECRETS_KEY
(without it, secrets of apps and webhooks are lost), credentials.json, and the settings. git/ in the data folder is a
cache and needs no backup.`;
}
