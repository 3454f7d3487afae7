/** What is kept of a host's pace: who waits, which turns there are, when the latest request left. */
import { z } from "zod";
import type { DeepReadonly } from "../../../schemas/contract.ts";
import { EpochMs } from "../../../schemas/values.ts";

export const Turn = z.object({
  /** Empty of a turn the site takes for itself, ahead of all others. */
  account: z.string(),
  job: z.string(),
  requests: z.int(),
  /** Requests of the same turn that come after this one, where there is a delay: each is then an entry of its own. */
  more: z.int().min(1).optional(),
  /** When it could begin, as it was granted. */
  dueAt: EpochMs,
  /** Whose it is: the first that asked. */
  by: z.string().optional(),
  /** Its worker has asked, and been told to wait. */
  asked: z.boolean(),
  startedAt: EpochMs.optional(),
  /** Of one that has started where there is no delay: its requests at once. */
  atOnce: z.int(),
});
export type Turn = DeepReadonly<z.infer<typeof Turn>>;

export const Pace = z.object({
  /** When the latest request left, or could have left at the latest. */
  lastStartAt: EpochMs,
  /** The host asked us to stay away until then. */
  awayUntil: EpochMs,
  /** How often in a row it did, each time by a request that left after the pause before. */
  busy: z.int().min(1).optional(),
  /** The turn whose request leaves next, and when it may: its worker has been told, or is when it asks. */
  going: z
    .object({
      turn: z.string(),
      startAt: EpochMs,
      /** Where it was put off: what its worker may have been told before, and may have kept to. */
      toldAt: EpochMs.optional(),
    })
    .optional(),
  /** Who waits, in the order in which they are served. */
  accounts: z.array(
    z.object({
      account: z.string(),
      jobs: z.array(z.object({ job: z.string(), wants: z.int().min(1) })),
    }),
  ),
  /** Granted and not finished, by their ids, in the order of their granting; see `entryOf`. */
  turns: z.record(z.string(), Turn),
});
export type Pace = DeepReadonly<z.infer<typeof Pace>>;

/** Under which a turn's request is kept, where the turn's requests are made one after the other. The first is 0. */
export const entryOf = (turn: string, nth = 0) => (nth === 0 ? turn : `${turn}/${nth}`);

/** The entry of the request after this one. */
export function entryAfter(entry: string): string {
  const [, nth = 0] = entry.split("/");
  return entryOf(turnOf(entry), Number(nth) + 1);
}

/** The turn that an entry is of. */
export function turnOf(entry: string): string {
  const [turn = ""] = entry.split("/", 1);
  return turn;
}

/** What is kept of a turn, in the order in which its requests are made. */
export const entriesOf = ({ turns }: Pace, turn: string): string[] =>
  Object.keys(turns).filter((entry) => turnOf(entry) === turn);

/** The jobs that want more than they were granted. */
export const wantingJobs = ({ accounts }: Pace) =>
  accounts.flatMap(({ jobs }) => jobs.map(({ job }) => job));

/** The host's delay and the time: what every decision needs. */
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
