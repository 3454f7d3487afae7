/** Wire shapes of an app's agents: which there are, what one is at, and rows of its tables. */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { SqlCell } from "../agent-inspection.ts";
import { AgentName, ClassName } from "../app-names.ts";
import { AGENT_NAME_CHARS_MAX, AGENT_QUERY_SQL_CHARS_MAX } from "../limits.ts";

export const AgentsQuery = z.strictObject({
  page: listingFields.page,
  per_page: listingFields.per_page,
  class_name: ClassName.optional().describe("Only those of this class"),
  contains: z
    .string()
    .max(AGENT_NAME_CHARS_MAX)
    .optional()
    .describe("Only those whose name has this text in it"),
});
export type AgentsQuery = z.output<typeof AgentsQuery>;

export const WireAgentEntry = z.object({ class_name: ClassName, name: AgentName });

export const WireAgentWork = z.object({
  id: z.string(),
  method: z.string(),
  type: z.string().describe("scheduled, delayed, cron or interval; queued"),
  due_on: z.iso.datetime().nullable().describe("Null where it failed for good"),
  attempts: z.int(),
  error: z.string().nullable(),
});

export const WireAgent = WireAgentEntry.extend({
  version: z.int().describe("Of the app, in which it runs"),
  database_bytes: z.int(),
  connections: z.int().describe("Open WebSockets"),
  next_wake_on: z.iso.datetime().nullable(),
  state: z
    .unknown()
    .describe("Null where none was set yet, and where it is too long: state_chars says which"),
  state_chars: z.int().describe("Of the state as JSON; 0 where none was set yet"),
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()) })),
  timers: z.array(WireAgentWork).describe("The first 100 scheduled calls"),
  queue: z.array(WireAgentWork).describe("The first 100 queued calls"),
});

export const QueryAgent = z
  .strictObject({
    sql: z
      .string()
      .min(1)
      .max(AGENT_QUERY_SQL_CHARS_MAX)
      .describe("One statement that reads: SELECT, WITH, or PRAGMA table_info"),
  })
  .meta({ examples: [{ sql: "SELECT name FROM sqlite_schema" }] });
export type QueryAgent = z.output<typeof QueryAgent>;

export const WireQueryRows = z.object({
  columns: z.array(z.string()),
  rows: z
    .array(z.array(SqlCell))
    .describe("Integers past 2^53 are text, bytes are {base64}, a long text ends with …"),
  is_cut: z.boolean().describe("There are more rows, or a value was cut"),
});

export const CallAgent = z
  .strictObject({
    method: z.string().min(1).max(128).describe("A public method of the agent's class"),
    arguments: z.array(z.unknown()).default([]),
  })
  .meta({ examples: [{ method: "add", arguments: [1, 2] }] });
export type CallAgent = z.output<typeof CallAgent>;

export const WireCallResult = z.object({
  result: z.unknown().describe("Null where the method gives nothing"),
});
