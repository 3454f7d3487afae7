/** A list as a table; on narrow screens each row becomes a block with the names of its columns. */
import type { ComponentChildren } from "preact";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
  /** Holds buttons: the name is for screen readers alone. */
  isActions?: boolean;
}

interface TableProps<T> {
  /** What the rows are, for screen readers. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
}

export function Table<T>({ label, columns, rows, keyOf }: TableProps<T>) {
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ name, isActions }) => (
            <th key={name} scope="col">
              <span class={isActions ? "hidden" : ""}>{name}</span>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ name, cell, isActions }) => (
              <td
                key={name}
                data-name={isActions ? "" : name}
                class={isActions ? "of-actions" : ""}
              >
                <div class="cell">{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
