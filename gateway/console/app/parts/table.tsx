/** A list as a table; on narrow screens each row becomes a block with the names of its columns. */
import type { ComponentChildren } from "preact";

export interface Column<T> {
  name: string;
  cell: (row: T) => ComponentChildren;
}

export interface TableProps<T> {
  /** What the rows are, for screen readers. */
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  /** Buttons of a row. Their column's name is for screen readers alone. */
  actions?: ((row: T) => ComponentChildren) | undefined;
}

export function Table<T>({ label, columns, rows, keyOf, actions }: TableProps<T>) {
  return (
    <table aria-label={label}>
      <thead>
        <tr>
          {columns.map(({ name }) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
          {actions && (
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          )}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ name, cell }) => (
              <td key={name} data-name={name}>
                <div class="cell">{cell(row)}</div>
              </td>
            ))}
            {actions && (
              <td data-name="" class="of-actions">
                <div class="cell">{actions(row)}</div>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
