/** Keeps a site's robots.txt and grants turns to the crawls of all accounts. */
import { envelope } from "../../../schemas/contract.ts";
import { crawlJob } from "../../../schemas/crawl/crawl-job.ts";
import { TURN_LEAD_MS } from "../../../schemas/crawl/limits.ts";
import { type PageVerdict, site } from "../../../schemas/crawl/site.ts";
import { ActorError } from "../../../schemas/errors.ts";
import { defineActor } from "../../runtime/kinds/define-actor.ts";
import { endPause, pauseHost } from "./host-pause.ts";
import {
  begin,
  finish,
  finishAll,
  giveBack,
  grant,
  grantOwn,
  hold,
  idleFrom,
  lose,
  nextLookAt,
  started,
} from "./pace.ts";
import { entriesOf, entryOf, IDLE_PACE } from "./pace-state.ts";
import { SiteDraft, type State } from "./site-draft.ts";
import { admitWaiting, notifyNewcomers, recordWant } from "./site-jobs.ts";
import {
  beginFetch,
  dropLostFetches,
  fetchWanted,
  knownPolicy,
  loseFetch,
  nextFetchAt,
  pauseFetch,
  recordOutcome,
  refusalOf,
  schemeOf,
  verdictsOf,
  wantRobots,
} from "./site-robots.ts";
import { SiteRow, SiteState } from "./site-state.ts";

/**
 * Assumed time between a request's departure and its arrival at the host. The next request is assumed to arrive
 * immediately. So even at the host, two requests are at least the delay apart.
 */
export const ARRIVAL_MS = 4;
/** Pause before a worker asks again while the robots.txt is being fetched. Most fetches end within it. */
const TURN_ASK_ROBOTS_MS = 250;
/**
 * Maximum number of rule checks for one turn. They take about 0.1 s, during which the site handles no other message.
 */
export const TURN_RULE_CHECKS_MAX = 50_000;
/** Maximum number of open turns for robots.txt requests: of this site, and of redirects to this host. */
export const SITE_VISITS_MAX = 16;

/**
 * Stored at: host of an address, with the port where it is not the scheme's own
 *
 * State: `{ pace: { lastStartAt, awayUntil, busy?, isAfterVisit?, going?: { turn, startAt, toldAt? }, accounts: [{
 * account, jobs: [{ job, wants }] }], turns: { <turn>[/<nth>]: { account, job, isVisit?, requests, more?, dueAt, by?,
 * asked, startedAt?, atOnce } } }, robots: { http?, https? }, newcomers: [{ account, job, wants, tell }], waiting,
 * lookAt?, clock?: { id, aheadMs } }`; a robots file is `{ policy?, expiresAt, wanted, account?, fetch?: { turn,
 * lostAt, begun? }, next?, lost?, notBefore? }`, `next` where a fetch in an earlier turn came to, `notBefore` when it
 * goes on. Rows: `robots.<scheme>.<n>` is `{ rules, sitemaps }`, a part of that file; `waiting.<job>` a newcomer past
 * the 1,000 that take turns
 */
export const siteActor = defineActor(site, {
  state: SiteState,
  rows: SiteRow,
  initial: { pace: IDLE_PACE, robots: {}, newcomers: [], waiting: 0 },
  mayComeEarly: ["look"],

  handlers: {
    consult(state, { scheme, intent, account }, context) {
      const draft = new SiteDraft(state, context);
      const policy = knownPolicy(draft.state, scheme, context.now);
      if (policy !== undefined) {
        const refusal = refusalOf(policy, intent);
        return { state, reply: { known: true, ...(refusal && { refusal }) } };
      }
      wantRobots(draft, scheme, account);
      return { ...advance(draft), reply: { known: false } };
    },

    want(state, wanted, context) {
      const draft = new SiteDraft(state, context);
      recordWant(draft, wanted);
      return advance(draft);
    },

    begin(state, { turn: id, nth, urls, intent, by }, context) {
      const turn = entryOf(id, nth);
      const draft = new SiteDraft(state, context);
      const granted = draft.pace.turns[turn];
      const held = hold(draft.pace, turn, by);
      if (granted === undefined || held === undefined) return { state, reply: GONE };
      draft.pace = held;
      let verdicts: PageVerdict[] | undefined;
      // A turn of the site itself is for a robots.txt request: for its own file, or for the target of a redirect.
      const own = granted.account === "";
      if (!own) {
        for (const url of urls) checkHost(url, context.key);
        const unknown = [...new Set(urls.map(schemeOf))].filter(
          (scheme) => knownPolicy(draft.state, scheme, context.now) === undefined,
        );
        for (const scheme of unknown) wantRobots(draft, scheme, granted.account);
        if (unknown.length > 0) {
          // If the host is paused for long, the turn ends here. Otherwise a worker would hold the turn during the
          // whole pause.
          if (draft.pace.awayUntil - draft.now > TURN_LEAD_MS) {
            draft.pace = finish(draft.pace, turn, draft.moment);
            return { ...advance(draft), reply: GONE };
          }
          return { ...advance(draft), reply: WAIT_FOR_ROBOTS };
        }
        // The turn was granted when the host had no delay, so its worker would make all requests at the same time.
        if (nth === undefined && urls.length > 1 && draft.moment.delayMs > 0) {
          draft.pace = finish(draft.pace, turn, draft.moment);
          return { ...advance(draft), reply: GONE };
        }
        // Verdicts cost processor time. So they are computed at a worker's first call, and when its request may
        // leave, but not at the calls between.
        if (!granted.asked) {
          verdicts = verdictsOf(draft, urls, intent);
          if (!verdicts.some(({ allowed }) => allowed)) return giveUp(draft, turn, verdicts);
        }
      }
      if (own) {
        beginFetch(draft, turn);
        verdicts = urls.map(() => ({ allowed: true }));
      }
      const wanted = verdicts?.filter(({ allowed }) => allowed).length ?? urls.length;
      const { pace, begun } = begin(draft.pace, turn, { ...draft.moment, wanted });
      draft.pace = pace;
      if (begun.state !== "go") return { ...advance(draft), reply: begun };
      verdicts ??= verdictsOf(draft, urls, intent);
      if (!verdicts.some(({ allowed }) => allowed)) return giveUp(draft, turn, verdicts);
      const { now: at, clock } = context;
      const answered = clock === undefined ? {} : { told: { at, clock } };
      const spaced = draft.moment.delayMs > 0 ? { spaced: true as const } : {};
      return { ...advance(draft), reply: { ...begun, ...spaced, ...answered, verdicts } };
    },

    judge(state, { urls, intent }, context) {
      for (const url of urls) checkHost(url, context.key);
      const draft = new SiteDraft(state, context);
      const known = urls.every((url) => knownPolicy(draft.state, schemeOf(url), context.now));
      const verdicts = known && verdictsOf(draft, urls, intent);
      return { state, reply: verdicts ? { verdicts } : {} };
    },

    visit(state, { turn }, context) {
      const own = Object.values(state.pace.turns).filter(({ account }) => account === "");
      // If the limit is reached, no turn is created. The visitor's `begin` then gets the reply `gone`.
      const full = own.length >= SITE_VISITS_MAX;
      if (state.pace.turns[turn] !== undefined || full) return { state, reply: {} };
      const draft = new SiteDraft(state, context);
      draft.pace = grantOwn(draft.pace, turn, { ...draft.moment, isVisit: true });
      return { ...advance(draft), reply: {} };
    },

    requestStarted(state, { turn, nth, again, lateMs }, context) {
      const draft = new SiteDraft(state, context);
      // The clock shows whole milliseconds, and the current one may be nearly over.
      const arrivesInMs = 1 + ARRIVAL_MS;
      const late = lateMs === undefined ? {} : { lateMs: lateMs + arrivesInMs };
      const moment = { ...draft.moment, now: draft.now + arrivesInMs };
      draft.pace = started(draft.pace, entryOf(turn, nth), { ...moment, again, ...late });
      return { ...advance(draft), reply: {} };
    },

    turnFinished(state, { turn, nth, awayMs, lost }, context) {
      const all = entriesOf(state.pace, turn);
      const entries = nth === undefined ? all : all.filter((entry) => entry === entryOf(turn, nth));
      // A task may run twice, and a worker may report after its turn has expired.
      if (entries.length === 0) return { state };
      const draft = new SiteDraft(state, context);
      const { turns } = draft.pace;
      const starts = entries.flatMap((entry) => turns[entry]?.startedAt ?? []);
      const startedAt = starts.length > 0 ? Math.max(...starts) : undefined;
      draft.pace = finishAll(draft.pace, entries, { ...draft.moment, end: lost ? lose : finish });
      if (lost) loseFetch(draft, turn);
      if (awayMs !== undefined) {
        draft.pace = pauseHost(draft.pace, {
          awayMs,
          startedAt: startedAt ?? draft.now,
          now: draft.now,
        });
      } else if (!lost && startedAt !== undefined) draft.pace = endPause(draft.pace, startedAt);
      return advance(draft);
    },

    robotsFetched(state, fetched, context) {
      const draft = new SiteDraft(state, context);
      return recordOutcome(draft, fetched) ? advance(draft) : { state };
    },

    robotsPaused(state, paused, context) {
      const draft = new SiteDraft(state, context);
      return pauseFetch(draft, paused) ? advance(draft) : { state };
    },

    look(state, _input, context) {
      if (state.lookAt === undefined) return advance(new SiteDraft(state, context));
      const { lookAt, ...others } = state;
      const draft = new SiteDraft(others, context);
      const transition = advance(draft);
      const endsAt = endOf(draft);
      return endsAt !== undefined && endsAt <= draft.now ? { forget: true } : transition;
    },
  },
});

const GONE = { state: "gone" } as const;
const WAIT_FOR_ROBOTS = { state: "wait", askAgainInMs: TURN_ASK_ROBOTS_MS } as const;

/** Ends a turn of which robots.txt allows nothing. */
function giveUp(draft: SiteDraft, turn: string, verdicts: ReturnType<typeof verdictsOf>) {
  draft.pace = giveBack(draft.pace, turn, draft.moment);
  return { ...advance(draft), reply: { state: "go" as const, waitMs: 0, atOnce: 1, verdicts } };
}

/**
 * Completes every transition: performs what a change, or the passing of time, has made possible, and sets the
 * reminder.
 */
function advance(draft: SiteDraft) {
  dropLostFetches(draft);
  admitWaiting(draft);
  notifyNewcomers(draft);
  fetchWanted(draft);
  grantTurns(draft);
  const remind = lookAhead(draft);
  if (remind !== undefined) draft.remind("look", remind);
  if (draft.hasNewState || isRemembered(draft.state)) draft.recordClock();
  // Notifies subscribers that a robots.txt is known now. The message does not contain the file.
  return { ...draft.transition(), ...(draft.hasLearned && { live: {} }) };
}

function grantTurns(draft: SiteDraft): void {
  const { robots } = draft.state;
  const rules = [robots.http, robots.https].map((file) =>
    file?.policy?.kind === "rules" ? file.policy.rules : 0,
  );
  const requestsMax = Math.max(1, Math.floor(TURN_RULE_CHECKS_MAX / Math.max(1, ...rules)));
  const { key: host } = draft;
  const { newId } = draft.context;
  const { pace, granted } = grant(draft.pace, { ...draft.moment, newId, requestsMax });
  draft.pace = pace;
  for (const { account, job, ...turn } of granted) {
    draft.send(envelope(crawlJob, job, "turnGranted", { host, ...turn }));
  }
}

/**
 * Returns the time to which the reminder must be set; undefined if the current reminder is early enough. A reminder
 * that fires too early does no harm.
 */
function lookAhead(draft: SiteDraft): number | undefined {
  const paceAt = nextLookAt(draft.pace, draft.moment);
  const times = [...nextFetchAt(draft), ...(paceAt === undefined ? [] : [paceAt])];
  const endsAt = endOf(draft);
  // If the site has no state and the message changed nothing, no reminder is set, so that nothing is stored.
  if (endsAt !== undefined && (draft.hasNewState || isRemembered(draft.state))) {
    times.push(endsAt);
  }
  if (times.length === 0) return undefined;
  const next = Math.max(draft.now + 1, Math.min(...times));
  const { lookAt } = draft.state;
  if (lookAt !== undefined && lookAt > draft.now && lookAt <= next) return undefined;
  draft.state.lookAt = next;
  return next;
}

/** Returns when the state can be forgotten without loss. */
function endOf(draft: SiteDraft): number | undefined {
  const { robots, newcomers, waiting } = draft.state;
  const idleAt = idleFrom(draft.pace, draft.moment);
  if (idleAt === undefined || newcomers.length > 0 || waiting > 0) return undefined;
  const files = [robots.http, robots.https].flatMap((file) => file ?? []);
  if (files.some(({ wanted }) => wanted)) return undefined;
  return Math.max(idleAt, ...files.map(({ expiresAt }) => expiresAt));
}

const isRemembered = ({ robots, pace }: State) =>
  Object.keys(robots).length > 0 || pace.lastStartAt > 0 || pace.awayUntil > 0;

function checkHost(url: string, host: string): void {
  if (URL.parse(url)?.host === host) return;
  throw new ActorError("invalid_request", `Cannot judge address: it is not at "${host}"`);
}
