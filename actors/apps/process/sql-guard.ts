/**
 * The limits of the SQL of app code: it may do anything within its agent's database, but nothing outside the database
 * or its log.
 */
import { constants } from "node:sqlite";

const OWN_PREFIX = "_trunkline_";

/** Permitted pragmas: they only read or check, or set a value that the database stores. */
const PRAGMAS = new Set([
  "application_id",
  "collation_list",
  "compile_options",
  "data_version",
  "defer_foreign_keys",
  "foreign_key_check",
  "foreign_key_list",
  "foreign_keys",
  "freelist_count",
  "function_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "integrity_check",
  "legacy_alter_table",
  "module_list",
  "optimize",
  "page_count",
  "pragma_list",
  "quick_check",
  "recursive_triggers",
  "table_info",
  "table_list",
  "table_xinfo",
  "user_version",
]);
/** Pragmas that may only be read, because setting them would change the file. */
const READ_PRAGMAS = new Set([
  "encoding",
  "journal_mode",
  "max_page_count",
  "page_size",
  "schema_version",
]);
const MODULES = new Set(["fts3", "fts4", "fts5", "fts5vocab", "geopoly", "rtree", "rtree_i32"]);
/** Tables that exist in every database and give access to its raw pages. */
const RAW_TABLES = new Set(["sqlite_dbpage", "dbstat"]);
const FUNCTIONS = new Set(["load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"]);

const ATTACHED = "ATTACH and VACUUM INTO would leave the agent's database";

/**
 * Returns why a step of the platform's own statement is refused. It may not attach files, because Node's permissions
 * do not apply to files that SQLite attaches. While VACUUM runs, it attaches a database without a name, which is
 * permitted. VACUUM INTO attaches one with a name.
 */
export const ownRefusalOf = (action: number, first: string | null): string | undefined =>
  action === constants.SQLITE_ATTACH && first !== "" ? ATTACHED : undefined;

/** Pragmas that show the structure of a database. */
const LOOK_PRAGMAS = new Set([
  "foreign_key_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "table_info",
  "table_list",
  "table_xinfo",
]);

/** Returns why a step of a read-only statement is refused. */
export function lookRefusalOf(
  action: number,
  first: string | null,
  second: string | null,
): string | undefined {
  switch (action) {
    case constants.SQLITE_SELECT:
    case constants.SQLITE_RECURSIVE:
      return undefined;
    case constants.SQLITE_READ:
    case constants.SQLITE_FUNCTION:
      return refusalOf(action, first, second, true);
    case constants.SQLITE_PRAGMA:
      return LOOK_PRAGMAS.has((first ?? "").toLowerCase()) ? undefined : ONLY_READS;
    default:
      return ONLY_READS;
  }
}

const ONLY_READS = "a query only reads: SELECT, WITH, or PRAGMA table_info";

/** Returns why a step of a user's statement is refused; undefined if it is permitted. */
export function refusalOf(
  action: number,
  first: string | null,
  second: string | null,
  isPreparing: boolean,
): string | undefined {
  switch (action) {
    case constants.SQLITE_ATTACH:
      return isPreparing ? ATTACHED : ownRefusalOf(action, first);
    case constants.SQLITE_DETACH:
      return isPreparing ? "DETACH has nothing to let go of" : undefined;
    case constants.SQLITE_TRANSACTION:
    case constants.SQLITE_SAVEPOINT:
      // VACUUM begins a transaction itself, so this is permitted while it runs.
      return isPreparing
        ? "transactions are begun by ctx.storage.transactionSync(() => { … })"
        : undefined;
    case constants.SQLITE_PRAGMA:
      return pragmaRefusal(first ?? "", second);
    case constants.SQLITE_FUNCTION:
      return FUNCTIONS.has((second ?? "").toLowerCase())
        ? `the function ${second} reaches outside of the database`
        : undefined;
    case constants.SQLITE_CREATE_VTABLE:
      return MODULES.has((second ?? "").toLowerCase())
        ? ownTableRefusal(first)
        : `virtual tables are of ${[...MODULES].join(", ")}, not ${second}`;
    case constants.SQLITE_CREATE_TEMP_INDEX:
    case constants.SQLITE_CREATE_TEMP_TABLE:
    case constants.SQLITE_CREATE_TEMP_TRIGGER:
    case constants.SQLITE_CREATE_TEMP_VIEW:
      return "temporary tables would be gone whenever the agent moves: create an ordinary one, or use WITH";
    case constants.SQLITE_ALTER_TABLE:
      return ownTableRefusal(second);
    case constants.SQLITE_CREATE_TRIGGER:
    case constants.SQLITE_CREATE_INDEX:
    case constants.SQLITE_DROP_TRIGGER:
    case constants.SQLITE_DROP_INDEX:
      return ownTableRefusal(first) ?? ownTableRefusal(second);
    case constants.SQLITE_READ:
    case constants.SQLITE_UPDATE:
    case constants.SQLITE_INSERT:
    case constants.SQLITE_DELETE:
    case constants.SQLITE_CREATE_TABLE:
    case constants.SQLITE_DROP_TABLE:
    case constants.SQLITE_CREATE_VIEW:
    case constants.SQLITE_DROP_VIEW:
    case constants.SQLITE_DROP_VTABLE:
      return ownTableRefusal(first);
    default:
      return undefined;
  }
}

function pragmaRefusal(name: string, value: string | null): string | undefined {
  const lower = name.toLowerCase();
  if (PRAGMAS.has(lower) || (READ_PRAGMAS.has(lower) && value === null)) return undefined;
  return `PRAGMA ${name} is not for an agent's database`;
}

function ownTableRefusal(table: string | null): string | undefined {
  const name = (table ?? "").toLowerCase();
  if (name.startsWith(OWN_PREFIX)) return `${table} is the platform's own table`;
  return RAW_TABLES.has(name) ? `${table} has raw pages` : undefined;
}
