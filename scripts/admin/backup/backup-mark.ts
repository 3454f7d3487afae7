/**
 * Marks of backups on the bus. They show whether the data of the bus still follows the newest backup of a folder. A
 * rollback of the data folder or of the machine sets the bus back: other messages then get the sequences that earlier
 * backups have stored.
 */
import { randomUUID } from "node:crypto";
import { headers } from "@nats-io/transport-node";
import { z } from "zod";
import type { Bus } from "../../../actors/runtime/bus/bus.ts";
import { backupMarkSubject, stateBucket, stateSubjects } from "../../../schemas/subjects.ts";

/**
 * Lifetime of a mark on the bus: a folder without a new backup for longer begins anew. Without it, the marks of folders
 * that are no longer used would stay forever.
 */
const MARK_TTL = "9600h";
const STREAM = stateSubjects(stateBucket(0)).stream;

/**
 * `series` is the same for all backups of a folder that follow each other. The bus has the `id` of the newest backup of
 * each series.
 */
export const BackupMark = z.object({ series: z.string(), id: z.string() });
export type BackupMark = z.output<typeof BackupMark>;

/** Returns the mark of a backup that follows `previous`, or that begins a series. */
export const nextMark = (previous?: BackupMark): BackupMark => ({
  series: previous?.series ?? randomUUID(),
  id: randomUUID(),
});

/**
 * Returns true if the bus has had all messages of the backup with this mark, and was not set back since. Without a mark,
 * an older version made the backup; then it counts as long as no other backup has left a mark.
 */
export async function followsMark(bus: Bus, mark: BackupMark | undefined): Promise<boolean> {
  if (!mark) return (await bus.subjectsOf(STREAM, backupMarkSubject("*"))).length === 0;
  const stored = await bus.readLast(STREAM, backupMarkSubject(mark.series));
  return stored?.string() === mark.id;
}

/**
 * Stores the mark of a backup. The caller must do this after the moment of the backup: a bus that is set back to an
 * earlier state then lacks the mark.
 */
export async function storeMark(bus: Bus, { series, id }: BackupMark): Promise<void> {
  const expiring = headers();
  expiring.set("Nats-TTL", MARK_TTL);
  const subject = backupMarkSubject(series);
  await bus.jetstream.jetstream().publish(subject, id, { headers: expiring });
}
