/**
 * The rows of an actor as its handlers see them: a Map that cannot be changed, not even after a cast.
 *
 * A loaded row is decoded when a handler first reads it. A job with 100,000 pages reads only a few of its rows for a
 * message. Decoding all rows took more than half of its load time.
 */

/** A row that no handler has read yet: its JSON text. */
export class StoredRow {
  readonly #text: string;
  readonly #decode: (text: string) => unknown;

  /** `decode` throws if the text is not a valid row of its kind. */
  constructor(text: string, decode: (text: string) => unknown) {
    this.#text = text;
    this.#decode = decode;
  }

  decoded(): unknown {
    return this.#decode(this.#text);
  }
}

export class RowsView implements ReadonlyMap<string, unknown> {
  readonly #rows: Map<string, unknown>;

  /** `rows` holds values and StoredRows. */
  constructor(rows: Map<string, unknown>) {
    this.#rows = rows;
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Returns the same object each time, until the row changes. */
  get(row: string): unknown {
    const value = this.#rows.get(row);
    if (!(value instanceof StoredRow)) return value;
    const decoded = value.decoded();
    this.#rows.set(row, decoded);
    return decoded;
  }

  has(row: string): boolean {
    return this.#rows.has(row);
  }

  keys(): MapIterator<string> {
    return this.#rows.keys();
  }

  values(): MapIterator<unknown> {
    return this.#decoded().values();
  }

  entries(): MapIterator<[string, unknown]> {
    return this.#decoded().entries();
  }

  [Symbol.iterator](): MapIterator<[string, unknown]> {
    return this.entries();
  }

  forEach(visit: (value: unknown, row: string, rows: ReadonlyMap<string, unknown>) => void): void {
    for (const [row, value] of this.entries()) visit(value, row, this);
  }

  #decoded(): ReadonlyMap<string, unknown> {
    for (const row of this.#rows.keys()) this.get(row);
    return this.#rows;
  }
}
