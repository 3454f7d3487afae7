/** Tables, and lists from the REST API with filters and pages. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { counted } from "../lib/format.ts";
import { type Query, queryOf } from "../lib/rest.ts";
import { keepInAddress, usePlace } from "../lib/router.ts";
import { type Reading, useRest } from "../lib/use-rest.ts";
import { Button } from "./button.tsx";
import { type Field, Fields } from "./form.tsx";
import { Empty } from "./note.tsx";
import { Card, Read } from "./page.tsx";

export interface ListOf<T> {
  reading: Reading<T[]>;
  path: string;
  filters: Readonly<Record<string, string>>;
  /** Changes the filters, and returns to the first page of the list. */
  filter(filters: Readonly<Record<string, string>>): void;
  /** `next` and `previous` show another page of the list. Undefined if that page does not exist. */
  next: (() => void) | undefined;
  previous: (() => void) | undefined;
}

interface ListOptions {
  everyMs?: number;
  /**
   * The values of the filters, unless the page's address contains other ones. Only filters that are not empty are
   * sent.
   */
  filters?: Readonly<Record<string, string>>;
  /** Additional parameters of the query. */
  query?: Query;
  /** The name of the query parameter for the cursor. */
  cursorName?: string;
}

/** Keeps the cursors of the shown page and of the pages before it. */
export function useCursors() {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  return {
    cursor: cursors.at(-1),
    restart: () => setCursors([]),
    /**
     * Returns the functions that show the next and previous page. `next` is the cursor in the shown page's response.
     */
    pagesBeside: (next: string | undefined): Pick<ListOf<unknown>, "next" | "previous"> => ({
      next: next ? () => setCursors([...cursors, next]) : undefined,
      previous: cursors.length > 0 ? () => setCursors(cursors.slice(0, -1)) : undefined,
    }),
  };
}

/** Reads a list of the REST API page by page, by page number or by cursor. */
export function useList<T>(base: string, options: ListOptions = {}): ListOf<T> {
  const { everyMs, filters: first = {}, query, cursorName = "cursor" } = options;
  const { query: chosen } = usePlace();
  const [filters, setFilters] = useState(() =>
    Object.fromEntries(
      Object.entries(first).map(([name, value]) => [name, chosen.get(name) ?? value]),
    ),
  );
  const [page, setPage] = useState(1);
  const { cursor: at, restart, pagesBeside } = useCursors();
  const place = { page: page > 1 ? String(page) : "", [cursorName]: at };
  const path = base + queryOf({ ...query, ...filters, ...place });
  const reading = useRest<T[]>(path, everyMs);
  const { cursor, total_pages: pages = 1 } = reading.info;
  const byCursor = pagesBeside(cursor);
  return {
    ...{ reading, path, filters },
    filter(changed) {
      setFilters((before) => ({ ...before, ...changed }));
      keepInAddress(changed);
      setPage(1);
      restart();
    },
    next: byCursor.next ?? (page < pages ? () => setPage(page + 1) : undefined),
    previous: byCursor.previous ?? (page > 1 ? () => setPage(page - 1) : undefined),
  };
}

interface ListCardProps<T> extends Omit<TableProps<T>, "rows"> {
  list: ListOf<T>;
  title?: string;
  /** The noun for one row. `nouns` is the plural, if it is not formed with "s". */
  noun: string;
  nouns?: string;
  filters?: readonly Field<Record<string, string>>[];
  /** Content that is shown before the filters. */
  beside?: ComponentChildren;
  /** Title, and advice what to do, if the list is empty. */
  empty: readonly [title: string, advice?: ComponentChildren];
  /** Title and advice if no row matches the filters. */
  none?: readonly [title: string, advice?: ComponentChildren];
  children?: ComponentChildren;
}

/** A card with a list. Shows also its loading, empty and error states. */
export function ListCard<T>(props: ListCardProps<T>) {
  const {
    list,
    title,
    noun,
    nouns,
    filters,
    beside,
    empty,
    none = empty,
    children,
    ...table
  } = props;
  const { reading, next, previous } = list;
  const isFiltered = Object.values(list.filters).some(Boolean);
  const [emptyTitle, advice] = isFiltered ? none : empty;
  return (
    <Card title={title}>
      {filters && (
        <div class="filters">
          {beside}
          <Fields form={{ values: list.filters, change: list.filter }} fields={filters} />
        </div>
      )}
      <Read reading={reading}>
        {(rows) => (
          <>
            {rows.length === 0 ? (
              <Empty title={emptyTitle}>{advice}</Empty>
            ) : (
              <Table {...table} rows={rows} />
            )}
            <div class="below-list">
              {rows.length > 0 && (
                <span class="quiet">
                  {counted(reading.info.total_count ?? rows.length, noun, nouns)}
                </span>
              )}
              <Pager next={next} previous={previous} />
            </div>
          </>
        )}
      </Read>
      {children}
    </Card>
  );
}

interface TableCardProps<T> extends Omit<TableProps<T>, "label"> {
  title: string;
  /** Content that is shown if there is no row. */
  empty?: ComponentChildren;
}

/** A card with a table of rows that the page has already. */
export function TableCard<T>({ title, empty, ...table }: TableCardProps<T>) {
  return (
    <Card title={title}>
      {table.rows.length === 0 && empty ? empty : <Table {...table} label={title} />}
    </Card>
  );
}

export function Pager({ next, previous }: Pick<ListOf<unknown>, "next" | "previous">) {
  if (!next && !previous) return null;
  return (
    <nav class="pager" aria-label="Pages of the list">
      <Button isDisabled={!previous} onClick={() => previous?.()}>
        Previous
      </Button>
      <Button isDisabled={!next} onClick={() => next?.()}>
        Next
      </Button>
    </nav>
  );
}

/** A filter by state, with the states to choose from. */
export const stateFilter = (
  options: readonly (readonly [string, string])[],
): Field<Record<string, string>> => ({
  ...{ name: "status", label: "State" },
  options: [["", "All"], ...options],
});

/** Like `stateFilter`, with the capitalized names of the states as labels. */
export const statesFilter = (states: readonly string[]) =>
  stateFilter(states.map((one) => [one, one.slice(0, 1).toUpperCase() + one.slice(1)]));

/** The columns of a table: by the column's name, the function that renders a cell. */
type Columns<T> = Readonly<Record<string, (row: T) => ComponentChildren>>;

interface TableProps<T> {
  /** Describes the rows for screen readers. */
  label: string;
  columns: Columns<T>;
  rows: readonly T[];
  /** Returns the key of a row. Without it, the key is the row's id, or else its index. */
  keyOf?: ((row: T) => string) | undefined;
  /** Buttons for a row. Only screen readers get the name of their column. */
  actions?: ((row: T) => ComponentChildren) | undefined;
}

export function Table<T>({ label, columns, rows, keyOf, actions }: TableProps<T>) {
  return (
    <table class="stacks" aria-label={label}>
      <thead>
        <tr>
          {Object.keys(columns).map((name) => (
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
        {rows.map((row, index) => (
          <tr key={keyOf?.(row) ?? (row as { id?: string }).id ?? index}>
            {Object.entries(columns).map(([name, cell]) => (
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
