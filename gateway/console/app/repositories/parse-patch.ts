/** Parses a Git patch into lines with their line numbers. */

export interface PatchLine {
  kind: "added" | "removed" | "same" | "hunk";
  text: string;
  before?: number;
  after?: number;
}

/**
 * Returns the changed lines of each file, in the order of the patch. A file without text changes, such as a picture,
 * has an empty list.
 */
export function parsePatch(patch: string): PatchLine[][] {
  const files: PatchLine[][] = [];
  let lines: PatchLine[] = [];
  let before = 0;
  let after = 0;
  /**
   * Number of lines of the old and new file that the current hunk still contains. When both are 0, the next lines are
   * headers.
   */
  let left = { before: 0, after: 0 };
  for (const text of patch.split("\n")) {
    const isInside = left.before > 0 || left.after > 0;
    if (!isInside && text.startsWith("diff --git ")) {
      lines = [];
      files.push(lines);
      continue;
    }
    const hunk = isInside ? null : /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(text);
    if (hunk) {
      before = Number(hunk[1]);
      after = Number(hunk[3]);
      left = { before: Number(hunk[2] ?? 1), after: Number(hunk[4] ?? 1) };
      lines.push({ kind: "hunk", text });
      continue;
    }
    if (!isInside) continue;
    const sign = text[0];
    const content = text.slice(1);
    if (sign === "+") lines.push({ kind: "added", text: content, after: after++ });
    else if (sign === "-") lines.push({ kind: "removed", text: content, before: before++ });
    else if (sign === " ") {
      lines.push({ kind: "same", text: content, before: before++, after: after++ });
    }
    if (sign === "+" || sign === " ") left.after -= 1;
    if (sign === "-" || sign === " ") left.before -= 1;
  }
  return files;
}
