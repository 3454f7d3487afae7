/**
 * Lines that apps print, in the form of the stream of logs, which is also the form that watchers receive: JSON under
 * `appLogSubject`.
 */
import { z } from "zod";
import { EpochMs } from "../values.ts";
import { APP_LOG_LINE_CHARS_MAX } from "./limits.ts";

export const AppLogLine = z.object({
  at: EpochMs,
  level: z.enum(["debug", "info", "warn", "error"]),
  text: z.string().max(APP_LOG_LINE_CHARS_MAX),
  version: z.int().min(0),
  /** Key of the agent that printed the line (`agentKey`). Absent if the app's entry or its process printed it. */
  agent: z.string().optional(),
});
export type AppLogLine = z.infer<typeof AppLogLine>;
