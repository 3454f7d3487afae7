/** The information that an agent shows about itself: its state, tables and work, and rows of a read-only query. */
import { z } from "zod";
import { EpochMs } from "../values.ts";
import {
  AGENT_LISTED_MAX,
  AGENT_QUERY_CELL_CHARS_MAX,
  AGENT_QUERY_ROWS_MAX,
  AGENT_STATE_SHOWN_CHARS_MAX,
} from "./limits.ts";

const Listed = <T extends z.ZodType>(entry: T) => z.array(entry).max(AGENT_LISTED_MAX);
const Count = z.int().min(0);

/** A scheduled call of a method, or one in the agent's queue. */
export const AgentWork = z.object({
  id: z.string(),
  method: z.string(),
  /** `queued`, or the type of its schedule. */
  type: z.string(),
  dueAt: EpochMs.optional(),
  attempts: Count,
  error: z.string().optional(),
});
export type AgentWork = z.infer<typeof AgentWork>;

/** Optional fields are absent in answers of hosts and processes of an earlier version. */
export const AgentInspection = z.object({
  databaseBytes: Count,
  connections: Count,
  nextWakeAt: EpochMs.optional(),
  /** The state as JSON. Absent if no state was set or read yet, or if it is too long. */
  state: z.string().max(AGENT_STATE_SHOWN_CHARS_MAX).optional(),
  stateChars: Count.optional(),
  tables: Listed(z.object({ name: z.string(), columns: Listed(z.string()) })).optional(),
  timers: Listed(AgentWork).optional(),
  queue: Listed(AgentWork).optional(),
});
export type AgentInspection = z.infer<typeof AgentInspection>;

/** Integers past 2^53, and numbers that JSON cannot represent, are text. */
export const SqlCell = z.union([
  z.string().max(AGENT_QUERY_CELL_CHARS_MAX + 1),
  z.number(),
  z.null(),
  z.object({ base64: z.string().max(AGENT_QUERY_CELL_CHARS_MAX) }),
]);
export type SqlCell = z.infer<typeof SqlCell>;

export const QueryRows = z.object({
  columns: z.array(z.string()),
  rows: z.array(z.array(SqlCell)).max(AGENT_QUERY_ROWS_MAX),
  /** True if there are more rows, or a value was shortened. */
  isCut: z.boolean(),
});
export type QueryRows = z.infer<typeof QueryRows>;
