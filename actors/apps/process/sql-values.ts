/** Checks values that SQL receives and converts values that it returns. Refuses values that SQLite would change. */

import type { SqlValue } from "../package/sql.ts";

export function toSqlValue(value: unknown, index: number): SqlValue {
  switch (typeof value) {
    case "string":
      return value;
    case "bigint":
      if (BigInt.asIntN(64, value) !== value) throw unfit(index, `${value} has more than 64 bits`);
      return value;
    case "boolean":
      return value ? 1 : 0;
    case "number":
      if (Number.isNaN(value)) throw unfit(index, "NaN would be stored as NULL");
      return value;
    case "object":
      if (value === null) return null;
      if (value instanceof ArrayBuffer) return new Uint8Array(value);
      if (ArrayBuffer.isView(value)) {
        return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      }
      if (value instanceof Date) throw unfit(index, "a Date; use toISOString() or getTime()");
      throw unfit(index, "an object; use JSON.stringify()");
    case "undefined":
      throw unfit(index, "undefined; use null");
    default:
      throw unfit(index, `a ${typeof value}`);
  }
}

function unfit(index: number, what: string): TypeError {
  return new TypeError(
    `Cannot bind value ${index + 1}: it is ${what}. Strings, numbers, bigints, booleans, null and bytes can be bound`,
  );
}
