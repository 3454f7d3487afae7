/**
 * Shows a process's actors and workers to Prometheus. The labels are kinds, messages and error codes, which are closed
 * lists.
 */
import { Counter, Gauge, type Registry } from "prom-client";
import type { MessageCounts, ServiceCounts } from "./service-counts.ts";

/** Counts of handled messages, read when the metrics are requested. */
export function exposeCounts(registry: Registry, role: string, counts: ServiceCounts): void {
  const labelNames = ["kind", "message"] as const;
  const measure = (name: string, help: string, value: (of: MessageCounts) => number) =>
    new Counter({
      name: `trunkline_${role}_${name}`,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset();
        for (const of of counts.all()) {
          this.inc({ kind: of.kind, message: of.message }, value(of));
        }
      },
    });
  measure("messages_total", "Messages handled", ({ requests }) => requests);
  measure("refusals_total", "Messages refused or failed", ({ errors }) => errors);
  measure("seconds_total", "Time from arrival to answer", ({ ms }) => ms / 1_000);
}

/** A gauge whose value is read when the metrics are requested. */
export function exposeGauge(registry: Registry, name: string, help: string, value: () => number) {
  new Gauge({
    name: `trunkline_${name}`,
    help,
    registers: [registry],
    collect() {
      this.set(value());
    },
  });
}
