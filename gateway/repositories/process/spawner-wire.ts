/** Messages between a gateway and the process that starts its children. */

/** Connections made ahead for processes that are about to start: as many as start before the next are made. */
export const GIT_SPAWNER_PLACES = 12;

/** The command to run, with its limits, in a process group of its own. */
export interface ChildCommand {
  file: string;
  parameters: readonly string[];
  cwd: string;
  environment: Readonly<Record<string, string>>;
}

/** `place`: the number of a pair of connections, one for the input of the child and one for its output. */
export type SpawnerOrder =
  | { place: number; command: ChildCommand }
  /** Ends the child and all it started. */
  | { place: number; end: true };

export type SpawnerNews =
  | { place: number; pid: number }
  /** `code` is null where a signal ended it, or it could not be started. */
  | { place: number; code: number | null; stderr: string };

/** The first line of a connection names its place and use. */
export const placeLine = (place: number, use: "input" | "output") => `${place} ${use}\n`;

/** Ends a child that leads its group, and all it started. */
export function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process has ended already.
  }
}
