/**
 * Derives the policy from the result of a robots.txt fetch, and decides by the policy whether an address is allowed.
 */
import type { DeepReadonly } from "../../../../schemas/contract.ts";
import type { RobotsOutcome } from "../../../../schemas/crawl/site.ts";
import { isSuccessful } from "../../../../schemas/status-classes.ts";
import { parseRobots, type RobotsReader } from "./parse-robots.ts";
import { type RobotsVerdict, robotsVerdict } from "./robots-verdict.ts";

/** The end of a robots.txt fetch, after redirects. */
export type RobotsFetch =
  | { kind: "answered"; status: number; body: Uint8Array }
  /** More than ROBOTS_REDIRECTS_MAX redirects, or a redirect without a target. */
  | { kind: "redirected_away" }
  /** No response: DNS, connection, TLS or timeout. */
  | { kind: "unreachable"; because: string };

/** The part of a policy that decides about an address. */
export type RobotsPolicy = DeepReadonly<
  | { kind: "rules"; rules: { rules: string[] } }
  | { kind: "allow_all" }
  | { kind: "disallow_all"; because: string; unreachable?: true | undefined }
>;

/**
 * Returns the policy by RFC 9309, section 2.3.1. A successful response has rules. After another response or too many
 * redirects, everything is allowed. After a 429 or 5xx, or without a response, nothing is allowed.
 */
export function robotsOutcomeOf(fetched: RobotsFetch, reader: RobotsReader): RobotsOutcome {
  if (fetched.kind === "unreachable") {
    return { kind: "disallow_all", because: fetched.because, unreachable: true };
  }
  if (fetched.kind === "redirected_away") {
    return { kind: "allow_all", because: "it redirects too often" };
  }
  const { status, body } = fetched;
  const because = `it answered ${status}`;
  // Section 2.3.1.3 allows everything after any 4xx. But a 429 does not say whether the file exists, so it must not
  // count as permission.
  if (status >= 500 || status === 429) return { kind: "disallow_all", because };
  if (!isSuccessful(status)) return { kind: "allow_all", because };
  return { kind: "rules", rules: parseRobots(body, reader) };
}

/** Returns whether the policy allows an address, and the reason for a record if not. */
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
