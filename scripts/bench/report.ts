/** Shows figures as a Markdown table. */
import { type Figure, isMet, ratioOf, type Target } from "./benchmark.ts";

const HEADINGS = ["figure", "unit", "ours", "reference", "ratio", "target", "met"];

export function markdownTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => [
    figure.name,
    figure.unit,
    number(figure.ours),
    number(figure.reference),
    number(ratioOf(figure)),
    targetText(figure.target),
    metText(isMet(figure)),
  ]);
  return [HEADINGS, HEADINGS.map(() => "---"), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");
}

function number(value: number | undefined): string {
  if (value === undefined) return "";
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return value.toLocaleString("en", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

function targetText(target: Target | undefined): string {
  if (target === undefined) return "";
  return "atLeast" in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`;
}

function metText(met: boolean | undefined): string {
  if (met === undefined) return "";
  return met ? "yes" : "no";
}
