/**
 * The context of an agent: its id, its storage and its background work. The constructor receives the context, and the
 * agent's code uses it as `this.ctx`.
 */

import { deserialize, serialize } from "node:v8";
import type { AgentRuntime } from "./agent-runtime.ts";
import type { SqlResult, SqlRow } from "./sql.ts";

/**
 * Maximum number of characters of a key in `ctx.storage`. The number below is the default limit of the entries in one
 * list.
 */
export const AGENT_STORAGE_KEY_CHARS_MAX = 2_048;
const AGENT_STORAGE_LISTED_MAX = 100_000;

const agents = new WeakMap<object, AgentRuntime>();

/** Returns the runtime that belongs to a context. @internal */
export function runtimeOf(context: object): AgentRuntime {
  const agent = agents.get(context);
  if (agent === undefined) throw new TypeError("Cannot construct an agent: the platform does it");
  return agent;
}

/** The rows of a statement: an iterator that also has methods that return all rows together. */
export class SqlCursor<Row = SqlRow> implements IterableIterator<Row> {
  readonly columnNames: string[];
  readonly #rows: Row[];
  #next = 0;

  constructor({ rows, columns }: SqlResult) {
    this.columnNames = columns;
    this.#rows = rows as Row[];
  }

  next(): IteratorResult<Row> {
    const value = this.#rows[this.#next];
    if (value === undefined) return { done: true, value: undefined };
    this.#next += 1;
    return { done: false, value };
  }

  [Symbol.iterator](): this {
    return this;
  }

  toArray(): Row[] {
    const rest = this.#rows.slice(this.#next);
    this.#next = this.#rows.length;
    return rest;
  }

  /** Returns the only row; throws if there is not exactly one. */
  one(): Row {
    const [row, second] = this.toArray();
    if (row === undefined || second !== undefined) {
      throw new Error(`Expected exactly one row, found ${row === undefined ? "none" : "several"}`);
    }
    return row;
  }

  /** Rows as arrays of their values. */
  *raw(): IterableIterator<unknown[]> {
    for (const row of this) yield Object.values(row as object);
  }

  get rowsRead(): number {
    return this.#rows.length;
  }
}

export interface SqlStorage {
  exec<Row = SqlRow>(query: string, ...values: unknown[]): SqlCursor<Row>;
  readonly databaseSize: number;
}

interface ListOptions {
  prefix?: string;
  start?: string;
  end?: string;
  limit?: number;
  reverse?: boolean;
}

/** Synchronous access to keys and values; the other storage methods return promises. */
interface SyncKeyValue {
  get<T = unknown>(key: string): T | undefined;
  put(key: string, value: unknown): void;
  delete(key: string): boolean;
  list<T = unknown>(options?: ListOptions): Iterable<[string, T]>;
}

/** Keys and values, in the same database as the agent's tables. */
export class AgentStorage {
  readonly #agent: AgentRuntime;
  readonly sql: SqlStorage;
  readonly kv: SyncKeyValue;

  /** @internal */
  constructor(agent: AgentRuntime) {
    this.#agent = agent;
    this.sql = Object.freeze({
      exec: <Row>(query: string, ...values: unknown[]) =>
        new SqlCursor<Row>(agent.database.run(query, values)),
      get databaseSize() {
        return agent.database.log.bytes;
      },
    });
    this.kv = Object.freeze({
      get: <T>(key: string) => this.#get<T>(key),
      put: (key: string, value: unknown) => this.#put(key, value),
      delete: (key: string) => this.#delete(key),
      list: <T>(options?: ListOptions) => this.#list<T>(options),
    });
  }

  get<T = unknown>(key: string): Promise<T | undefined>;
  get<T = unknown>(keys: string[]): Promise<Map<string, T>>;
  async get<T>(key: string | string[]): Promise<T | undefined | Map<string, T>> {
    if (!Array.isArray(key)) return this.#get<T>(key);
    const found = key.map((each) => [each, this.#get<T>(each)] as const);
    return new Map(found.filter((entry): entry is [string, T] => entry[1] !== undefined));
  }

  put(key: string, value: unknown): Promise<void>;
  put(entries: Record<string, unknown>): Promise<void>;
  async put(key: string | Record<string, unknown>, value?: unknown): Promise<void> {
    const entries = typeof key === "string" ? [[key, value] as const] : Object.entries(key);
    this.#agent.database.transaction(() => {
      for (const [each, what] of entries) this.#put(each, what);
    });
  }

  delete(key: string): Promise<boolean>;
  delete(keys: string[]): Promise<number>;
  async delete(key: string | string[]): Promise<boolean | number> {
    if (!Array.isArray(key)) return this.#delete(key);
    return key.filter((each) => this.#delete(each)).length;
  }

  async list<T = unknown>(options?: ListOptions): Promise<Map<string, T>> {
    return this.#list<T>(options);
  }

  /** Deletes all keys but no tables. The agent's `destroy()` deletes everything. */
  async deleteAll(): Promise<void> {
    this.#agent.database.own("DELETE FROM _trunkline_storage");
  }

  /** Runs `work` in a transaction, which takes effect completely or not at all. `work` must be synchronous. */
  transactionSync<T>(work: () => T): T {
    return this.#agent.database.transaction(work);
  }

  /** Resolves when all changes so far are durable. */
  sync(): Promise<void> {
    const { gate, inputs } = this.#agent;
    return inputs.hold(gate.durable());
  }

  #get<T>(key: string): T | undefined {
    const [row] = this.#agent.database.own(
      "SELECT value FROM _trunkline_storage WHERE key = ?",
      checked(key),
    );
    return row === undefined ? undefined : (deserialize(row.value as Uint8Array) as T);
  }

  #list<T>({
    prefix = "",
    start = "",
    end,
    limit = AGENT_STORAGE_LISTED_MAX,
    reverse = false,
  }: ListOptions = {}): Map<string, T> {
    const rows = this.#agent.database.own(
      `SELECT key, value FROM _trunkline_storage WHERE SUBSTR(key, 1, LENGTH(?1)) = ?1 AND key >= ?2
      AND (?3 IS NULL OR key < ?3) ORDER BY key ${reverse ? "DESC" : "ASC"} LIMIT ?4`,
      prefix,
      start,
      end ?? null,
      limit,
    );
    return new Map(
      rows.map(({ key, value }) => [String(key), deserialize(value as Uint8Array) as T]),
    );
  }

  #put(key: string, value: unknown): void {
    if (value === undefined) throw new TypeError(`Cannot store "${key}": its value is undefined`);
    this.#agent.database.keep(
      "INSERT OR REPLACE INTO _trunkline_storage VALUES (?, ?)",
      checked(key),
      new Uint8Array(serialize(value)),
    );
  }

  #delete(key: string): boolean {
    const rows = this.#agent.database.own(
      "DELETE FROM _trunkline_storage WHERE key = ? RETURNING key",
      checked(key),
    );
    return rows.length > 0;
  }
}

export interface AgentContext {
  readonly id: { readonly name: string; toString(): string };
  readonly storage: AgentStorage;
  /** Keeps the agent in memory until the promise settles. The changes made by this work become durable. */
  waitUntil(promise: unknown): void;
  blockConcurrencyWhile<T>(work: () => Promise<T>): Promise<T>;
}

/** @internal */
export function agentContext(agent: AgentRuntime): AgentContext {
  const { name } = agent.address;
  const context: AgentContext = {
    id: Object.freeze({ name, toString: () => name }),
    storage: new AgentStorage(agent),
    waitUntil: (promise) => agent.background(() => promise),
    blockConcurrencyWhile: (work) => agent.blocking(work),
  };
  agents.set(context, agent);
  return Object.freeze(context);
}

function checked(key: unknown): string {
  if (typeof key !== "string" || key.length > AGENT_STORAGE_KEY_CHARS_MAX) {
    throw new TypeError(
      `Cannot use the key: expected a text of at most ${AGENT_STORAGE_KEY_CHARS_MAX} characters`,
    );
  }
  return key;
}
