/**
 * `trunkline admin restore`: restores a backup into an empty bus. The bus is a set of outside servers, or the
 * embedded server of an empty data folder.
 */
import { existsSync, mkdirSync } from "node:fs";
import { resolve } from "node:path";
import { Bus } from "../../actors/runtime/bus/bus.ts";
import { configFromEnvironment } from "../config.ts";
import { lockDataDir } from "../data-lock.ts";
import { DiskRoom } from "../disk-room.ts";
import { EmbeddedNats } from "../embedded-nats.ts";
import { createLogger } from "../logger.ts";
import { NATS_SERVER_RESTORE_MIN } from "../tools.ts";
import { type Backup, BackupFolder, DamagedBackup } from "./backup/backup-folder.ts";
import { refuseNewerBackup, restoreBackup } from "./backup/restore-backup.ts";
import { UsageError } from "./usage-error.ts";
import { withBus } from "./with-bus.ts";

export async function adminRestore(
  parameters: readonly string[],
  environment: NodeJS.ProcessEnv,
  print: (text: string) => void = console.log,
): Promise<void> {
  const { path, from } = readParameters(parameters);
  const config = configFromEnvironment(environment);
  if (!existsSync(path)) throw new Error(`Cannot read "${path}": there is no such folder`);
  const folder = new BackupFolder(resolve(path));
  const backup = await chosen(folder, from);
  refuseNewerBackup(backup);
  // Verifies all files of the backup before the restore changes anything.
  await folder.verify(backup);
  const restored = (stream: string, messages: number) =>
    print(`${stream}: ${messages} messages restored and compared`);
  const restore = (bus: Bus) =>
    restoreBackup({ bus, folder, replicas: config.replicas, restored }, backup);
  if (config.natsUrl !== undefined) await withBus(environment, restore, { layout: "none" });
  else await withEmbeddedBus(config.dataDir, restore);
  print(`Restored the backup of ${backup.moment}
Before the first start, copy secrets.key and credentials.json into the data folder, or set TRUNKLINE_SECRETS_KEY.`);
}

function readParameters(parameters: readonly string[]): { path: string; from?: string } {
  const [path, flag, from, ...more] = parameters;
  if (path === undefined || path.startsWith("-"))
    throw new UsageError('Cannot run "admin restore": expected a folder of backups after it');
  if (flag === undefined) return { path };
  if (flag !== "--from" || from === undefined || more.length > 0)
    throw new UsageError(
      'Cannot run "admin restore": expected nothing after the folder, or --from and the moment of a backup',
    );
  return { path, from };
}

/** Returns the backup made at the moment `from`, or the newest backup if `from` is undefined. */
async function chosen(folder: BackupFolder, from: string | undefined): Promise<Backup> {
  const moments = await folder.moments();
  const moment = from ?? moments.at(-1);
  if (moment === undefined)
    throw new Error(`Cannot restore from "${folder.path}": it has no finished backup`);
  if (!moments.includes(moment))
    throw new Error(
      `Cannot restore from "${folder.path}": expected --from one of ${moments.join(", ")}, found "${moment}"`,
    );
  try {
    return await folder.read(moment);
  } catch (error) {
    if (!(error instanceof DamagedBackup)) throw error;
    const others = moments.filter((one) => one !== moment);
    const hint =
      others.length > 0
        ? `; bring this file back from a copy of the folder, or restore another backup with --from one of ${others.join(", ")}`
        : "";
    throw new Error(`${error.message}${hint}`, { cause: error });
  }
}

/** Runs the embedded server of a data folder only for the restore. No instance may use the folder. */
async function withEmbeddedBus(dataDir: string, use: (bus: Bus) => Promise<void>): Promise<void> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  using _ = lockDataDir(dataDir);
  const logger = createLogger({ level: "error" });
  const disk = await DiskRoom.start(dataDir, logger);
  try {
    const versionMin = NATS_SERVER_RESTORE_MIN;
    const server = await EmbeddedNats.start(dataDir, { logger, disk, versionMin });
    try {
      const bus = await Bus.connect({ ...server.access("admin"), name: "trunkline-admin" });
      await use(bus).finally(() => bus.close());
    } finally {
      await server.stop();
    }
  } finally {
    await disk.stop();
  }
}
