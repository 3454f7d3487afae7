/** Prints a table with aligned columns: text to the left, numbers to the right. */
import { printable } from "./printable.ts";

/** Formats the rows, and escapes characters that could control a terminal. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const texts = [heading, ...rows].map((row) => row.map((cell) => printable(String(cell))));
  const widths = heading.map((_, column) =>
    Math.max(...texts.map((row) => row[column]?.length ?? 0)),
  );
  return texts
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          const figure = typeof rows[0]?.[column] === "number";
          return figure ? cell.padStart(width) : cell.padEnd(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
