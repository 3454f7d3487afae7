/**
 * A set of numbers, stored as runs of consecutive numbers. For example, ten thousand consecutive waiting events are
 * stored as one pair.
 */
import { z } from "zod";

/** First and last number of each run, both included. Runs are ascending and never adjacent. */
export const NumberRuns = z.array(z.tuple([z.int(), z.int()]));
export type NumberRuns = z.infer<typeof NumberRuns>;
type Runs = readonly (readonly [number, number])[];

export function withRun(runs: Runs, from: number, to: number): NumberRuns {
  const before = runs.filter(([, last]) => last < from - 1);
  const after = runs.filter(([first]) => first > to + 1);
  const touched = runs.slice(before.length, runs.length - after.length);
  const first = Math.min(from, touched[0]?.[0] ?? from);
  const last = Math.max(to, touched.at(-1)?.[1] ?? to);
  return [...before, [first, last] as const, ...after].map(([one, other]) => [one, other]);
}

export function withoutNumber(runs: Runs, number: number): NumberRuns {
  return runs.flatMap(([first, last]): NumberRuns => {
    if (number < first || number > last) return [[first, last]];
    const left: NumberRuns = number > first ? [[first, number - 1]] : [];
    return number < last ? [...left, [number + 1, last]] : left;
  });
}

export function hasNumber(runs: Runs, number: number): boolean {
  return runs.some(([first, last]) => number >= first && number <= last);
}

export function countOf(runs: Runs): number {
  return runs.reduce((count, [first, last]) => count + last - first + 1, 0);
}
