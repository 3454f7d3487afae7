/** Allows the requests of a session only to the hosts that the creator of the session listed. */
import type { EgressGuard } from "../../../egress/egress-guard.ts";
import { refused } from "../../../egress/resolver.ts";

/**
 * Returns a guard that connects only to hosts of these patterns. A pattern is an exact host, or contains one `*` for
 * any characters.
 */
export function onlyDomains(guard: EgressGuard, patterns: readonly string[]): EgressGuard {
  return {
    async connect(target, options) {
      const host = target.host.toLowerCase();
      if (patterns.some((pattern) => matches(host, pattern.toLowerCase()))) {
        return await guard.connect(target, options);
      }
      throw refused(target.host, "the session's guardrails do not allow it");
    },
  };
}

function matches(host: string, pattern: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return host === pattern;
  const [start, end] = [pattern.slice(0, star), pattern.slice(star + 1)];
  const isLong = host.length >= start.length + end.length;
  return isLong && host.startsWith(start) && host.endsWith(end);
}
