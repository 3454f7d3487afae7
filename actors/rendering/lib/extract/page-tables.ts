/** Distinguishes tables of data from tables that are only used for layout, and writes tables of data. */
import { PageNode } from "./page-node.ts";

/**
 * Maximum columns of one `colspan` and rows of one `rowspan`. Browsers allow 1,000 and 65,534; in real tables the
 * numbers are below 100.
 */
export const MARKDOWN_SPAN_MAX = 100;

/**
 * Converts the cells of a layout table to blocks of the page, and removes its columns of line numbers beside code. A
 * table inside a cell of a data table becomes text of that cell.
 */
export function shapeTable(table: PageNode, { inCell }: { inCell: boolean }): void {
  const rows = rowsOf(table);
  if (!inCell && !isLayout(table, rows)) return;
  table.nodeName = "DIV";
  for (const row of rows) {
    row.nodeName = "DIV";
    if (row.parentNode !== null) row.parentNode.nodeName = "DIV";
    for (const cell of cellsOf(row)) {
      if (GUTTER.test(cell.getAttribute("class")?.slice(0, 256) ?? "")) row.removeChild(cell);
      else cell.nodeName = inCell ? "SPAN" : "DIV";
      if (inCell) row.insertBefore(PageNode.text(" "), cell.nextSibling);
    }
  }
}

const GUTTER = /(?:^|[\s-])(?:linenos|lineno|gutter|line-numbers?|blob-num|linenodiv)(?:\s|$)/;

function isLayout(table: PageNode, rows: PageNode[]): boolean {
  if (/^(?:presentation|none)$/i.test(table.getAttribute("role") ?? "")) return true;
  const has = (tagName: string) => table.find((node) => node.tagName === tagName) !== undefined;
  const isOneColumn = rows.every((row) => cellsOf(row).length < 2);
  // A table of one column with a block of code is only layout, so the code is kept as a block.
  if (isOneColumn && has("pre")) return true;
  const head = rows[0] === undefined ? [] : cellsOf(rows[0]);
  if (head.length > 1 && head.every(({ tagName }) => tagName === "th")) return false;
  if (has("table")) return true;
  if (has("th")) return false;
  return isOneColumn || BLOCKS.some(has);
}

/**
 * Blocks that do not fit into one line of a table. A table with such blocks and without a header cell is only layout.
 */
const BLOCKS = ["pre", "ul", "ol", "dl", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6"];

function rowsOf(table: PageNode): PageNode[] {
  return table.childNodes.flatMap((node) =>
    /^(?:tbody|thead|tfoot)$/.test(node.tagName)
      ? node.childNodes.filter(isRow)
      : isRow(node)
        ? [node]
        : [],
  );
}

const isRow = (node: PageNode) => node.tagName === "tr";
const cellsOf = (row: PageNode) =>
  row.childNodes.filter(({ tagName }) => tagName === "td" || tagName === "th");

/** Returns the content of a cell as one line, with `<br>` between its lines and blocks. */
export function cellText(content: string): string {
  const lines = content.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "")
    .join("<br>")
    .replaceAll("|", "\\|");
}

/**
 * Writes the rows of a table. The `data` of each cell contains its text. The first row becomes the header, because
 * Markdown requires a header.
 */
export function writeTable(table: PageNode): string {
  const rows = gridOf(rowsOf(table));
  const head = rows.shift();
  if (head === undefined) return "";
  const columns = rows.reduce((most, row) => Math.max(most, row.length), head.length);
  // Markdown does not show cells beyond the last column of the header, so the header gets all columns.
  while (head.length < columns) head.push({ text: "", rule: "---" });
  const lines = [head.map(({ text }) => text), head.map(({ rule }) => rule)];
  for (const row of rows) lines.push(row.map(({ text }) => text));
  return lines.map((line) => `| ${line.join(" | ")} |`).join("\n");
}

interface Cell {
  text: string;
  /** The part of the delimiter row below this cell, if the cell is in the header. */
  rule: string;
}

function gridOf(rows: PageNode[]): Cell[][] {
  /** Number of rows that a cell from above still covers, by column. */
  let covered = new Map<number, number>();
  const grid: Cell[][] = [];
  for (const row of rows) {
    const cells = cellsOf(row);
    if (cells.length === 0) continue;
    const line: Cell[] = [];
    const below = new Map<number, number>();
    const skip = () => {
      for (
        let left = covered.get(line.length);
        left !== undefined;
        left = covered.get(line.length)
      ) {
        if (left > 1) below.set(line.length, left - 1);
        line.push(EMPTY);
      }
    };
    for (const cell of cells) {
      skip();
      const down = spanOf(cell, "rowspan");
      for (let part = 0; part < spanOf(cell, "colspan"); part += 1) {
        if (down > 1) below.set(line.length, down - 1);
        line.push(part === 0 ? { text: cell.data, rule: ruleOf(cell) } : EMPTY);
      }
    }
    skip();
    grid.push(line);
    covered = below;
  }
  return grid;
}

const EMPTY: Cell = { text: "", rule: "---" };

function spanOf(cell: PageNode, name: "colspan" | "rowspan"): number {
  const span = Number(cell.getAttribute(name) ?? 1);
  return Number.isInteger(span) && span > 0 ? Math.min(span, MARKDOWN_SPAN_MAX) : 1;
}

function ruleOf(cell: PageNode): string {
  const style = cell.getAttribute("style")?.slice(0, 1_000) ?? "";
  const align = cell.getAttribute("align") ?? /text-align:\s*(\w+)/i.exec(style)?.[1];
  switch (align?.toLowerCase()) {
    case "left":
      return ":---";
    case "right":
      return "---:";
    case "center":
      return ":---:";
    default:
      return "---";
  }
}
