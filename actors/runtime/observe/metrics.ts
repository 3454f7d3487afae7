/** Shows a process's actors and workers to Prometheus. Labels are kinds, messages and error codes: closed lists. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { MessageCounts, ServiceCounts } from "./service-counts.ts";

/** Counts of messages handled, read from the role's counts whenever the metrics are asked for. */
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

/** A value as it is at the moment it is asked for. */
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
