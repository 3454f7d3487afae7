/**
 * Shows a process's actors and workers to Prometheus. The labels are kinds, messages and error codes, which are closed
 * lists.
 */
import { Counter, Gauge, type Registry } from "prom-client";
import { declaredMetric, type MetricName } from "../../../schemas/metrics.ts";
import type { MessageCounts, ServiceCounts } from "./service-counts.ts";

/** Counts of handled messages, read when the metrics are requested. */
export function exposeCounts(
  registry: Registry,
  role: "actors" | "browser",
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
