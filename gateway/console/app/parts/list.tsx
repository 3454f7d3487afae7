/** Tables, and lists that are read from the REST API with their filters and pages. */
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
  /** Begins again with other filters. */
  filter(filters: Readonly<Record<string, string>>): void;
  /** Shows the next and the previous page, where there is one. */
  next: (() => void) | undefined;
  previous: (() => void) | undefined;
}

interface ListOptions {
  everyMs?: number;
  /** The filters at first; the platform gets those that are not empty. */
  filters?: Readonly<Record<string, string>>;
  /** What else the query has. */
  query?: Query;
  /** The parameter that takes the cursor of an answer. */
  cursorName?: string;
}

/** The way through a list by cursors: that of the page that is shown, and the pages beside it. */
export function useCursors() {
  const [cursors, setCursors] = useState<readonly string[]>([]);
  return {
    cursor: cursors.at(-1),
    restart: () => setCursors([]),
    /** Takes the cursor that the page's answer has. */
    pagesBeside: (next: string | undefined): Pick<ListOf<unknown>, "next" | "previous"> => ({
      next: next ? () => setCursors([...cursors, next]) : undefined,
      previous: cursors.length > 0 ? () => setCursors(cursors.slice(0, -1)) : undefined,
    }),
  };
}

/** Reads a list of the REST API page by page, by number or cursor. */
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
  /** The nouns of one row and of several, where an "s" does not make it. */
  noun: string;
  nouns?: string;
  filters?: readonly Field<Record<string, string>>[];
  /** Stands before the filters. */
  beside?: ComponentChildren;
  /** Shown instead of an empty table, and what to do then. */
  empty: readonly [title: string, advice?: ComponentChildren];
  /** The same where no row fits the filters. */
  none?: readonly [title: string, advice?: ComponentChildren];
  children?: ComponentChildren;
}

/** Shows a list with its loading, empty and error state. */
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

/** The states of a list to choose from. */
export const stateFilter = (
  options: readonly (readonly [string, string])[],
): Field<Record<string, string>> => ({
  ...{ name: "status", label: "State" },
  options: [["", "All"], ...options],
});

/** The same, in their own words. */
export const statesFilter = (states: readonly string[]) =>
  stateFilter(states.map((one) => [one, one.slice(0, 1).toUpperCase() + one.slice(1)]));

/** The cells of each column, by its name. */
type Columns<T> = Readonly<Record<string, (row: T) => ComponentChildren>>;

interface TableProps<T> {
  /** What the rows are, for screen readers. */
  label: string;
  columns: Columns<T>;
  rows: readonly T[];
  /** Without it, the key is the id of the row, or else its place. */
  keyOf?: ((row: T) => string) | undefined;
  /** Buttons of a row. Their column's name is for screen readers alone. */
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
