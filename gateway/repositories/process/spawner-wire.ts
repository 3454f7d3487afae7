/** Messages between a gateway and the process that starts its children. */

/** Pairs of connections that are opened ahead: the number of children that can start before new pairs are open. */
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
  /** Kills the child and all processes that it has started. */
  | { place: number; end: true };

export type SpawnerNews =
  | { place: number; pid: number }
  /** `code` is null if a signal ended the child, or the child could not be started. */
  | { place: number; code: number | null; stderr: string };

/** The first line of a connection names its place and use. */
export const placeLine = (place: number, use: "input" | "output") => `${place} ${use}\n`;

/** Kills a child that leads a process group, and all processes in the group. */
export function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The process has ended already.
  }
}
