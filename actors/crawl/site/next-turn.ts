/**
 * Decides whose request leaves next at a host with a delay. A request for the site's own robots.txt goes first. Visits
 * and requests of jobs alternate while both wait: anybody can cause visits without end, by redirects of robots.txt to
 * this host. Pure functions of state and time.
 */
import { TURN_OVERDUE_MS } from "../../../schemas/crawl/limits.ts";
import { nextStartAt } from "./host-capacity.ts";
import type { Moment, Pace, Turn } from "./pace-state.ts";

/**
 * Limits how far ahead a worker learns its start time. This limit plus a lease's duration is shorter than a task's
 * redelivery wait.
 */
export const TURN_GO_MS_MAX = 2_000;

/** Chooses the going turn among turns whose worker waits. Among waiting turns of the same sort, it chooses the one that was granted first. */
export function choose(pace: Pace, moment: Moment): Pace {
  if (moment.delayMs === 0 || pace.going !== undefined || runsAtOnce(pace)) return pace;
  const startAt = nextStartAt(pace, moment);
  // A worker gets its start time at most TURN_GO_MS_MAX ahead. So the choice can wait, and another worker may ask
  // until then.
  if (startAt - moment.now > TURN_GO_MS_MAX) return pace;
  const waiting = Object.entries(pace.turns).filter(([, turn]) => isWaiting(turn));
  for (const sort of sortsInOrder(pace)) {
    const [turn] = waiting.find(([, one]) => sortOf(one) === sort) ?? [];
    if (turn !== undefined) return { ...pace, going: { turn, startAt } };
  }
  return pace;
}

/**
 * Whether a turn must let another one start first, whose worker waits and will soon ask again. Needed only while no
 * turn is going.
 */
export function mustYield(pace: Pace, granted: Turn, moment: Moment): boolean {
  const { now } = moment;
  const sorts = sortsInOrder(pace);
  const first = sorts.slice(0, sorts.indexOf(sortOf(granted)));
  const startAt = nextStartAt(pace, moment);
  return Object.values(pace.turns).some((turn) => {
    if (!isWaiting(turn) || !first.includes(sortOf(turn))) return false;
    // A job's worker asks before the next request may leave. Later, the worker must be dead.
    return now < (turn.account === "" ? turn.dueAt + TURN_OVERDUE_MS : startAt);
  });
}

/** Records that the request of a turn has left by this time, or may have left. */
export function departed(
  { isAfterVisit: wasAfterVisit, ...pace }: Pace,
  turn: Turn | undefined,
  leftBy: number,
): Pace {
  const isAfterVisit = turn?.account ? undefined : (turn?.isVisit ?? wasAfterVisit);
  const lastStartAt = Math.max(pace.lastStartAt, leftBy);
  return { ...pace, lastStartAt, ...(isAfterVisit && { isAfterVisit }) };
}

/** Whether turns are still running that began when the host had no delay. */
export const runsAtOnce = (pace: Pace) =>
  Object.values(pace.turns).some(({ startedAt, atOnce }) => startedAt !== undefined && atOnce > 0);

type Sort = "file" | "visit" | "job";

function sortOf({ account, isVisit }: Turn): Sort {
  if (account !== "") return "job";
  return isVisit ? "visit" : "file";
}

const sortsInOrder = ({ isAfterVisit }: Pace): Sort[] =>
  isAfterVisit ? ["file", "job", "visit"] : ["file", "visit", "job"];

/** Whether the turn's worker has asked for a start time and waits for it. */
const isWaiting = ({ asked, startedAt, requests }: Turn) =>
  asked && startedAt === undefined && requests === 1;
