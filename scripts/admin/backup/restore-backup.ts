/**
 * Restores a backup into an empty bus. The streams of the state are restored last. A mark on the bus prevents the
 * platform from starting on incomplete data. If a restore is killed, the mark also lets the next run of the command
 * begin again.
 */
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { NEWEST_FORMAT } from "../../../deploy/data-format.ts";
import {
  isRestoring,
  markRestore,
  RESTORE_MARK,
  RestoreHold,
} from "../../../deploy/restore-mark.ts";
import { whenClusterIsReady } from "../../../deploy/streams.ts";
import { isState } from "../../../schemas/subjects.ts";
import { isAtLeast, NATS_SERVER_RESTORE_MIN } from "../../tools.ts";
import { version } from "../../version.ts";
import type { Backup, BackupFolder } from "./backup-folder.ts";
import { restoreStream } from "./restore-stream.ts";

/** Maximum number of stream names in an error message. */
const NAMES_SHOWN = 5;

interface RestoreParts {
  bus: Bus;
  folder: BackupFolder;
  replicas: number;
  restored(stream: string, messages: number): void;
}

/** Throws if a newer version made the backup in a data format that this version cannot read. */
export function refuseNewerBackup({ format, version: made, moment }: Backup): void {
  if (format <= NEWEST_FORMAT) return;
  throw new Error(
    `Cannot restore the backup of ${moment}: version ${made} of Trunkline made it with data of format ${format}, and this version ${version()} reads formats up to ${NEWEST_FORMAT}; restore it with version ${made} or newer`,
  );
}

/** Restores a backup. The caller must have verified the backup's files. */
export async function restoreBackup(parts: RestoreParts, backup: Backup): Promise<void> {
  const { bus } = parts;
  const { streams } = bus.jetstream;
  refuseOldServer(bus.connection.info?.version ?? "0");
  let isAgain = false;
  /** True after the first attempt to make the mark: a mark that is found then is not of an earlier restore. */
  let isMarking = false;
  await whenClusterIsReady(async () => {
    isAgain = !isMarking && (await isRestoring(bus.jetstream));
    if (isAgain) return;
    await refuseOtherStreams(bus).catch(async (error: unknown) => {
      // Removes this restore's mark. With the mark, the next restore would delete the other streams as parts of an
      // interrupted restore.
      if (isMarking) await streams.delete(RESTORE_MARK).catch(() => {});
      throw error;
    });
    isMarking = true;
    await markRestore(bus.jetstream, parts.replicas);
  });
  const hold = await RestoreHold.take(bus.jetstream);
  try {
    if (isAgain) for (const name of await dataStreamsOf(bus)) await streams.delete(name);
    await restoreStreams(parts, backup, hold);
    await streams.delete(RESTORE_MARK);
  } finally {
    hold.stop();
  }
}

/**
 * Throws if the bus has streams other than the restore's mark. The mark may exist already: its creation may complete
 * after the timeout of an earlier attempt.
 */
async function refuseOtherStreams(bus: Bus): Promise<void> {
  const found = await dataStreamsOf(bus);
  if (found.length === 0) return;
  const more = found.length > NAMES_SHOWN ? ` and ${found.length - NAMES_SHOWN} more` : "";
  throw new Error(
    `Cannot restore: the bus is not empty: it has ${found.slice(0, NAMES_SHOWN).join(", ")}${more}; expected a bus without streams, such as that of a new data folder`,
  );
}

async function restoreStreams(
  parts: RestoreParts,
  backup: Backup,
  hold: RestoreHold,
): Promise<void> {
  const begun = new Set<string>();
  const refuseIfLost = async () => {
    if (!(await hold.isHeld()))
      throw new Error("Cannot restore: another restore has begun on this bus meanwhile");
  };
  try {
    for (const stream of backup.streams.toSorted((a, b) => rank(a.name) - rank(b.name))) {
      await refuseIfLost();
      begun.add(stream.name);
      parts.restored(stream.name, await restoreStream(parts, stream));
    }
    await refuseIfLost();
  } catch (cause) {
    await removeBegun(parts.bus, begun, hold);
    throw cause;
  }
}

/**
 * Removes the streams that this restore has created. Removes the mark only if no other stream is left, so that no
 * role starts on incomplete data.
 */
async function removeBegun(bus: Bus, begun: ReadonlySet<string>, hold: RestoreHold): Promise<void> {
  const { streams } = bus.jetstream;
  try {
    if (!(await hold.isHeld())) return; // The streams are those of the other restore.
    for (const name of await dataStreamsOf(bus)) if (begun.has(name)) await streams.delete(name);
    if ((await dataStreamsOf(bus)).length === 0) await streams.delete(RESTORE_MARK);
  } catch {
    // Errors here are ignored: the caller reports why the restore failed. The mark stays on the bus, and the next
    // restore begins again from the start.
  }
}

function refuseOldServer(version: string): void {
  if (isAtLeast(version, NATS_SERVER_RESTORE_MIN)) return;
  throw new Error(
    `Cannot restore: nats-server ${NATS_SERVER_RESTORE_MIN} or newer is needed, it is ${version}`,
  );
}

/** The state is restored last: a bus without state has no accounts, so nobody can use the incomplete data. */
const rank = (name: string) => (isState(name) ? 1 : 0);

/** Returns the names of all streams except the restore's mark. */
async function dataStreamsOf(bus: Bus): Promise<string[]> {
  return (await namesOf(bus)).filter((name) => name !== RESTORE_MARK);
}

async function namesOf(bus: Bus): Promise<string[]> {
  const names: string[] = [];
  for await (const name of bus.jetstream.streams.names()) names.push(name);
  return names;
}
