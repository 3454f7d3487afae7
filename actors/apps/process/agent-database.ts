/**
 * Runs SQL on one agent's database: user statements, which are guarded and whose values are checked, and the
 * platform's own statements.
 */
import { constants, DatabaseSync, type StatementSync } from "node:sqlite";
import type { QueryRows } from "../../../schemas/apps/agent-inspection.ts";
import { AgentRefusal, SqlError } from "../package/refusal.ts";
import type { SqlResult, SqlRow, SqlValue } from "../package/sql.ts";
import { PAGE_BYTES, type PageLog, SQL_BYTES_MAX } from "./page-log.ts";
import { readRows } from "./read-rows.ts";
import { lookRefusalOf, ownRefusalOf, refusalOf } from "./sql-guard.ts";
import { parameterCount } from "./sql-parameters.ts";
import { toSqlValue } from "./sql-values.ts";

interface Prepared {
  statement: StatementSync;
  parameters: number;
}

/** Limit of the prepared statements that are cached; an app has a few dozen. */
const STATEMENTS_MAX = 200;
/** After this many statements, the size of the write-ahead file is checked, even during a turn. */
const STATEMENTS_UNREAD_MAX = 256;
/** Pages that are reserved for the platform's own tables. They are used when user code has used up its own limit. */
const OWN_PAGES = 4_096;
const SCHEMA_ACTIONS = new Set([
  constants.SQLITE_ALTER_TABLE,
  constants.SQLITE_CREATE_TABLE,
  constants.SQLITE_CREATE_VIEW,
  constants.SQLITE_CREATE_VTABLE,
  constants.SQLITE_DROP_TABLE,
  constants.SQLITE_DROP_VIEW,
  constants.SQLITE_DROP_VTABLE,
]);
/** Saved before app code runs, so that app code cannot replace the function that sets the guard. */
const setAuthorizer = Function.prototype.call.bind(DatabaseSync.prototype.setAuthorizer) as (
  database: DatabaseSync,
  callback: (action: number, first: string | null, second: string | null) => number,
) => void;
const VACUUM = /^\s*VACUUM\s*;?\s*$/i;
const SQLITE_FULL = 13;
const SQLITE_TOOBIG = 18;

export class AgentDatabase {
  readonly log: PageLog;
  readonly #database: DatabaseSync;
  readonly #statements = new Map<string, Prepared>();
  readonly #ownStatements = new Map<string, StatementSync>();
  /** Called after user SQL, because it may have written something. */
  readonly #touched: () => void;
  #isOwn = false;
  #isPreparing = false;
  #isLooking = false;
  #refusal: string | undefined;
  #hasNewSchema = false;
  #depth = 0;
  #unread = 0;
  #isClosed = false;

  constructor(log: PageLog, touched: () => void) {
    this.log = log;
    this.#database = log.database;
    this.#touched = touched;
    setAuthorizer(this.#database, (action, first, second) => {
      if (SCHEMA_ACTIONS.has(action)) this.#hasNewSchema = true;
      const refusal = this.#isOwn
        ? ownRefusalOf(action, first)
        : this.#isLooking
          ? lookRefusalOf(action, first, second)
          : refusalOf(action, first, second, this.#isPreparing);
      if (refusal === undefined) return constants.SQLITE_OK;
      this.#refusal = refusal;
      return constants.SQLITE_DENY;
    });
  }

  /** Returns a record of the changes since the last record: see PageLog. */
  take(): Uint8Array | undefined {
    return this.#asOwn(() => this.log.take());
  }

  settle(): void {
    this.#asOwn(() => this.log.settle());
  }

  get isInTransaction(): boolean {
    return this.#depth > 0;
  }

  /** Runs user SQL of one or more statements. Binds `values` to the last statement. */
  run(sql: string, values: readonly unknown[] = []): SqlResult {
    this.#mustBeOpen();
    try {
      return this.#run(sql, values.map(toSqlValue));
    } catch (error) {
      throw new SqlError(sql.trim(), this.#explained(error));
    } finally {
      this.#isPreparing = false;
      this.#read();
      this.#touched();
    }
  }

  /** Runs a read-only query of a person on the tables of user code. */
  look(sql: string): QueryRows {
    this.#mustBeOpen();
    this.#isLooking = true;
    try {
      const statement = this.#database.prepare(sql) as StatementSync | undefined;
      if (!statement || !isEmptySql(sql.slice(statement.sourceSQL.length))) {
        throw new Error("expected one statement");
      }
      return readRows(statement);
    } catch (error) {
      const explained = this.#explained(error);
      const why = explained instanceof Error ? explained.message : String(explained);
      throw new AgentRefusal("invalid_request", `Cannot run the query: ${why}`);
    } finally {
      this.#isLooking = false;
    }
  }

  /**
   * Runs the platform's own SQL. It may use pages past the app's limit, so that an agent with a full database can
   * still delete its data.
   */
  own(sql: string, ...values: SqlValue[]): SqlRow[] {
    this.#mustBeOpen();
    return this.#asOwn(() => {
      const all = this.#own(sql, values);
      try {
        return all();
      } catch (error) {
        if (!isFull(error) || this.#isUndone) throw this.#explained(error);
      } finally {
        this.#read();
      }
      try {
        return this.#withRoom(all);
      } catch (error) {
        throw this.#explained(error);
      }
    });
  }

  /**
   * Runs a statement of the platform that stores values of app code. The values may not exceed the limit for the
   * app's own SQL.
   */
  keep(sql: string, ...values: SqlValue[]): SqlRow[] {
    this.#mustBeOpen();
    return this.#asOwn(() => {
      try {
        return this.#own(sql, values)();
      } catch (error) {
        throw this.#explained(error);
      } finally {
        this.#read();
      }
    });
  }

  ownScript(sql: string): void {
    this.#asOwn(() => this.#database.exec(sql));
  }

  /**
   * Runs `work` in a transaction, synchronously: no other code runs in between, and all changes are undone if `work`
   * throws.
   */
  transaction<T>(work: () => T): T {
    this.#mustBeOpen();
    const savepoint = `_trunkline_${this.#depth}`;
    this.#asOwn(() => this.#database.exec(`SAVEPOINT ${savepoint}`));
    this.#depth += 1;
    let isDone = false;
    try {
      const result = work();
      if (result instanceof Promise) {
        // The thrown error reports only that the function was asynchronous. A later rejection of its promise is
        // ignored.
        result.catch(() => undefined);
        throw new TypeError("Cannot commit the transaction: its function is asynchronous");
      }
      this.#mustBeWhole();
      isDone = true;
      return result;
    } finally {
      this.#depth -= 1;
      const undo = isDone ? "" : `ROLLBACK TO ${savepoint};`;
      // If the database was full, SQLite may have rolled the transaction back already.
      if (this.#database.isTransaction) {
        this.#asOwn(() => this.#database.exec(`${undo} RELEASE ${savepoint}`));
      }
      this.#touched();
    }
  }

  /** Drops all prepared statements, because any table may change now. */
  forget(): void {
    this.#statements.clear();
    this.#ownStatements.clear();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // A statement keeps its database in memory, and the authorizer of the database keeps this object and all of the
    // agent: a cycle that the garbage collector cannot see.
    this.forget();
    this.log.close();
  }

  #own(sql: string, values: SqlValue[]): () => SqlRow[] {
    const statement = this.#ownStatements.get(sql) ?? this.#database.prepare(sql);
    this.#ownStatements.set(sql, statement);
    return () => statement.all(...values) as SqlRow[];
  }

  #run(sql: string, values: SqlValue[]): SqlResult {
    const kept = this.#statements.get(sql);
    if (kept !== undefined) return this.#all(kept, values);
    let rest = sql;
    for (;;) {
      const prepared = this.#prepare(rest);
      const tail = rest.slice(prepared.statement.sourceSQL.length);
      // The next statement can be prepared only after this one has run, because this one may create a table for it.
      if (isEmptySql(tail)) {
        const result = this.#all(prepared, values);
        if (rest === sql) this.#keep(sql, prepared);
        return result;
      }
      this.#all(prepared, []);
      rest = tail;
    }
  }

  #prepare(sql: string): Prepared {
    this.#isPreparing = true;
    try {
      const statement = this.#database.prepare(sql) as StatementSync | undefined;
      if (statement === undefined) throw new TypeError("The SQL query contains no statements");
      return { statement, parameters: parameterCount(statement.sourceSQL) };
    } finally {
      this.#isPreparing = false;
    }
  }

  #all({ statement, parameters }: Prepared, values: SqlValue[]): SqlResult {
    if (values.length !== parameters) {
      throw new TypeError(
        `Cannot bind ${values.length} values: there is room for ${parameters} in ${statement.sourceSQL.trim()}`,
      );
    }
    const all = () => statement.all(...values) as SqlRow[];
    // VACUUM copies every table, including the platform's tables, so it runs with the platform's rights.
    const rows = VACUUM.test(statement.sourceSQL) ? this.#asOwn(all) : all();
    if (this.#hasNewSchema) {
      this.#hasNewSchema = false;
      this.#statements.clear();
    }
    return { rows, columns: statement.columns().map(({ name }) => name) };
  }

  #keep(sql: string, prepared: Prepared): void {
    if (this.#statements.size >= STATEMENTS_MAX) {
      const [oldest] = this.#statements.keys();
      if (oldest !== undefined) this.#statements.delete(oldest);
    }
    this.#statements.set(sql, prepared);
  }

  #read(): void {
    this.#unread += 1;
    if (this.#unread < STATEMENTS_UNREAD_MAX || this.#depth > 0) return;
    this.#unread = 0;
    this.#asOwn(() => this.log.absorb());
  }

  #explained(error: unknown): unknown {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    if (!(error instanceof Error)) return error;
    const { errcode, code } = error as Error & { errcode?: number; code?: string };
    if (refusal !== undefined) return new Error(`not authorized: ${refusal}`);
    const mebibytes = this.log.bytesMax / 1024 ** 2;
    if (isFull(error)) {
      return new AgentRefusal(
        "storage_full",
        `Cannot write: the agent's database would be larger than ${mebibytes} MB`,
      );
    }
    if (errcode === SQLITE_TOOBIG) {
      const bounds = `a value has at most ${mebibytes} MB, as the agent's database, and a statement ${SQL_BYTES_MAX} bytes`;
      return new AgentRefusal("storage_full", `${error.message}: ${bounds}`);
    }
    if (code === "ERR_OUT_OF_RANGE") {
      return new RangeError(
        `${error.message}. Integers past 2^53 are read as text: SELECT CAST(column AS TEXT)`,
      );
    }
    return error;
  }

  #withRoom<T>(work: () => T): T {
    const pages = Math.floor(this.log.bytesMax / PAGE_BYTES);
    this.#database.exec(`PRAGMA max_page_count=${pages + OWN_PAGES}`);
    try {
      return work();
    } finally {
      this.#database.exec(`PRAGMA max_page_count=${pages}`);
    }
  }

  #asOwn<T>(work: () => T): T {
    const before = this.#isOwn;
    this.#isOwn = true;
    try {
      return work();
    } finally {
      this.#isOwn = before;
    }
  }

  #mustBeOpen(): void {
    if (this.#isClosed) {
      throw new AgentRefusal(
        "unavailable",
        "Cannot use the agent's storage: it has left this process",
      );
    }
    this.#mustBeWhole();
  }

  /** Throws if the transaction was undone, because later statements would not belong to it. */
  #mustBeWhole(): void {
    if (!this.#isUndone) return;
    const text = "Cannot go on: the transaction was undone when the agent's database was full";
    throw new AgentRefusal("storage_full", text);
  }

  get #isUndone(): boolean {
    return this.#depth > 0 && !this.#database.isTransaction;
  }
}

const isFull = (error: unknown) => (error as { errcode?: number }).errcode === SQLITE_FULL;

/** Returns whether the text has only white space, comments and semicolons. */
function isEmptySql(sql: string): boolean {
  return /^(?:[\s;]|--[^\n]*(?:\n|$)|\/\*[\s\S]*?(?:\*\/|$))*$/.test(sql);
}
