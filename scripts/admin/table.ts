/** Prints a table with aligned columns: text to the left, numbers to the right. */
export function table(
  heading: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): string {
  const widths = heading.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => String(row[column]).length)),
  );
  return [heading, ...rows]
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          const figure = typeof rows[0]?.[column] === "number";
          return figure ? String(cell).padStart(width) : String(cell).padEnd(width);
        })
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
