/**
 * Lines that apps print, as they are in the stream of logs and as those see them who watch: JSON under
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
  /** Key of the agent that printed it (`agentKey`); absent where it was the app's entry, or its process. */
  agent: z.string().optional(),
});
export type AppLogLine = z.infer<typeof AppLogLine>;
