/** Verifies a client's domain by DNS: schedules lookups and applies their results. */
import type { Input } from "../../../schemas/contract.ts";
import type { oauthClient } from "../../../schemas/oauth/oauth-client.ts";
import type { LoggedChange } from "./change-log.ts";
import type { Domain } from "./oauth-client-state.ts";

/** Prefix of the TXT record that verifies a client's domain. The client's code follows it. */
const VERIFICATION_PREFIX = "vendor_oauth_client_publisher=";
/** The first pause between two lookups. It doubles after each lookup, up to the configured pause. */
export const DOMAIN_POLL_FIRST_MS = 10_000;
/** Interval at which a verified record is checked again. */
export const DOMAIN_RECHECK_MS = 86_400_000;
/**
 * Time after which a lookup without an answer is repeated: the longest delay of a busy lane. Each further pause is
 * longer.
 */
export const DOMAIN_CHECK_LOST_MS = 10 * 60_000;

type Report = Input<(typeof oauthClient)["messages"]["domainChecked"]>;

/**
 * The result of a verification step: the new state of the domain, the time of the next step, and the entries for the
 * change log.
 */
export interface DomainStep {
  domain: Domain;
  checkAt: number | null;
  logs: readonly LoggedChange[];
}

export const textOf = (code: string) => VERIFICATION_PREFIX + code;

/** Starts the verification of a domain. If the domain is the same as before, the last answer of DNS stays visible. */
export function startVerification(
  host: string,
  pace: Domain["pace"],
  { before, now }: { before: Domain | undefined; now: number },
): DomainStep {
  const known = before?.host === host ? before : undefined;
  // A verified domain stays verified during a new lookup. The answer to an earlier lookup does not count any more.
  if (known?.status === "verified") {
    const { awaiting: _, ...verified } = known;
    return { domain: { ...verified, pace, nextCheckAt: now }, checkAt: now, logs: [] };
  }
  const { lastAnswer, lastCheckedAt } = known ?? {};
  const changes = [{ field: "host", from: null, to: host }];
  return {
    domain: {
      status: "pending",
      host,
      startedAt: now,
      pace,
      lookups: 0,
      nextCheckAt: now,
      ...(lastAnswer !== undefined && { lastAnswer }),
      ...(lastCheckedAt !== undefined && { lastCheckedAt }),
    },
    checkAt: now,
    // A running verification gets its full time window again, without another log entry.
    logs: known && known.status !== "failed" ? [] : [{ action: "verification_started", changes }],
  };
}

/**
 * Starts the lookup with the number `check`. If the time for the verification is over, it marks the verification as
 * failed instead.
 */
export function checkDue(
  domain: Domain,
  { check, now }: { check: number; now: number },
): DomainStep {
  if (domain.status !== "verified" && now >= endOf(domain)) {
    const { nextCheckAt: _, awaiting: __, ...kept } = domain;
    return {
      domain: { ...kept, status: "failed" },
      checkAt: null,
      logs: [{ action: "verification_failed" }],
    };
  }
  const status = domain.status === "verified" ? domain.status : "in_progress";
  // A worker may die before it reports its answer, so the lookup is repeated after a pause. The pause grows, so that
  // only few lookups are queued while no worker runs.
  const heardAt = Math.max(domain.startedAt, domain.lastCheckedAt ?? 0);
  const again = now + Math.max(DOMAIN_CHECK_LOST_MS, now - heardAt);
  return {
    domain: { ...domain, status, awaiting: check, lookups: domain.lookups + 1, nextCheckAt: now },
    checkAt: beforeEnd(domain, again),
    logs: [],
  };
}

/**
 * Applies the answer to a lookup. Returns undefined if the answer belongs to an earlier lookup than the awaited one.
 */
export function answered(
  domain: Domain,
  { check, outcome, answer }: Report,
  now: number,
): DomainStep | undefined {
  if (domain.awaiting !== check) return undefined;
  const { awaiting: _, missingSince, ...kept } = domain;
  const isVerified = domain.status === "verified";
  const checkAt =
    isVerified || outcome === "found" ? now + DOMAIN_RECHECK_MS : nextPoll(domain, now);
  const next = { ...kept, lastAnswer: answer, lastCheckedAt: now, nextCheckAt: checkAt };
  switch (outcome) {
    case "found": {
      const verifiedAt = domain.verifiedAt ?? now;
      const logs: LoggedChange[] = isVerified
        ? missingSince === undefined
          ? []
          : [{ action: "record_back" }]
        : [{ action: "verified" }];
      return { domain: { ...next, status: "verified", verifiedAt }, checkAt, logs };
    }
    case "absent": {
      if (!isVerified) return { domain: next, checkAt, logs: [] };
      const logs: LoggedChange[] = missingSince === undefined ? [{ action: "record_missing" }] : [];
      return { domain: { ...next, missingSince: missingSince ?? now }, checkAt, logs };
    }
    // No DNS server answered, so it is unknown whether the record still exists.
    case "unanswered": {
      const flag = missingSince === undefined ? {} : { missingSince };
      return { domain: { ...next, ...flag }, checkAt, logs: [] };
    }
    default:
      return outcome satisfies never;
  }
}

/** Returns the time of a check: `at`, but not after the end of a verification that is not successful yet. */
export const beforeEnd = (domain: Domain, at: number) =>
  domain.status === "verified" ? at : Math.min(at, endOf(domain));

const endOf = ({ startedAt, pace }: Domain) => startedAt + pace.windowMs;

/**
 * Returns the time of the next lookup. The pause doubles after each lookup, up to the configured pause. The time is
 * never after the end of the verification.
 */
function nextPoll(domain: Domain, now: number): number {
  const doublings = Math.min(domain.lookups - 1, 30);
  const pause = Math.min(DOMAIN_POLL_FIRST_MS * 2 ** doublings, domain.pace.pollMs);
  return Math.min(now + pause, endOf(domain));
}
