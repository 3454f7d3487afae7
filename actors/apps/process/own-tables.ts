/** The platform's own tables in an agent's database. User SQL can neither read nor change them. */
import type { SqlValue } from "../package/sql.ts";
import type { AgentDatabase } from "./agent-database.ts";

/**
 * These statements run each time the database is opened, so that older databases get the tables of a later version.
 */
const TABLES = `
CREATE TABLE IF NOT EXISTS _trunkline_values (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _trunkline_storage (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _trunkline_answered (
  position INTEGER PRIMARY KEY, id TEXT NOT NULL, client TEXT, number INTEGER, result BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS _trunkline_settled (
  position INTEGER PRIMARY KEY AUTOINCREMENT, client TEXT NOT NULL UNIQUE, below INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS _trunkline_connections (
  gateway TEXT NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, uri TEXT NOT NULL, tags TEXT NOT NULL,
  state TEXT, is_readonly INTEGER NOT NULL, has_protocol INTEGER NOT NULL, done TEXT NOT NULL,
  PRIMARY KEY (gateway, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS _trunkline_schedules (
  position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, callback TEXT NOT NULL, payload TEXT,
  type TEXT NOT NULL, at INTEGER NOT NULL, detail, retry TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER, error TEXT
);
CREATE INDEX IF NOT EXISTS _trunkline_schedules_due ON _trunkline_schedules (next_at) WHERE next_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _trunkline_queue (
  position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, callback TEXT NOT NULL, payload TEXT,
  created_at INTEGER NOT NULL, retry TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at INTEGER, error TEXT
);
CREATE INDEX IF NOT EXISTS _trunkline_queue_due ON _trunkline_queue (position) WHERE next_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS _trunkline_submissions (
  position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, idempotency_key TEXT UNIQUE, method TEXT NOT NULL,
  payload TEXT, metadata TEXT, retry TEXT NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
  next_at INTEGER, result TEXT, error TEXT, created_at INTEGER NOT NULL, started_at INTEGER, completed_at INTEGER
);
CREATE INDEX IF NOT EXISTS _trunkline_submissions_due ON _trunkline_submissions (next_at) WHERE next_at IS NOT NULL;
`;

export function createOwnTables(database: AgentDatabase): void {
  database.ownScript(TABLES);
}

/** Deletes all data except replies and the time of the alarm. */
export function emptyDatabase(database: AgentDatabase): void {
  const named = "SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
  const kept = "name NOT IN ('_trunkline_answered', '_trunkline_values')";
  database.ownScript("PRAGMA foreign_keys = OFF");
  for (;;) {
    // Virtual tables come before other tables, because dropping a virtual table also drops the tables it consists
    // of.
    const [row] = database.own(
      `${named} AND type IN ('view', 'trigger', 'table') AND ${kept}
      ORDER BY type = 'view' DESC, type = 'trigger' DESC, sql LIKE 'CREATE VIRTUAL%' DESC LIMIT 1`,
    );
    if (row === undefined) break;
    database.ownScript(`DROP ${String(row.type)} "${String(row.name).replaceAll('"', '""')}"`);
  }
  database.ownScript(
    "DELETE FROM _trunkline_values WHERE key <> 'alarm'; PRAGMA foreign_keys = ON",
  );
  createOwnTables(database);
  // Removed rows leave free pages, which would be part of every image.
  if (!database.isInTransaction) database.ownScript("VACUUM");
  database.forget();
}

const IS_EMPTY = `SELECT NOT EXISTS (
  SELECT 1 FROM sqlite_schema WHERE name NOT GLOB '_trunkline_*' AND name NOT GLOB 'sqlite_*'
  UNION ALL SELECT 1 FROM _trunkline_values WHERE value IS NOT NULL
  UNION ALL SELECT 1 FROM _trunkline_storage
  UNION ALL SELECT 1 FROM _trunkline_connections
  UNION ALL SELECT 1 FROM _trunkline_schedules
  UNION ALL SELECT 1 FROM _trunkline_queue
  UNION ALL SELECT 1 FROM _trunkline_submissions
  UNION ALL SELECT 1 FROM pragma_user_version WHERE user_version <> 0
  UNION ALL SELECT 1 FROM pragma_application_id WHERE application_id <> 0
) AS is_empty`;

/** Returns whether the database stores nothing but replies, which nobody requests again after some time. */
export function isEmptyDatabase(database: AgentDatabase): boolean {
  return database.own(IS_EMPTY)[0]?.is_empty === 1;
}

/** Reads a single value, such as the agent's state or its alarm. */
export function readValue(database: AgentDatabase, key: string): SqlValue | undefined {
  return database.own("SELECT value FROM _trunkline_values WHERE key = ?", key)[0]?.value;
}

/** Stores a value of app code. */
export function keepValue(database: AgentDatabase, key: string, value: SqlValue): void {
  database.keep("INSERT OR REPLACE INTO _trunkline_values VALUES (?, ?)", key, value);
}

export function writeValue(database: AgentDatabase, key: string, value: SqlValue): void {
  database.own("INSERT OR REPLACE INTO _trunkline_values VALUES (?, ?)", key, value);
}

/** Returns the JSON of an app's value. `undefined` becomes null in the database. */
export function toJson(what: string, value: unknown): string | null {
  try {
    return JSON.stringify(value) ?? null;
  } catch (cause) {
    throw new TypeError(`Cannot keep ${what}: it is no JSON`, { cause });
  }
}

export function fromJson(json: SqlValue | undefined): unknown {
  return typeof json === "string" ? JSON.parse(json) : undefined;
}
