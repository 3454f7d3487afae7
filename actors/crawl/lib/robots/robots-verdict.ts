/** Decides whether a robots.txt allows an address, and by which line. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { RobotsRules } from "../../../../schemas/crawl/robots-rules.ts";
import { matchesPathPattern } from "./path-pattern.ts";
import { robotsPathOf } from "./robots-path.ts";
import { type RobotsRule, readRule } from "./robots-rule.ts";

export interface RobotsVerdict {
  allowed: boolean;
  /** The deciding rule. Without a matching rule the address is allowed. */
  rule?: { line: number; text: string };
}

/**
 * Returns the verdict by RFC 9309, section 2.2.2: the longest matching pattern decides, and Allow wins over an equal
 * Disallow.
 */
export function robotsVerdict(
  { rules }: DeepReadonly<Pick<RobotsRules, "rules">>,
  url: string,
): RobotsVerdict {
  const path = robotsPathOf(url);
  // RFC 9309, section 2.2.2: a file cannot forbid its own reading.
  if (path === "/robots.txt") return { allowed: true };
  let decisive: RobotsRule | undefined;
  for (const text of rules) {
    const rule = readRule(text);
    if (decisive !== undefined && !outranks(rule, decisive)) continue;
    const pattern = patternFor(path, rule);
    if (pattern === undefined) continue;
    const found = { ...rule, pattern };
    if (decisive === undefined || outranks(found, decisive)) decisive = found;
  }
  if (decisive === undefined) return { allowed: true };
  const { allow, line, pattern } = decisive;
  return { allowed: allow, rule: { line, text: `${allow ? "Allow" : "Disallow"}: ${pattern}` } };
}

function outranks(one: RobotsRule, other: RobotsRule): boolean {
  if (one.pattern.length !== other.pattern.length) {
    return one.pattern.length > other.pattern.length;
  }
  return one.allow && !other.allow;
}

/**
 * Returns the pattern by which a rule matches. A rule that allows a folder's index page also allows the folder's own
 * address.
 */
function patternFor(path: string, { pattern, allow }: RobotsRule): string | undefined {
  if (matchesPathPattern(path, pattern)) return pattern;
  const slash = pattern.lastIndexOf("/");
  if (!allow || !pattern.startsWith("/index.htm", slash)) return undefined;
  const folder = `${pattern.slice(0, slash + 1)}$`;
  return matchesPathPattern(path, folder) ? folder : undefined;
}
