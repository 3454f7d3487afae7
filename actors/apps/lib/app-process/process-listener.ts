/** The events of an app's process for its agents and its entry. */
import type { FromProcess } from "../../../../schemas/apps/app-process.ts";

export type OfAgent = Extract<
  FromProcess,
  { type: "commit" | "act" | "finished" | "refused" | "part" | "operation" | "idle" }
>;

export interface ProcessListener {
  /** Number of turns that the listener waits for. */
  readonly turns: number;
  heard(message: OfAgent): void;
  /** Closes the agent if it is idle. Returns false if it is busy, and for an entry. */
  giveWay(): boolean;
  /** The process has ended and sends no more messages. */
  ended(error: Error): void;
}
