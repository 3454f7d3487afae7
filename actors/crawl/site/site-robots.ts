/** The robots.txt files of a site: stored in rows, fetched in turns of the site itself, and used for verdicts. */
import type { z } from "zod";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlPage, NO_ACCOUNT } from "../../../schemas/crawl/crawl-page.ts";
import {
  ROBOTS_AWAY_MS_MAX,
  ROBOTS_TRIES_MAX,
  SITE_TELL_CHARS_MAX,
  TURN_MS_MAX,
} from "../../../schemas/crawl/limits.ts";
import type { RobotsRules } from "../../../schemas/crawl/robots-rules.ts";
import {
  type CrawlIntent,
  firstProgress,
  type PageVerdict,
  type RobotsOutcome,
  type Scheme,
  type site,
} from "../../../schemas/crawl/site.ts";
import { ROW_BYTES_MAX } from "../../../schemas/limits.ts";
import { type RobotsPolicy, robotsAnswer } from "../lib/robots/robots-outcome.ts";
import { signalRefusal } from "../lib/robots/signal-refusal.ts";
import { grantableAt } from "./host-capacity.ts";
import { finish, grantOwn } from "./pace.ts";
import type { SiteDraft, State } from "./site-draft.ts";
import { type Policy, ROBOTS_KEPT_MS, type RobotsFile } from "./site-state.ts";

/** Delay before a failed robots.txt is fetched again. */
export const ROBOTS_RETRY_MS = 60_000;
/**
 * Maximum length of a verdict's reason. With one reason for each address of a turn the reply still fits its limit.
 */
export const VERDICT_REASON_CHARS_MAX = 200;

const SCHEMES: readonly Scheme[] = ["https", "http"];
/** Bytes for commas, brackets and member names of a row. */
const ROW_MARGIN_BYTES = 1_000;

/** Returns the policy if the file is known and not expired. */
export function knownPolicy(
  { robots }: State,
  scheme: Scheme,
  now: number,
): DeepReadonly<Policy> | undefined {
  const file = robots[scheme];
  return file !== undefined && now < file.expiresAt ? file.policy : undefined;
}

/** Requests a fetch of this file for an account. */
export function wantRobots(draft: SiteDraft, scheme: Scheme, account: string | undefined): void {
  const file = draft.state.robots[scheme] ?? { expiresAt: 0, wanted: false };
  if (file.wanted) return;
  draft.setRobots(scheme, { ...file, wanted: true, ...(account !== undefined && { account }) });
}

/** Ends fetches that no worker has reported in time. */
export function dropLostFetches(draft: SiteDraft): void {
  for (const scheme of SCHEMES) {
    const fetch = draft.state.robots[scheme]?.fetch;
    if (fetch === undefined || draft.now < fetch.lostAt) continue;
    draft.pace = finish(draft.pace, fetch.turn, draft.moment);
    // If no worker has begun the fetch, the loss is no sign of a problem with the file, so it is not counted.
    loseFetch(draft, fetch.turn, { counts: fetch.begun === true });
  }
}

/** Starts the requested fetches, each in a turn ahead of all others. */
export function fetchWanted(draft: SiteDraft): void {
  for (const scheme of SCHEMES) {
    const file = draft.state.robots[scheme];
    if (!file?.wanted || file.fetch !== undefined) continue;
    if (fetchableAt(draft, file) > draft.now) continue;
    const turn = draft.context.newId();
    draft.pace = grantOwn(draft.pace, turn, draft.moment);
    draft.setRobots(scheme, { ...file, fetch: { turn, lostAt: draft.now + TURN_MS_MAX } });
    const host = draft.key;
    const from = file.next && { from: file.next };
    const account = accountOf(draft, file);
    const owner = account !== undefined && { account };
    const task = { host, scheme, turn, ...owner, ...from };
    draft.send(envelope(crawlPage, account ?? NO_ACCOUNT, "robots", task));
  }
}

/**
 * Returns the account for which a fetch counts: its lookup, and its place in the queue. After a fetch that could not
 * start its lookup, or that no worker has begun, it is the next account that waits at this host. Otherwise an account
 * that uses up its lookups, or has a long queue, could delay the file for others.
 */
function accountOf(draft: SiteDraft, file: DeepReadonly<RobotsFile>): string | undefined {
  const newcomers = draft.state.newcomers.map(({ account }) => account);
  const served = draft.pace.accounts.map(({ account }) => account);
  const accounts = new Set([...(file.account ? [file.account] : []), ...newcomers, ...served]);
  return [...accounts][(file.next?.waits ?? 0) % Math.max(1, accounts.size)];
}

/** Returns the times at which a fetch counts as lost or a wanted fetch can start. */
export function nextFetchAt(draft: SiteDraft): number[] {
  return SCHEMES.flatMap((scheme) => {
    const file = draft.state.robots[scheme];
    if (!file?.wanted) return [];
    return file.fetch?.lostAt ?? fetchableAt(draft, file);
  });
}

const fetchableAt = (draft: SiteDraft, { notBefore = 0 }: DeepReadonly<RobotsFile>): number =>
  Math.max(notBefore, grantableAt(draft.pace, draft.moment));

/** Restarts the timeout of the fetch that a worker has begun in this turn. */
export function beginFetch(draft: SiteDraft, turn: string): void {
  for (const scheme of SCHEMES) {
    const file = draft.state.robots[scheme];
    if (file?.fetch?.turn !== turn || file.fetch.begun) continue;
    const fetch = { turn, lostAt: draft.now + TURN_MS_MAX, begun: true };
    draft.setRobots(scheme, { ...file, fetch });
  }
}

type Paused = z.output<typeof site.messages.robotsPaused.input>;

/**
 * Records that the fetch must continue in another turn. Returns false if the site no longer expects a report of this
 * turn.
 */
export function pauseFetch(draft: SiteDraft, { scheme, turn, next, waitMs = 0 }: Paused): boolean {
  const file = draft.state.robots[scheme];
  if (file?.fetch?.turn !== turn) return false;
  draft.pace = finish(draft.pace, turn, draft.moment);
  const notBefore = draft.now + Math.min(waitMs, ROBOTS_AWAY_MS_MAX);
  draft.setRobots(scheme, { ...withoutFetch(file), next, ...(waitMs > 0 && { notBefore }) });
  return true;
}

/**
 * Ends a fetch whose worker is gone. Counts it as lost unless `counts` is false. After ROBOTS_TRIES_MAX lost fetches
 * the file is taken as the cause, and the site disallows everything.
 */
export function loseFetch(draft: SiteDraft, turn: string, { counts = true } = {}): void {
  for (const scheme of SCHEMES) {
    const file = draft.state.robots[scheme];
    if (file?.fetch?.turn !== turn) continue;
    const lost = (file.lost ?? 0) + (counts ? 1 : 0);
    const next = file.next ?? firstProgress(draft.key, scheme);
    // A fetch that no worker has begun may wait in the long queue of its account. So another account is next.
    const after = counts ? {} : { next: { ...next, waits: (next.waits ?? 0) + 1 } };
    if (lost < ROBOTS_TRIES_MAX) draft.setRobots(scheme, { ...withoutFetch(file), ...after, lost });
    else learn(draft, scheme, { kind: "disallow_all", because: `${lost} fetches came to no end` });
  }
}

/** Records the outcome of a fetch. Returns false if the site no longer expects a report of this turn. */
export function recordOutcome(
  draft: SiteDraft,
  { scheme, turn, outcome }: { scheme: Scheme; turn: string; outcome: RobotsOutcome },
): boolean {
  if (draft.state.robots[scheme]?.fetch?.turn !== turn) return false;
  learn(draft, scheme, outcome);
  return true;
}

function learn(draft: SiteDraft, scheme: Scheme, outcome: RobotsOutcome): void {
  const failed = outcome.kind === "disallow_all";
  const policy = draft.state.robots[scheme]?.policy;
  // An expired copy stays valid while the file cannot be fetched (RFC 9309, section 2.4).
  const kept = failed && policy !== undefined && policy.kind !== "disallow_all";
  draft.setRobots(scheme, {
    policy: kept ? policy : storePolicy(draft, scheme, outcome),
    expiresAt: draft.now + (failed ? ROBOTS_RETRY_MS : ROBOTS_KEPT_MS),
    wanted: false,
  });
  draft.hasLearned = true;
}

/** Returns the sitemaps of the file, as many as fit one message. */
export function sitemapsOf(draft: SiteDraft, scheme: Scheme): string[] {
  const sitemaps: string[] = [];
  let characters = 0;
  for (const part of partsOf(draft, scheme)) {
    for (const sitemap of part.sitemaps) {
      characters += sitemap.length;
      if (characters > SITE_TELL_CHARS_MAX) return sitemaps;
      sitemaps.push(sitemap);
    }
  }
  return sitemaps;
}

/** Returns why the content signal forbids a crawl; undefined where it does not. */
export function refusalOf(
  policy: DeepReadonly<Policy>,
  intent: DeepReadonly<CrawlIntent>,
): string | undefined {
  return policy.kind === "rules" ? signalRefusal(policy.contentSignal, intent) : undefined;
}

/** Returns a verdict for each address. The policies of all their schemes must be known. */
export function verdictsOf(
  draft: SiteDraft,
  urls: readonly string[],
  intent: CrawlIntent,
): PageVerdict[] {
  const judges = new Map<Scheme, (url: string) => PageVerdict>();
  return urls.map((url) => {
    const scheme = schemeOf(url);
    const judge = judges.get(scheme) ?? judgeOf(draft, scheme, intent);
    judges.set(scheme, judge);
    return judge(url);
  });
}

export const schemeOf = (url: string): Scheme => (/^https:/i.test(url) ? "https" : "http");

function judgeOf(
  draft: SiteDraft,
  scheme: Scheme,
  intent: CrawlIntent,
): (url: string) => PageVerdict {
  const policy = knownPolicy(draft.state, scheme, draft.now);
  if (policy === undefined) throw new Error(`Cannot judge ${scheme} addresses: no robots.txt`);
  const refusal = refusalOf(policy, intent);
  if (refusal !== undefined) return () => disallowed(refusal);
  const robots: RobotsPolicy =
    policy.kind === "rules"
      ? { kind: "rules", rules: { rules: partsOf(draft, scheme).flatMap(({ rules }) => rules) } }
      : policy;
  return (url) => {
    const { allowed, unreachable, ...answer } = robotsAnswer(robots, url);
    if (allowed) return { allowed };
    const verdict = disallowed(answer.reason ?? "robots.txt forbids it");
    return unreachable ? { ...verdict, unreachable } : verdict;
  };
}

function disallowed(reason: string): PageVerdict & { allowed: false } {
  const cut = reason.length > VERDICT_REASON_CHARS_MAX;
  return {
    allowed: false,
    reason: cut ? `${reason.slice(0, VERDICT_REASON_CHARS_MAX - 1)}…` : reason,
  };
}

function storePolicy(draft: SiteDraft, scheme: Scheme, outcome: RobotsOutcome): Policy {
  const parts = outcome.kind === "rules" ? split(outcome.rules) : [];
  const before = draft.state.robots[scheme]?.policy;
  const rows = Math.max(parts.length, before?.kind === "rules" ? before.rows : 0);
  for (let number = 0; number < rows; number++) {
    draft.write(rowName(scheme, number), parts[number] ?? null);
  }
  if (outcome.kind !== "rules") return outcome;
  const { crawlDelayMs, contentSignal, rules, truncated } = outcome.rules;
  return {
    ...{ kind: "rules", rows: parts.length, rules: rules.length, contentSignal },
    ...(crawlDelayMs !== undefined && { crawlDelayMs: Math.round(crawlDelayMs) }),
    ...(truncated && { truncated }),
  };
}

interface Part {
  rules: string[];
  sitemaps: string[];
}

function split({ rules, sitemaps }: RobotsRules): Part[] {
  const parts: Part[] = [];
  let last: Part = { rules: [], sitemaps: [] };
  let bytes = 0;
  const add = (member: keyof Part, text: string) => {
    const size = Buffer.byteLength(JSON.stringify(text)) + 1;
    if (parts.length === 0 || bytes + size > ROW_BYTES_MAX - ROW_MARGIN_BYTES) {
      last = { rules: [], sitemaps: [] };
      parts.push(last);
      bytes = 0;
    }
    last[member].push(text);
    bytes += size;
  };
  for (const rule of rules) add("rules", rule);
  for (const sitemap of sitemaps) add("sitemaps", sitemap);
  return parts;
}

function partsOf(draft: SiteDraft, scheme: Scheme): DeepReadonly<Part>[] {
  const policy = draft.state.robots[scheme]?.policy;
  if (policy?.kind !== "rules") return [];
  return Array.from({ length: policy.rows }, (_, number) => {
    const row = draft.row(rowName(scheme, number));
    if (row === undefined || !("rules" in row)) throw new Error(`Cannot find row ${number}`);
    return row;
  });
}

const rowName = (scheme: Scheme, number: number) => `robots.${scheme}.${number}`;

function withoutFetch({ fetch, ...file }: DeepReadonly<RobotsFile>): DeepReadonly<RobotsFile> {
  return file;
}
