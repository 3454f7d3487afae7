/** A list that is read from the REST API, with its pages. */
import type { ComponentChildren } from "preact";
import { counted } from "../lib/format.ts";
import type { Reading } from "../lib/use-rest.ts";
import { Read } from "./page.tsx";
import { Table, type TableProps } from "./table.tsx";

interface ListProps<T> extends Omit<TableProps<T>, "rows"> {
  reading: Reading<T[]>;
  /** The noun of one row: "client". */
  noun: string;
  /** The noun of several, where an "s" does not make it. */
  nouns?: string;
  /** Shown instead of an empty table. */
  empty: ComponentChildren;
  /** Shows another page of a list with page numbers. */
  onPage?: (page: number) => void;
  /** Shows the rows behind a cursor. */
  onCursor?: (cursor: string) => void;
  cursorLabel?: string;
}

/** Shows a list with its loading, empty and error state. */
export function List<T>(props: ListProps<T>) {
  const { reading, noun, nouns, empty, onPage, onCursor, cursorLabel = "Older", ...table } = props;
  const { info } = reading;
  const { page = 1, total_pages: pages = 1, total_count: total, cursor } = info;
  return (
    <Read reading={reading}>
      {(rows) =>
        rows.length === 0 && page === 1 ? (
          empty
        ) : (
          <>
            <Table {...table} rows={rows} />
            <div class="below-list">
              <span class="quiet">{counted(total ?? rows.length, noun, nouns)}</span>
              {onPage && pages > 1 && <Pager page={page} pages={pages} onPage={onPage} />}
              {onCursor && cursor && (
                <button type="button" class="small second" onClick={() => onCursor(cursor)}>
                  {cursorLabel}
                </button>
              )}
            </div>
          </>
        )
      }
    </Read>
  );
}

function Pager({
  page,
  pages,
  onPage,
}: {
  page: number;
  pages: number;
  onPage: (page: number) => void;
}) {
  return (
    <nav class="pager" aria-label="Pages of the list">
      <button
        type="button"
        class="small second"
        disabled={page <= 1}
        onClick={() => onPage(page - 1)}
      >
        Previous
      </button>
      <span class="quiet">
        Page {page} of {pages}
      </span>
      <button
        type="button"
        class="small second"
        disabled={page >= pages}
        onClick={() => onPage(page + 1)}
      >
        Next
      </button>
    </nav>
  );
}
