/** Every metric of ours, in Prometheus's terms. docs/reference/metrics.md is made from this list. */

export interface Metric {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Values of labels come from closed lists, so that the number of series is bounded. */
  readonly labels?: readonly string[];
}

const COUNTED = ["kind", "message"] as const;
const OF_LANE = ["kind", "lane"] as const;

/** Metrics by name; `trunkline_` stands before each. */
export const METRICS = {
  http_requests_total: {
    type: "counter",
    help: "Requests that are over",
    labels: ["method", "route", "status"],
  },
  http_request_seconds: {
    type: "histogram",
    help: "Time from the first header to the last byte of the answer",
    labels: ["method", "route"],
  },
  http_requests_in_flight: { type: "gauge", help: "Requests under way" },
  actors_messages_total: { type: "counter", help: "Messages that actors handled", labels: COUNTED },
  actors_refusals_total: {
    type: "counter",
    help: "Messages that actors refused or failed at",
    labels: COUNTED,
  },
  actors_seconds_total: {
    type: "counter",
    help: "Time of these messages from arrival to answer",
    labels: COUNTED,
  },
  actors_shards: { type: "gauge", help: "Shards that this process owns" },
  shards: { type: "gauge", help: "Shards of the whole installation" },
  actors_activations: { type: "gauge", help: "Actors in memory" },
  app_processes: { type: "gauge", help: "Processes of apps" },
  browser_messages_total: {
    type: "counter",
    help: "Tasks that browser workers handled",
    labels: COUNTED,
  },
  browser_refusals_total: {
    type: "counter",
    help: "Tasks that browser workers refused or failed at",
    labels: COUNTED,
  },
  browser_seconds_total: {
    type: "counter",
    help: "Time of these tasks from arrival to answer",
    labels: COUNTED,
  },
  browsers: { type: "gauge", help: "Browsers that run" },
  browser_contexts_in_use: { type: "gauge", help: "Browser contexts that tasks use" },
  devtools_sessions: { type: "gauge", help: "DevTools sessions that run" },
  bus_connected: { type: "gauge", help: "1 while the bus is there" },
  mail_waiting: { type: "gauge", help: "Messages from actor to actor on their way" },
  trace_steps_dropped_total: {
    type: "counter",
    help: "Steps of requests that were not recorded, since too many waited or the bus was away",
  },
  dead_letters: { type: "gauge", help: "Messages that failed at every try" },
  stream_copies_behind: {
    type: "gauge",
    help: "Copies of a stream that are not current: their server is away, catching up or broken",
    labels: ["stream"],
  },
  stream_bytes: { type: "gauge", help: "Bytes that a stream stores", labels: ["stream"] },
  stream_bytes_max: {
    type: "gauge",
    help: "Bytes at which a stream is full; left out where it has no bound of its own",
    labels: ["stream"],
  },
  tasks_waiting: { type: "gauge", help: "Tasks that no worker has taken", labels: OF_LANE },
  tasks_running: { type: "gauge", help: "Tasks that a worker has taken", labels: OF_LANE },
  tasks_oldest_seconds: {
    type: "gauge",
    help: "Age of a lane's first task; hosts of actors show it, since only they may read tasks",
    labels: OF_LANE,
  },
  disk_free_bytes: {
    type: "gauge",
    help: "Bytes that are free where the embedded bus stores its streams",
  },
} as const satisfies Record<string, Metric>;

export type MetricName = keyof typeof METRICS;

/** The start of each name, so that metrics of other programs never collide with ours. */
const METRIC_PREFIX = "trunkline_";

/** Returns name, help and labels of a metric as the library prom-client takes them. */
export function declaredMetric(name: MetricName) {
  const { help, labels = [] }: Metric = METRICS[name];
  return { name: `${METRIC_PREFIX}${name}`, help, labelNames: [...labels] };
}
