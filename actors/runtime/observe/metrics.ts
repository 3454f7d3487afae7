/**
 * Shows a process's actors and workers to Prometheus. The labels are kinds, messages and error codes, which are closed
 * lists.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { addMeter, levelOf, type MeteredName } from "../../../schemas/meter.ts";
import { declaredMetric, METRICS, type Metric, type MetricName } from "../../../schemas/metrics.ts";
import type { MessageCounts, ServiceCounts } from "./service-counts.ts";

/** Counts of handled messages, read when the metrics are requested. */
export function exposeCounts(
  registry: Registry,
  role: "actors" | "browser" | "gateway",
  counts: ServiceCounts,
): void {
  const measure = (name: MetricName, value: (of: MessageCounts) => number) =>
    new Counter({
      ...declaredMetric(name),
      registers: [registry],
      collect() {
        this.reset();
        for (const of of counts.all()) {
          this.inc({ kind: of.kind, message: of.message }, value(of));
        }
      },
    });
  measure(`${role}_messages_total`, ({ requests }) => requests);
  measure(`${role}_refusals_total`, ({ errors }) => errors);
  measure(`${role}_seconds_total`, ({ ms }) => ms / 1_000);
}

/** A gauge whose value is read when the metrics are requested. */
export function exposeGauge(registry: Registry, name: MetricName, value: () => number): void {
  new Gauge({
    ...declaredMetric(name),
    registers: [registry],
    collect() {
      this.set(value());
    },
  });
}

/**
 * Upper bounds of durations in seconds. The shortest durations are those of commits, the longest those of crawled
 * pages that load slowly.
 */
const SECONDS_BUCKETS = [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 15, 60];

/**
 * Exposes the figures of `schemas/meter.ts`, with all their series from the start. If a series appeared only with its
 * first event, the rate of the series would miss this event. The returned function stops the counts.
 */
export function exposeMeter(registry: Registry): () => void {
  const counters = new Map<string, Counter>();
  const histograms = new Map<string, Histogram>();
  const registers = [registry];
  for (const [name, { type, values }] of Object.entries<Metric>(METRICS)) {
    if (values === undefined) continue;
    const metered = name as MeteredName;
    const declared = { ...declaredMetric(metered), registers };
    if (type === "gauge") exposeGauge(registry, metered, () => levelOf(metered));
    else if (type === "counter") {
      const counter = new Counter(declared);
      for (const labels of combinations(values)) counter.inc(labels, 0);
      counters.set(name, counter);
    } else {
      const histogram = new Histogram({ ...declared, buckets: SECONDS_BUCKETS });
      for (const labels of combinations(values)) histogram.zero(labels);
      histograms.set(name, histogram);
    }
  }
  return addMeter({
    count: (name, labels, by) => counters.get(name)?.inc(labels, by),
    time: (name, labels, seconds) => histograms.get(name)?.observe(labels, seconds),
  });
}

/** Returns each combination of the labels' values. */
function combinations(values: Readonly<Record<string, readonly string[]>>) {
  let found: Record<string, string>[] = [{}];
  for (const [label, of] of Object.entries(values)) {
    found = found.flatMap((labels) => of.map((value) => ({ ...labels, [label]: value })));
  }
  return found;
}
