/** Generates the page with every metric of Trunkline from schemas/metrics.ts. */
import { declaredMetric, METRICS, type Metric, type MetricName } from "../../schemas/metrics.ts";

export function metricsPage(): string {
  const rows = Object.keys(METRICS).map((name) => {
    const { type, values = {} }: Metric = METRICS[name as MetricName];
    const { name: full, help, labelNames } = declaredMetric(name as MetricName);
    const labels = labelNames.map((label) => {
      const known = values[label];
      return known ? `\`${label}\`: ${known.join(", ")}` : `\`${label}\``;
    });
    return `| \`${full}\` | ${type} | ${labels.join("; ")} | ${help} |`;
  });
  return `# Metrics

\`GET /metrics\` of each process answers in the format of Prometheus. It also has the metrics of the process itself (\`process_…\`,
\`nodejs_…\`). [Monitoring](../operate/monitoring.md) says which values are healthy, and how to reach the page.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}
