/** One rule of a robots.txt, and the line of text as which it is kept. */
import { robotsPatternOf } from "./robots-path.ts";

export interface RobotsRule {
  line: number;
  allow: boolean;
  pattern: string;
}

export function formatRule({ line, allow, pattern }: RobotsRule): string {
  return `${line}${allow ? "+" : "-"}${pattern}`;
}

export function readRule(rule: string): RobotsRule {
  // The number ends within the first few characters, so a parseInt of the whole would do no more.
  const line = Number.parseInt(rule, 10);
  const sign = String(line).length;
  const pattern = rule.slice(sign + 1);
  // Rules that an earlier version stored have another normal form.
  const isPlain = !pattern.includes("%") && !pattern.slice(0, -1).includes("$");
  return {
    line,
    allow: rule[sign] === "+",
    pattern: isPlain ? pattern : robotsPatternOf(pattern),
  };
}
