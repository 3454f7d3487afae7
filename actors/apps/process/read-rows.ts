/** Reads rows of a statement for a person who inspects an agent, up to the size limit of an answer. */
import type { StatementSync } from "node:sqlite";
import type { QueryRows, SqlCell } from "../../../schemas/apps/agent-inspection.ts";
import {
  AGENT_QUERY_CELL_CHARS_MAX,
  AGENT_QUERY_CHARS_MAX,
  AGENT_QUERY_ROWS_MAX,
} from "../../../schemas/apps/limits.ts";
import type { SqlValue } from "../package/sql.ts";

/** Bytes whose base64 fits a cell. */
const CELL_BYTES_MAX = (AGENT_QUERY_CELL_CHARS_MAX / 4) * 3;

export function readRows(statement: StatementSync): QueryRows {
  statement.setReadBigInts(true);
  statement.setReturnArrays(true);
  const columns = statement.columns().map(({ name }) => name);
  const rows: SqlCell[][] = [];
  let chars = 0;
  let isCut = false;
  for (const row of statement.iterate() as Iterable<unknown> as Iterable<SqlValue[]>) {
    const cells = row.map(cellOf);
    chars += cells.reduce<number>((sum, cell) => sum + charsOf(cell), 0);
    if (rows.length === AGENT_QUERY_ROWS_MAX || chars > AGENT_QUERY_CHARS_MAX) {
      return { columns, rows, isCut: true };
    }
    isCut ||= row.some(isLong);
    rows.push(cells);
  }
  return { columns, rows, isCut };
}

function cellOf(value: SqlValue): SqlCell {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "string") {
    return isLong(value) ? `${value.slice(0, AGENT_QUERY_CELL_CHARS_MAX)}…` : value;
  }
  if (value === null) return null;
  return { base64: Buffer.from(value.subarray(0, CELL_BYTES_MAX)).toString("base64") };
}

function isLong(value: SqlValue): boolean {
  if (typeof value === "string") return value.length > AGENT_QUERY_CELL_CHARS_MAX;
  return value instanceof Uint8Array && value.length > CELL_BYTES_MAX;
}

/** Counts the characters of a cell, with some for separators and short values. */
const charsOf = (cell: SqlCell) =>
  8 +
  (typeof cell === "string"
    ? cell.length
    : cell && typeof cell === "object"
      ? cell.base64.length
      : 0);
