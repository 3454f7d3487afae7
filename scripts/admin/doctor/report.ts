/** Prints the findings of `trunkline admin doctor`: one line for each finding, or all findings as JSON. */
import { printable, printableLines } from "../printable.ts";
import { type Finding, LEVELS, worstOf } from "./check.ts";

const LEVEL_WIDTH = Math.max(...LEVELS.map((level) => level.length));

export function reportText(findings: readonly Finding[]): string {
  const width = Math.max(0, ...findings.map(({ about }) => about.length));
  const lines = findings.map(({ level, about, found, wanted, mend }) => {
    const start = `${level.padEnd(LEVEL_WIDTH)}  ${about.padEnd(width)}  found ${found}`;
    return printable(mend === undefined ? start : `${start}; wanted ${wanted}; mend: ${mend}`);
  });
  const counts = LEVELS.map((level) => {
    const count = findings.filter((finding) => finding.level === level).length;
    return level === "good" ? `${count} good` : `${count} ${level}${count === 1 ? "" : "s"}`;
  });
  return [...lines, counts.toReversed().join(", ")].join("\n");
}

export function reportJson(findings: readonly Finding[], version: string): string {
  const report = { status: worstOf(findings), version, findings };
  return printableLines(JSON.stringify(report, undefined, 2));
}
