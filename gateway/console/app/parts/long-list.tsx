/** A list that renders only the rows near the visible part, so that ten thousand rows do not slow down scrolling. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** A list with at most this many rows renders all of them. */
export const WHOLE_ROWS_MAX = 300;
/**
 * Minimum number of extra rows to render above and below the visible rows: 400 px, which a fast wheel passes in four
 * frames. A jump replaces all rendered rows in one task, so more spare rows make that task longer.
 */
const SPARE_ROWS = 10;
/** The height of a row that is assumed until a real row is measured. */
const ROW_HEIGHT = 40;

interface LongListProps<T> {
  class: string;
  rows: readonly T[];
  keyOf: (row: T) => string;
  show: (row: T) => ComponentChildren;
}

export function LongList<T>({ class: name, rows, keyOf, show }: LongListProps<T>) {
  const list = useRef<HTMLUListElement>(null);
  const height = useRef(ROW_HEIGHT);
  const [first, setFirst] = useState(0);
  const isWhole = rows.length <= WHOLE_ROWS_MAX;
  useLayoutEffect(() => {
    if (isWhole) return;
    const follow = () => {
      const { current: element } = list;
      if (!element) return;
      height.current = element.querySelector("li:not(.gap)")?.clientHeight || height.current;
      const passed = -element.getBoundingClientRect().top / height.current;
      // Changes the first rendered row in large steps, so that most scroll events cause no rendering.
      setFirst(Math.max(0, Math.floor(passed / SPARE_ROWS) * SPARE_ROWS - SPARE_ROWS));
    };
    follow();
    addEventListener("scroll", follow, { passive: true });
    addEventListener("resize", follow);
    return () => {
      removeEventListener("scroll", follow);
      removeEventListener("resize", follow);
    };
  }, [isWhole]);
  const from = isWhole ? 0 : Math.min(first, rows.length);
  const inSight = Math.ceil(innerHeight / height.current) + 3 * SPARE_ROWS;
  const to = isWhole ? rows.length : Math.min(rows.length, from + inSight);
  return (
    <ul ref={list} class={name}>
      <Gap height={from * height.current} />
      {rows.slice(from, to).map((row, index) => (
        <li key={keyOf(row)} aria-posinset={from + index + 1} aria-setsize={rows.length}>
          {show(row)}
        </li>
      ))}
      <Gap height={(rows.length - to) * height.current} />
    </ul>
  );
}

function Gap({ height }: { height: number }) {
  return height > 0 ? (
    <li class="gap" role="presentation" style={{ height: `${height}px` }} />
  ) : null;
}
