/** Compares the time of day with a clock that is never set, to find out whether the time of day was set. */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "./clock.ts";

/** An actor stores it with its times, to learn later whether the time of day was set since. */
export const Steady = z.object({
  /** Id of the clock that is never set. Each process has its own. */
  id: z.string(),
  /** How far the time of day is ahead of that clock. It changes only if the time of day is set. */
  aheadMs: z.int(),
});
export type Steady = z.infer<typeof Steady>;

/** A smaller difference may come from reading two clocks one after the other. */
export const CLOCK_SET_MS_MIN = 10;

/** The comparison is exact if both clocks were read within this time. */
const READ_MS_MAX = 1;
const READS_MAX = 3;
const ids = new WeakMap<Clock, string>();

export function readSteady(clock: Clock): Steady {
  const id = ids.get(clock) ?? randomUUID();
  ids.set(clock, id);
  // The process may be suspended between reading the two clocks, so the fastest of several readings counts.
  let fastest = { ms: Number.POSITIVE_INFINITY, aheadMs: 0 };
  for (let reads = 0; reads < READS_MAX && fastest.ms > READ_MS_MAX; reads++) {
    const before = clock.monotonic();
    const now = clock.now();
    const ms = clock.monotonic() - before;
    if (ms < fastest.ms) fastest = { ms, aheadMs: Math.round(now - before) };
  }
  return { id, aheadMs: fastest.aheadMs };
}

/**
 * Returns by how many ms the time of day was set between two comparisons: above 0 if it was set forward. Returns 0 if it
 * was not set, or if different processes have made the comparisons, so that nobody knows.
 */
export function setMsBetween(before: Steady | undefined, after: Steady | undefined): number {
  if (before === undefined || before.id !== after?.id) return 0;
  const setMs = after.aheadMs - before.aheadMs;
  return Math.abs(setMs) < CLOCK_SET_MS_MIN ? 0 : setMs;
}

/** Returns which comparison to store: the stored one while it still holds, so that an actor changes rarely. */
export const steadyToStore = (stored: Steady | undefined, present: Steady | undefined) =>
  stored?.id === present?.id && setMsBetween(stored, present) === 0 ? stored : present;
