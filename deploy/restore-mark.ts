/** A stream that exists on the bus during a restore, so that no process starts on a part of the data. */
import { JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";

export const RESTORE_MARK = "RESTORING";
const NO_STREAM = 10059;

export async function markRestore(jetstream: JetStreamManager): Promise<void> {
  const description = "A backup is being restored: see trunkline admin restore";
  await jetstream.streams.add({ name: RESTORE_MARK, subjects: ["restoring"], description });
}

export async function isRestoring(jetstream: JetStreamManager): Promise<boolean> {
  try {
    await jetstream.streams.info(RESTORE_MARK);
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === NO_STREAM) return false;
    throw error;
  }
}

export async function refuseUnfinishedRestore(jetstream: JetStreamManager): Promise<void> {
  if (!(await isRestoring(jetstream))) return;
  throw new Error(
    "Cannot start: the restore of a backup is under way or was interrupted; wait for it, or run the same trunkline admin restore again, which begins anew",
  );
}
