/** The events that an app's process reports to its agents and its entry. */
import type { FromProcess } from "../../../../schemas/apps/app-process.ts";

export type OfAgent = Extract<
  FromProcess,
  { type: "commit" | "act" | "finished" | "refused" | "part" | "operation" | "idle" }
>;

export interface ProcessListener {
  /** Number of turns for whose results the listener waits. */
  readonly turns: number;
  heard(message: OfAgent): void;
  /** Closes the agent if it is idle. Returns false if the agent is busy or the listener is an entry. */
  giveWay(): boolean;
  /** The process has ended and sends no more messages. */
  ended(error: Error): void;
}
