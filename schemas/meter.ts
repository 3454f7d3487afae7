/**
 * Counts and times the work of this process, under the names of `metrics.ts`. Code without access to the registry
 * calls these functions; `exposeMeter` publishes the figures. Without a meter they cost almost nothing.
 */
import type { METRICS, MetricName } from "./metrics.ts";

/**
 * The metrics that are counted with this file. All other metrics are read from their objects when they are published.
 */
export type MeteredName = {
  [N in MetricName]: (typeof METRICS)[N] extends { values: unknown } ? N : never;
}[MetricName];

type Labels = Readonly<Record<string, string>>;

/** A value for each label of the metric. */
type LabelsOf<N extends MeteredName> = Labels & {
  readonly [L in keyof (typeof METRICS)[N]["values"]]: (typeof METRICS)[N]["values"][L] extends readonly (infer V)[]
    ? V
    : never;
};

export interface Meter {
  count(name: MeteredName, labels: Labels, by: number): void;
  time(name: MeteredName, labels: Labels, seconds: number): void;
}

const meters = new Set<Meter>();
const levels = new Map<MeteredName, Set<() => number>>();

/** Adds a meter, which receives all later figures, until the returned function is called. */
export function addMeter(meter: Meter): () => void {
  meters.add(meter);
  return () => void meters.delete(meter);
}

/** Adds `by` to a counter. */
export function countWork<N extends MeteredName>(name: N, labels: LabelsOf<N>, by = 1): void {
  for (const meter of meters) meter.count(name, labels, by);
}

/** Adds one duration, in milliseconds, to a histogram. */
export function timeWork<N extends MeteredName>(name: N, labels: LabelsOf<N>, ms: number): void {
  for (const meter of meters) meter.time(name, labels, Math.max(0, ms) / 1_000);
}

/** Adds the value that `read` returns to a gauge, until the returned function is called. */
export function watchLevel(name: MeteredName, read: () => number): () => void {
  const readers = levels.get(name) ?? new Set();
  levels.set(name, readers.add(read));
  return () => void readers.delete(read);
}

/** Returns the sum of a gauge's readers in this process. */
export function levelOf(name: MeteredName): number {
  return [...(levels.get(name) ?? [])].reduce((sum, read) => sum + read(), 0);
}
