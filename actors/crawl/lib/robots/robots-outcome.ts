/** What a site's robots.txt says, or what its absence means, from the outcome of fetching it; and its word on an address. */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { RobotsOutcome } from "../../../../schemas/crawl/site.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import { parseRobots, type RobotsReader } from "./parse-robots.ts";
import { type RobotsVerdict, robotsVerdict } from "./robots-verdict.ts";

/** How a fetch of robots.txt ended, after redirects were followed. */
export type RobotsFetch =
  | { kind: "answered"; status: number; body: Uint8Array }
  /** More than ROBOTS_REDIRECTS_MAX redirects, or one that leads nowhere. */
  | { kind: "redirected_away" }
  /** No answer: DNS, connection, TLS, time. */
  | { kind: "unreachable"; because: string };

/** What decides: with rules, only those are needed. */
export type RobotsPolicy = DeepReadonly<
  | { kind: "rules"; rules: { rules: string[] } }
  | { kind: "allow_all" }
  | { kind: "disallow_all"; because: string; unreachable?: true | undefined }
>;

/** RFC 9309, section 2.3.1: rules of an answer, all allowed without a file, nothing while the site is in trouble. */
export function robotsOutcomeOf(fetched: RobotsFetch, reader: RobotsReader): RobotsOutcome {
  if (fetched.kind === "unreachable") {
    return { kind: "disallow_all", because: fetched.because, unreachable: true };
  }
  if (fetched.kind === "redirected_away") {
    return { kind: "allow_all", because: "it redirects too often" };
  }
  const { status, body } = fetched;
  const because = `it answered ${status}`;
  // 429 says nothing about the file, though section 2.3.1.3 has all 4xx in one: to take it as leave would be a second mistake.
  if (status >= 500 || status === 429) return { kind: "disallow_all", because };
  if (!isSuccessful(status)) return { kind: "allow_all", because };
  return { kind: "rules", rules: parseRobots(body, reader) };
}

/** Whether we may fetch an address, and for a record's `reason` why not. */
export function robotsAnswer(
  policy: RobotsPolicy,
  url: string,
): RobotsVerdict & { reason?: string; unreachable?: true } {
  switch (policy.kind) {
    case "allow_all":
      return { allowed: true };
    case "disallow_all":
      return {
        ...{ allowed: false, reason: `robots.txt cannot be read: ${policy.because}` },
        ...(policy.unreachable && { unreachable: true }),
      };
    case "rules": {
      const verdict = robotsVerdict(policy.rules, url);
      const { allowed, rule } = verdict;
      if (allowed || rule === undefined) return verdict;
      return { ...verdict, reason: `robots.txt line ${rule.line}: ${rule.text}` };
    }
    default:
      return policy satisfies never;
  }
}
