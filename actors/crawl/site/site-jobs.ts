/** Jobs at a site: who hears of its robots.txt, who waits for turns, and who waits for a place among those. */
import { strict as assert } from "node:assert";
import { type DeepReadonly, envelope } from "../../../schemas/contract.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import {
  SITE_JOBS_WAITING_MAX,
  SITE_TELL_CHARS_MAX,
  SITE_TELLS_MAX,
} from "../../../schemas/crawl/limits.ts";
import { type Scheme, site } from "../../../schemas/crawl/site.ts";
import { want } from "./pace.ts";
import { knownPolicy, refusalOf, sitemapsOf, wantRobots } from "./site-robots.ts";
import type { Newcomer } from "./site-state.ts";
import type { Step } from "./step.ts";

/** Jobs that take turns at one site, in its state; more wait in rows until one of these is done. */
export const SITE_JOBS_MAX = 1_000;

type Job = DeepReadonly<Newcomer>;

/** A job says what it wants from now on. */
export function takeWant(step: Step, wanted: Job): void {
  const waiting = step.row(rowName(wanted.job));
  if (waiting !== undefined && "job" in waiting) keepWaiting(step, merge(waiting, wanted));
  else if (isTakingTurns(step, wanted.job) || jobsOf(step) < SITE_JOBS_MAX) admit(step, wanted);
  else if (wanted.wants > 0 || wanted.tell.length > 0) putToWait(step, wanted);
}

/** Tells jobs of every robots.txt that has become known; one that has heard of all it asked about takes turns. */
export function tellNewcomers(step: Step): void {
  if (step.state.newcomers.length === 0) return;
  const staying: Job[] = [];
  const written = new Map<Scheme, string[]>();
  let told = 0;
  let characters = 0;
  let changed = false;
  for (const newcomer of step.state.newcomers) {
    const untold = newcomer.tell.filter(({ scheme, intent }) => {
      const policy = knownPolicy(step.state, scheme, step.now);
      if (policy === undefined) {
        wantRobots(step, scheme);
        return true;
      }
      const sitemaps = written.get(scheme) ?? sitemapsOf(step, scheme);
      written.set(scheme, sitemaps);
      const more = sitemaps.reduce((sum, { length }) => sum + length, 0);
      if (told >= SITE_TELLS_MAX || (told > 0 && characters + more > SITE_TELL_CHARS_MAX)) {
        return true;
      }
      told += 1;
      characters += more;
      const refusal = refusalOf(policy, intent);
      const truncated = policy.kind === "rules" && policy.truncated;
      const learned = { host: step.context.key, scheme, sitemaps };
      step.send.push(
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
      step.pace = want(step.pace, newcomer.account, newcomer.job, newcomer.wants);
    }
  }
  if (changed) step.state = { ...step.state, newcomers: staying };
  // Those who are left out hear in the next transition.
  const left = staying.some(({ tell }) =>
    tell.some(({ scheme }) => knownPolicy(step.state, scheme, step.now) !== undefined),
  );
  if (left) step.send.push(envelope(site, step.context.key, "look", {}));
}

/** Takes in jobs that wait, while there are places. */
export function admitWaiting(step: Step): void {
  let places = Math.min(SITE_TELLS_MAX, SITE_JOBS_MAX - jobsOf(step));
  if (step.state.waiting === 0 || places <= 0) return;
  for (const name of step.context.rows.keys()) {
    if (!name.startsWith(WAITING)) continue;
    const row = step.row(name);
    if (row === undefined || !("job" in row)) continue;
    step.rows[name] = null;
    step.state = { ...step.state, waiting: step.state.waiting - 1 };
    admit(step, row);
    places -= 1;
    if (places === 0) return;
  }
}

/** Into the round, or among those who must hear of a robots.txt first. */
function admit(step: Step, wanted: Job): void {
  const { newcomers } = step.state;
  const known = newcomers.find(({ job }) => job === wanted.job);
  const next = known ? merge(known, wanted) : wanted;
  // What it has heard about it may fetch; only a job that takes no turns yet is held up.
  const held = next.tell.length > 0 && !isServed(step, next.job);
  if (!held) step.pace = want(step.pace, next.account, next.job, next.wants);
  const others = newcomers.filter((one) => one !== known);
  if (next.tell.length > 0) others.push(held ? next : { ...next, wants: 0 });
  if (known || next.tell.length > 0) step.state = { ...step.state, newcomers: others };
}

function putToWait(step: Step, job: Job): void {
  const { waiting } = step.state;
  if (waiting >= SITE_JOBS_WAITING_MAX) {
    step.send.push(envelope(crawlJob, job.job, "siteFull", { host: step.context.key }));
    return;
  }
  step.rows[rowName(job.job)] = job;
  step.state = { ...step.state, waiting: waiting + 1 };
}

function keepWaiting(step: Step, job: Job): void {
  const leaves = job.wants === 0 && job.tell.length === 0;
  step.rows[rowName(job.job)] = leaves ? null : job;
  if (leaves) step.state = { ...step.state, waiting: step.state.waiting - 1 };
}

/** A job that wants nothing any more hears nothing either. */
function merge(before: Job, after: Job): Job {
  assert.equal(before.job, after.job);
  const schemes = new Set(after.tell.map(({ scheme }) => scheme));
  const kept = after.wants === 0 ? [] : before.tell.filter(({ scheme }) => !schemes.has(scheme));
  return { ...after, tell: [...kept, ...after.tell] };
}

const isTakingTurns = (step: Step, job: string) =>
  isServed(step, job) || step.state.newcomers.some((one) => one.job === job);

const isServed = ({ pace }: Step, job: string) =>
  pace.accounts.some(({ jobs }) => jobs.some((one) => one.job === job));

const jobsOf = ({ state, pace }: Step) =>
  pace.accounts.reduce((sum, { jobs }) => sum + jobs.length, state.newcomers.length);

const WAITING = "waiting.";
const rowName = (job: string) => `${WAITING}${job}`;
