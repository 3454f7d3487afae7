/** The rows of an actor as its handlers see them: a Map that cannot be changed, not even after a cast. */
export class RowsView implements ReadonlyMap<string, unknown> {
  readonly #rows: ReadonlyMap<string, unknown>;

  constructor(rows: ReadonlyMap<string, unknown>) {
    this.#rows = rows;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(row: string): unknown {
    return this.#rows.get(row);
  }

  has(row: string): boolean {
    return this.#rows.has(row);
  }

  keys(): MapIterator<string> {
    return this.#rows.keys();
  }

  values(): MapIterator<unknown> {
    return this.#rows.values();
  }

  entries(): MapIterator<[string, unknown]> {
    return this.#rows.entries();
  }

  [Symbol.iterator](): MapIterator<[string, unknown]> {
    return this.#rows.entries();
  }

  forEach(visit: (value: unknown, row: string, rows: ReadonlyMap<string, unknown>) => void): void {
    for (const [row, value] of this.#rows) visit(value, row, this);
  }
}
