/**
 * JSON forms of an app's agents in the REST API: the list of agents, one agent's state and work, and rows of its
 * tables.
 */
import { z } from "zod";
import { listingFields } from "../../http/listing.ts";
import { SqlCell } from "../agent-inspection.ts";
import { AgentName, ClassName } from "../app-names.ts";
import { AGENT_NAME_CHARS_MAX, AGENT_QUERY_SQL_CHARS_MAX } from "../limits.ts";

export const AgentsQuery = z.strictObject({
  page: listingFields.page,
  per_page: listingFields.per_page,
  class_name: ClassName.optional().describe("Returns only agents of this class"),
  contains: z
    .string()
    .max(AGENT_NAME_CHARS_MAX)
    .optional()
    .describe("Returns only agents whose name contains this text"),
});
export type AgentsQuery = z.output<typeof AgentsQuery>;

export const WireAgentEntry = z.object({ class_name: ClassName, name: AgentName });

export const WireAgentWork = z.object({
  id: z.string(),
  method: z.string(),
  type: z
    .string()
    .describe("scheduled, delayed, cron or interval for a timer; queued for a queued call"),
  due_on: z.iso.datetime().nullable().describe("Null if the call has finally failed"),
  attempts: z.int(),
  error: z.string().nullable(),
});

export const WireAgent = WireAgentEntry.extend({
  version: z.int().describe("The app version that the agent runs"),
  database_bytes: z.int(),
  connections: z.int().describe("Number of open WebSockets"),
  next_wake_on: z.iso.datetime().nullable(),
  state: z.unknown().describe("Null if no state is set or it is too long; state_chars tells which"),
  state_chars: z.int().describe("Length of the state as JSON; 0 if no state is set"),
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
      .describe("One reading statement: SELECT, WITH, or PRAGMA table_info"),
  })
  .meta({ examples: [{ sql: "SELECT name FROM sqlite_schema" }] });
export type QueryAgent = z.output<typeof QueryAgent>;

export const WireQueryRows = z.object({
  columns: z.array(z.string()),
  rows: z
    .array(z.array(SqlCell))
    .describe("Integers above 2^53 are text, bytes are {base64}, a shortened text ends with …"),
  is_cut: z.boolean().describe("Whether rows are missing or a value was shortened"),
});

export const CallAgent = z
  .strictObject({
    method: z.string().min(1).max(128).describe("A public method of the agent's class"),
    arguments: z.array(z.unknown()).default([]),
  })
  .meta({ examples: [{ method: "add", arguments: [1, 2] }] });
export type CallAgent = z.output<typeof CallAgent>;

export const WireCallResult = z.object({
  result: z.unknown().describe("The method's return value; null if it returns nothing"),
});
