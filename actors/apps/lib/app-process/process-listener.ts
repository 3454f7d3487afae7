/** What an agent in a process of an app, or an entry, hears of it. */
import type { FromProcess } from "../../../../schemas/apps/app-process.ts";

export type OfAgent = Extract<
  FromProcess,
  { type: "commit" | "act" | "finished" | "refused" | "part" | "operation" | "idle" }
>;

export interface ProcessListener {
  heard(message: OfAgent): void;
  /** The process has ended: nothing more comes. */
  ended(error: Error): void;
}
