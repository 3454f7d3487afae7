/** One rule of a robots.txt, and its stored form. */
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
  // Only the first few characters are the number.
  const line = Number.parseInt(rule, 10);
  const sign = String(line).length;
  const pattern = rule.slice(sign + 1);
  // Earlier versions stored rules in another normal form.
  const isPlain = !pattern.includes("%") && !pattern.slice(0, -1).includes("$");
  return {
    line,
    allow: rule[sign] === "+",
    pattern: isPlain ? pattern : robotsPatternOf(pattern),
  };
}
