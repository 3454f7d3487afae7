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
  // The rule begins with its line number. `parseInt` stops reading at the sign behind it.
  const line = Number.parseInt(rule, 10);
  const sign = String(line).length;
  const pattern = rule.slice(sign + 1);
  // Rules that an earlier version stored may be in another normal form. Only patterns with `%` or an inner `$` can
  // differ.
  const isPlain = !pattern.includes("%") && !pattern.slice(0, -1).includes("$");
  return {
    line,
    allow: rule[sign] === "+",
    pattern: isPlain ? pattern : robotsPatternOf(pattern),
  };
}
