/** The stored pace of a host: the jobs that wait, the open turns, and the latest request. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const Turn = z.object({
  /** The account of the turn's job. Empty for a turn of the site itself, which is for a request for a robots.txt. */
  account: z.string(),
  job: z.string(),
  /** The turn of the site itself is for a robots.txt request that another host redirects to this host. */
  isVisit: z.literal(true).optional(),
  requests: z.int(),
  /**
   * At a host with a delay: number of further requests of the same turn. Each of them gets an entry when the request
   * before it has left.
   */
  more: z.int().min(1).optional(),
  /**
   * Earliest start of the turn's request, as it was known at the grant or when the worker later needed another
   * request.
   */
  dueAt: EpochMs,
  /** The run of the task that holds the turn: the first that called `begin`. */
  by: z.string().optional(),
  /** The worker has asked and must wait. */
  asked: z.boolean(),
  startedAt: EpochMs.optional(),
  /** Concurrent requests of a started turn at a host without a delay. */
  atOnce: z.int(),
});
export type Turn = DeepReadonly<z.infer<typeof Turn>>;

export const Pace = z.object({
  /** Latest possible departure of the latest request. */
  lastStartAt: EpochMs,
  /** A visit has left, and no request of a job since. */
  isAfterVisit: z.literal(true).optional(),
  /** End of the host's pause. */
  awayUntil: EpochMs,
  /** Number of pauses in a row. A pause is counted only if its request left after the end of the pause before. */
  busy: z.int().min(1).optional(),
  /**
   * The going turn: the turn whose request leaves next, and its start time. The turn's worker knows the start time
   * already, or gets it with its next call.
   */
  going: z
    .object({
      turn: z.string(),
      startAt: EpochMs,
      /** If the start time was postponed: the earlier start time, which the worker may have received and may use. */
      toldAt: EpochMs.optional(),
    })
    .optional(),
  /** Waiting accounts in the order of service. */
  accounts: z.array(
    z.object({
      account: z.string(),
      jobs: z.array(z.object({ job: z.string(), wants: z.int().min(1) })),
    }),
  ),
  /** Granted and unfinished turns by id (see `entryOf`), in the order of their grants. */
  turns: z.record(z.string(), Turn),
});
export type Pace = DeepReadonly<z.infer<typeof Pace>>;

/**
 * Returns the name of a request's entry. `nth` is the number of the request in a turn that makes its requests one
 * after another; the first is 0.
 */
export const entryOf = (turn: string, nth = 0) => (nth === 0 ? turn : `${turn}/${nth}`);

/** Returns the entry of the next request of the same turn. */
export function entryAfter(entry: string): string {
  const [, nth = 0] = entry.split("/");
  return entryOf(turnOf(entry), Number(nth) + 1);
}

/** Returns the turn of an entry. */
export function turnOf(entry: string): string {
  const [turn = ""] = entry.split("/", 1);
  return turn;
}

/** Returns the entries of a turn, in the order of its requests. */
export const entriesOf = ({ turns }: Pace, turn: string): string[] =>
  Object.keys(turns).filter((entry) => turnOf(entry) === turn);

/** Returns the jobs that want more than they were granted. */
export const wantingJobs = ({ accounts }: Pace) =>
  accounts.flatMap(({ jobs }) => jobs.map(({ job }) => job));

/** The host's delay and the current time, which every decision needs. */
export interface Moment {
  delayMs: number;
  now: number;
}

export const IDLE_PACE: z.infer<typeof Pace> = {
  lastStartAt: 0,
  awayUntil: 0,
  accounts: [],
  turns: {},
};
