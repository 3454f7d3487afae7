/** The events of an app's process for its agents and its entry. */
import type { FromProcess } from "../../../../schemas/apps/app-process.ts";

export type OfAgent = Extract<
  FromProcess,
  { type: "commit" | "act" | "finished" | "refused" | "part" | "operation" | "idle" }
>;

export interface ProcessListener {
  /** Turns that it waits for. */
  readonly turns: number;
  heard(message: OfAgent): void;
  /** Closes the agent where it has nothing to do. Returns false where it has, and for an entry. */
  giveWay(): boolean;
  /** The process has ended: nothing more comes. */
  ended(error: Error): void;
}
