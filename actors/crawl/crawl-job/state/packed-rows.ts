/**
 * The stored form of rows with many addresses. A draft has such a row as a list (`pages`, `backlog`); memory and the
 * store have it as one text (`packed`, `found`), which takes three fifths of the bytes. Earlier releases stored the
 * lists.
 */
import { strict as assert } from "node:assert";
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { CrawlJobRow, Found } from "./crawl-job-state.ts";
import { packLines, unpackLines } from "./packed-lines.ts";

type Row = DeepReadonly<CrawlJobRow>;
type Waiting = Pick<Extract<Row, { type: "backlog" }>, "depth" | "found">;

export function packRow(row: Row): Row {
  if (row.type === "pages") return { type: "packed", text: packLines(row.lines) };
  if (row.type !== "backlog") return row;
  return { type: "found", depth: row.depth, text: packLines(row.found.map(writeFound)) };
}

/** Returns the lines of a row of records; with `count`, maybe only the first ones. Undefined for any other row. */
export function linesOfRow(row: Row | undefined, count?: number): readonly string[] | undefined {
  if (row?.type === "packed") return unpackLines(row.text, count);
  return row?.type === "pages" ? row.lines : undefined;
}

/** Returns the found addresses of a row of the backlog. */
export function waitingOfRow(row: Row | undefined): Waiting {
  if (row?.type === "found") {
    return { depth: row.depth, found: unpackLines(row.text).map(readFound) };
  }
  assert(row?.type === "backlog", "The row is one of the backlog");
  return row;
}

/** Tabs and line feeds in an address have no meaning: the parser of addresses removes them. */
function writeFound({ url, lastModifiedAt }: Found): string {
  const plain = url.replaceAll(/[\t\n]/g, "");
  return lastModifiedAt === undefined ? plain : `${plain}\t${lastModifiedAt}`;
}

function readFound(line: string): Found {
  const [url = "", lastModifiedAt] = line.split("\t");
  return lastModifiedAt === undefined ? { url } : { url, lastModifiedAt: Number(lastModifiedAt) };
}
