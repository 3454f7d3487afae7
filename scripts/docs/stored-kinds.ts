/**
 * Generates the table of actor kinds in deploy/storage-schema.md from the comments "Stored at" in the code of the
 * kinds.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ACTORS } from "../../actors/main.ts";
import { REPOSITORY } from "../tools.ts";

const BEGIN =
  '<!-- Kinds: made by `npm run docs` from the comments "Stored at" of the kinds. -->\n';
const END = "<!-- Kinds end. -->\n";

/** Returns the text of deploy/storage-schema.md with a table of kinds that matches the present code. */
export function storageSchema(): string {
  const text = readFileSync(join(REPOSITORY, "deploy/storage-schema.md"), "utf8");
  const [before, rest] = divide(text, BEGIN);
  const [, after] = divide(rest, END);
  const kinds = ACTORS.map(({ contract }) => contract.kind).toSorted();
  const files = globSync("actors/*/*/*.ts", { cwd: REPOSITORY });
  const rows = kinds.flatMap((kind) => {
    const own = files.filter((path) => [`${kind}.ts`, `${kind}-state.ts`].includes(basename(path)));
    return rowsOf(kind, storedComment(kind, own));
  });
  return `${before}${BEGIN}
| kind | key | state |
| --- | --- | --- |
${rows.join("\n")}

${END}${after}`;
}

/** Returns the table rows of a kind: one row for the kind's state, and one row for each sort of stored row. */
function rowsOf(kind: string, [key = "", state = "", ...rows]: readonly string[]): string[] {
  return [
    `| \`${kind}\` | ${without(key, "Stored at: ")} | ${without(state, "State: ")} |`,
    ...rows.map((row) => {
      const [name, shape] = divide(row, ": ");
      return `| | ${name.replace(/^Row/, "row")} | ${shape} |`;
    }),
  ];
}

/** Returns the paragraphs of a kind's "Stored at" comment: its key, its state, and its rows. */
function storedComment(kind: string, files: readonly string[]): string[] {
  for (const file of files) {
    const text = readFileSync(join(REPOSITORY, file), "utf8");
    const lines = /^ \* (Stored at: (?:(?!\*\/)[\s\S])*)\n \*\/$/m.exec(text)?.[1];
    if (lines === undefined) continue;
    return lines.split("\n *\n * ").map((paragraph) => paragraph.replaceAll(/\n \* ?/g, " "));
  }
  throw new Error(`${kind} has no comment "Stored at: <key>" in ${kind}.ts or ${kind}-state.ts`);
}

function without(text: string, start: string): string {
  if (!text.startsWith(start)) throw new Error(`Expected "${start}…", found "${text}"`);
  return text.slice(start.length);
}

function divide(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`Expected "${mark.trim()}" in "${text.slice(0, 80)}…"`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}
