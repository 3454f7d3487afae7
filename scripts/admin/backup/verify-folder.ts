/**
 * Verifies a whole folder of backups. A backup trusts the parts of the earlier ones without reading them, so one damaged
 * part harms all backups that need it.
 */
import type { BackupFolder, StoredFile } from "./backup-folder.ts";

interface Checked {
  problem: string | undefined;
  /** The moments of the backups that need the file. */
  moments: string[];
}

export interface Verified {
  backups: number;
  files: number;
  /** One line for each file that is missing or damaged. */
  problems: string[];
  /** The moments of the backups that need one of these files, in the order in which they were made. */
  harmed: string[];
}

/**
 * Reads every file that any backup of the folder needs, each one time, and compares it with its SHA-256. May run while a
 * backup is made: files of a backup that is removed meanwhile do not count.
 */
export async function verifyFolder(folder: BackupFolder): Promise<Verified> {
  const checked = new Map<string, Checked>();
  for (const moment of await folder.moments()) {
    const found = await filesOf(folder, moment);
    if (typeof found === "string") {
      checked.set(moment, { problem: found, moments: [moment] });
      continue;
    }
    for (const file of found) {
      const one = checked.get(file.file) ?? { problem: await folder.problemOf(file), moments: [] };
      one.moments.push(moment);
      checked.set(file.file, one);
    }
  }
  const left = new Set(await folder.moments());
  const problems: string[] = [];
  const allHarmed = new Set<string>();
  for (const { problem, moments } of checked.values()) {
    const harmed = moments.filter((moment) => left.has(moment));
    if (problem === undefined || harmed.length === 0) continue;
    problems.push(`${problem}: needed by ${harmed.length} of ${left.size} backups`);
    for (const moment of harmed) allHarmed.add(moment);
  }
  return { backups: left.size, files: checked.size, problems, harmed: [...allHarmed].sort() };
}

/** Returns the files of a backup, or a text that describes why its own file cannot be used. */
async function filesOf(folder: BackupFolder, moment: string): Promise<StoredFile[] | string> {
  try {
    const { streams } = await folder.read(moment);
    return streams.flatMap(({ parts, present }) => [...parts, present]);
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
