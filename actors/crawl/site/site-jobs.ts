/**
 * The jobs at a site: jobs that wait for its robots.txt, jobs that get turns, and jobs that wait for a place among
 * these.
 */
import { strict as assert } from "node:assert";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import { SITE_TELL_CHARS_MAX } from "../../../schemas/crawl/limits.ts";
import { type Scheme, site } from "../../../schemas/crawl/site.ts";
import { want } from "./pace.ts";
import type { SiteDraft } from "./site-draft.ts";
import { knownPolicy, refusalOf, sitemapsOf, wantRobots } from "./site-robots.ts";
import type { Newcomer } from "./site-state.ts";

/**
 * Maximum number of jobs that wait in rows of a site. Further jobs are refused, because they would get no turn within
 * a week.
 */
export const SITE_JOBS_WAITING_MAX = 10_000;

/** Maximum number of robots.txt messages that one transition sends to jobs. The outbox must hold them. */
export const SITE_TELLS_MAX = 100;

/**
 * Maximum number of jobs at one site that get turns or wait for its robots.txt. They are in the site's state; further
 * jobs wait in rows.
 */
export const SITE_JOBS_MAX = 1_000;

type Job = DeepReadonly<Newcomer>;

/** Records what a job wants from now on. */
export function recordWant(draft: SiteDraft, wanted: Job): void {
  const waiting = draft.row(rowName(wanted.job));
  if (waiting !== undefined && "job" in waiting) keepWaiting(draft, merge(waiting, wanted));
  else if (isTakingTurns(draft, wanted.job) || jobsOf(draft) < SITE_JOBS_MAX) admit(draft, wanted);
  else if (wanted.wants > 0 || wanted.tell.length > 0) putToWait(draft, wanted);
}

/**
 * Notifies waiting jobs of the robots.txt files that the site knows, at most SITE_TELLS_MAX messages in one call, and
 * requests the unknown files. A job that waits for no further file can get turns.
 */
export function notifyNewcomers(draft: SiteDraft): void {
  if (draft.state.newcomers.length === 0) return;
  const staying: Job[] = [];
  const written = new Map<Scheme, string[]>();
  let sent = 0;
  let characters = 0;
  let changed = false;
  for (const newcomer of draft.state.newcomers) {
    const untold = newcomer.tell.filter(({ scheme, intent }) => {
      const policy = knownPolicy(draft.state, scheme, draft.now);
      if (policy === undefined) {
        wantRobots(draft, scheme, newcomer.account);
        return true;
      }
      const sitemaps = written.get(scheme) ?? sitemapsOf(draft, scheme);
      written.set(scheme, sitemaps);
      const more = sitemaps.reduce((sum, { length }) => sum + length, 0);
      if (sent >= SITE_TELLS_MAX || (sent > 0 && characters + more > SITE_TELL_CHARS_MAX)) {
        return true;
      }
      sent += 1;
      characters += more;
      const refusal = refusalOf(policy, intent);
      const truncated = policy.kind === "rules" && policy.truncated;
      const learned = { host: draft.key, scheme, sitemaps };
      draft.send(
        envelope(crawlJob, newcomer.job, "robotsLearned", {
          ...learned,
          ...(truncated && { truncated }),
          ...(refusal && { refusal }),
        }),
      );
      return false;
    });
    if (untold.length === newcomer.tell.length && untold.length > 0) {
      staying.push(newcomer);
      continue;
    }
    changed = true;
    if (untold.length > 0) staying.push({ ...newcomer, tell: untold });
    else if (newcomer.wants > 0) {
      draft.pace = want(draft.pace, newcomer.account, newcomer.job, newcomer.wants);
    }
  }
  if (changed) draft.state.newcomers = staying;
  // If a job must still get a known file, the site sends itself `look`; the next transition notifies that job.
  const left = staying.some(({ tell }) =>
    tell.some(({ scheme }) => knownPolicy(draft.state, scheme, draft.now) !== undefined),
  );
  if (left) draft.send(envelope(site, draft.key, "look", {}));
}

/** Admits waiting jobs to the free places, at most SITE_TELLS_MAX jobs in one call. */
export function admitWaiting(draft: SiteDraft): void {
  let places = Math.min(SITE_TELLS_MAX, SITE_JOBS_MAX - jobsOf(draft));
  if (draft.state.waiting === 0 || places <= 0) return;
  for (const name of draft.context.rows.keys()) {
    if (!name.startsWith(WAITING)) continue;
    const row = draft.row(name);
    if (row === undefined || !("job" in row)) continue;
    draft.write(name, null);
    draft.state.waiting = draft.state.waiting - 1;
    admit(draft, row);
    places -= 1;
    if (places === 0) return;
  }
}

/** Adds a job to the jobs that get turns, or to the jobs that wait for a robots.txt. */
function admit(draft: SiteDraft, wanted: Job): void {
  const { newcomers } = draft.state;
  const known = newcomers.find(({ job }) => job === wanted.job);
  const next = known ? merge(known, wanted) : wanted;
  // A job that already gets turns keeps them while it waits for the robots.txt of another scheme. Any other job gets
  // turns only after its files.
  const held = next.tell.length > 0 && !isServed(draft, next.job);
  if (!held) draft.pace = want(draft.pace, next.account, next.job, next.wants);
  const others = newcomers.filter((one) => one !== known);
  if (next.tell.length > 0) others.push(held ? next : { ...next, wants: 0 });
  if (known || next.tell.length > 0) draft.state.newcomers = others;
}

function putToWait(draft: SiteDraft, job: Job): void {
  const { waiting } = draft.state;
  if (waiting >= SITE_JOBS_WAITING_MAX) {
    draft.send(envelope(crawlJob, job.job, "siteFull", { host: draft.key }));
    return;
  }
  draft.write(rowName(job.job), job);
  draft.state.waiting = waiting + 1;
}

function keepWaiting(draft: SiteDraft, job: Job): void {
  const leaves = job.wants === 0 && job.tell.length === 0;
  draft.write(rowName(job.job), leaves ? null : job);
  if (leaves) draft.state.waiting = draft.state.waiting - 1;
}

/**
 * Merges two wants of one job. If the job wants no more requests, it no longer waits for the earlier robots.txt
 * files.
 */
function merge(before: Job, after: Job): Job {
  assert.equal(before.job, after.job);
  const schemes = new Set(after.tell.map(({ scheme }) => scheme));
  const kept = after.wants === 0 ? [] : before.tell.filter(({ scheme }) => !schemes.has(scheme));
  return { ...after, tell: [...kept, ...after.tell] };
}

const isTakingTurns = (draft: SiteDraft, job: string) =>
  isServed(draft, job) || draft.state.newcomers.some((one) => one.job === job);

const isServed = ({ pace }: SiteDraft, job: string) =>
  pace.accounts.some(({ jobs }) => jobs.some((one) => one.job === job));

const jobsOf = ({ state, pace }: SiteDraft) =>
  pace.accounts.reduce((sum, { jobs }) => sum + jobs.length, state.newcomers.length);

const WAITING = "waiting.";
const rowName = (job: string) => `${WAITING}${job}`;
