/** Describes an agent from its database alone, without running code of the app. */
import type { AgentInspection, AgentWork } from "../../../schemas/apps/agent-inspection.ts";
import { AGENT_LISTED_MAX, AGENT_STATE_SHOWN_CHARS_MAX } from "../../../schemas/apps/limits.ts";
import type { SqlRow } from "../package/sql.ts";
import type { OpenAgent } from "./open-agent.ts";
import { readValue } from "./own-tables.ts";

/** Limit of the characters shown of a name or an error. */
const TEXT_CHARS_MAX = 500;

const TABLES = `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')
  AND name NOT GLOB '_trunkline_*' AND name NOT GLOB 'sqlite_*' ORDER BY name LIMIT ${AGENT_LISTED_MAX}`;
const COLUMNS = `SELECT name FROM pragma_table_info(?) LIMIT ${AGENT_LISTED_MAX}`;
const TIMERS = `SELECT id, callback, type, next_at, attempts, error FROM _trunkline_schedules
  ORDER BY next_at IS NULL, next_at LIMIT ${AGENT_LISTED_MAX}`;
const QUEUE = `SELECT id, callback, 'queued' AS type, next_at, attempts, error FROM _trunkline_queue
  ORDER BY position LIMIT ${AGENT_LISTED_MAX}`;

export function inspectAgent({ database, due, sockets }: OpenAgent): AgentInspection {
  const nextWakeAt = due.nextAt();
  const state = readValue(database, "state");
  const tables = database.own(TABLES).map(({ name }) => ({
    name: textOf(name),
    columns: database.own(COLUMNS, name ?? "").map(({ name: column }) => textOf(column)),
  }));
  return {
    databaseBytes: database.log.bytes,
    connections: sockets.count,
    ...(nextWakeAt !== undefined && { nextWakeAt }),
    ...(typeof state === "string" && {
      stateChars: state.length,
      ...(state.length <= AGENT_STATE_SHOWN_CHARS_MAX && { state }),
    }),
    tables,
    timers: database.own(TIMERS).map(workOf),
    queue: database.own(QUEUE).map(workOf),
  };
}

function workOf(row: SqlRow): AgentWork {
  const { id, callback, type, next_at: dueAt, attempts, error } = row;
  return {
    id: textOf(id),
    method: textOf(callback),
    type: textOf(type),
    ...(typeof dueAt === "number" && { dueAt: Math.max(0, Math.trunc(dueAt)) }),
    attempts: Number(attempts),
    ...(typeof error === "string" && { error: textOf(error) }),
  };
}

const textOf = (value: unknown) => String(value ?? "").slice(0, TEXT_CHARS_MAX);
