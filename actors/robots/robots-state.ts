/** What a site's robots.txt says now, or what its absence means, from the outcome of fetching it. */
import { z } from "zod";
import { ROBOTS_KEPT_MS, ROBOTS_RETRY_MS } from "../../schemas/crawl-limits.ts";
import { RobotsRules } from "../../schemas/robots-rules.ts";
import { EpochMs } from "../../schemas/values.ts";
import { parseRobots, type RobotsReader } from "./parse-robots.ts";
import { type RobotsVerdict, robotsVerdict } from "./robots-verdict.ts";

export const RobotsState = z.object({
  policy: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("rules"), rules: RobotsRules }),
    z.object({ kind: z.literal("allow_all"), because: z.string() }),
    z.object({ kind: z.literal("disallow_all"), because: z.string() }),
  ]),
  /** The state holds for addresses fetched before this; then the file is fetched anew. */
  expiresAt: EpochMs,
});
export type RobotsState = z.output<typeof RobotsState>;

/** How a fetch of robots.txt ended, after redirects were followed. */
export type RobotsFetch =
  | { kind: "answered"; status: number; body: Uint8Array }
  /** More than ROBOTS_REDIRECTS_MAX redirects, or one that leads nowhere. */
  | { kind: "redirected_away" }
  /** No answer: DNS, connection, TLS, time. */
  | { kind: "unreachable"; because: string };

/** RFC 9309, section 2.3.1: rules of an answer, all allowed without a file, nothing while the site is in trouble. */
export function robotsStateOf(
  fetched: RobotsFetch,
  { now, ...reader }: RobotsReader & { now: number },
): RobotsState {
  if (fetched.kind === "unreachable") return disallowAll(fetched.because, now);
  if (fetched.kind === "redirected_away") return allowAll("it redirects too often", now);
  const { status, body } = fetched;
  if (status >= 500) return disallowAll(`it answered ${status}`, now);
  if (status < 200 || status >= 300) return allowAll(`it answered ${status}`, now);
  const rules = parseRobots(body, reader);
  return { policy: { kind: "rules", rules }, expiresAt: now + ROBOTS_KEPT_MS };
}

/** Whether we may fetch an address, and for a record's `reason` why not. */
export function robotsAnswer(
  { policy }: RobotsState,
  url: string,
): RobotsVerdict & { reason?: string } {
  switch (policy.kind) {
    case "allow_all":
      return { allowed: true };
    case "disallow_all":
      return { allowed: false, reason: `robots.txt cannot be read: ${policy.because}` };
    case "rules": {
      const verdict = robotsVerdict(policy.rules, url);
      const { allowed, rule } = verdict;
      if (allowed || rule === undefined) return verdict;
      return { ...verdict, reason: `robots.txt, line ${rule.line}: ${rule.text}` };
    }
    default:
      return policy satisfies never;
  }
}

function allowAll(because: string, now: number): RobotsState {
  return { policy: { kind: "allow_all", because }, expiresAt: now + ROBOTS_KEPT_MS };
}

function disallowAll(because: string, now: number): RobotsState {
  return { policy: { kind: "disallow_all", because }, expiresAt: now + ROBOTS_RETRY_MS };
}
