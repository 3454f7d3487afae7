/** Every metric of ours, from schemas/metrics.ts. */
import { declaredMetric, METRICS, type Metric, type MetricName } from "../../schemas/metrics.ts";

export function metricsPage(): string {
  const rows = Object.keys(METRICS).map((name) => {
    const { type, labels = [] }: Metric = METRICS[name as MetricName];
    const { name: full, help } = declaredMetric(name as MetricName);
    return `| \`${full}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(", ")} | ${help} |`;
  });
  return `# Metrics

\`GET /metrics\` of each process answers in the format of Prometheus. It also has the metrics of the process itself (\`process_…\`,
\`nodejs_…\`). [Monitoring](../operate/monitoring.md) says which values are healthy, and how to reach the page.

| metric | type | labels | meaning |
| --- | --- | --- | --- |
${rows.join("\n")}
`;
}
