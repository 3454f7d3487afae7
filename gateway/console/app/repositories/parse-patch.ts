/** Reads a patch of git as lines with their numbers. */

export interface PatchLine {
  kind: "added" | "removed" | "same" | "hunk";
  text: string;
  before?: number;
  after?: number;
}

/** Returns the lines of each file, in the order of the patch. Files without lines, such as pictures, have none. */
export function parsePatch(patch: string): PatchLine[][] {
  const files: PatchLine[][] = [];
  let lines: PatchLine[] = [];
  let before = 0;
  let after = 0;
  /** Lines that the hunk still has of both sides; outside of it, lines are headers. */
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
