/** All metrics of this project, in Prometheus's terms. docs/reference/metrics.md is generated from this list. */

export interface Metric {
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** The names of the labels. Their values come from closed lists, so that the number of series is limited. */
  readonly labels?: readonly string[];
  /**
   * The possible values of each label, for metrics that are counted through meter.ts. So each series exists from the
   * start.
   */
  readonly values?: Readonly<Record<string, readonly string[]>>;
}

const COUNTED = ["kind", "message"] as const;
const OF_LANE = ["kind", "lane"] as const;

/** The metrics by name. The published name has the prefix `trunkline_`. */
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
  actors_calls_in_flight: {
    type: "gauge",
    help: "Calls that hosts have not answered; above 32,768 a process answers busy",
  },
  commits_total: {
    type: "counter",
    help: "Commits of actors' changes: stored, refused by the bus, or of a host that lost its journal",
    values: { outcome: ["stored", "refused", "lost"] },
  },
  commit_actors_total: {
    type: "counter",
    help: "Actors whose changes the stored commits hold",
    values: {},
  },
  commit_seconds: { type: "histogram", help: "Time of a stored commit", values: {} },
  shard_takeovers_total: {
    type: "counter",
    help: "Shards that this process took: after the death of their host, or free ones, such as handed-over ones",
    values: { after: ["death", "handover"] },
  },
  host_restarts_total: {
    type: "counter",
    help: "Times that a host lost its lease or its journal and took all its shards again",
    values: {},
  },
  app_processes: { type: "gauge", help: "Processes of apps" },
  app_processes_ended_total: {
    type: "counter",
    help: "Processes of apps that ended while in use: at a bound of memory or time, or otherwise",
    values: { reason: ["bound", "other"] },
  },
  app_turns_total: {
    type: "counter",
    help: "Turns in processes of apps: requests, events, alarms and messages of sockets",
    values: { outcome: ["done", "failed"] },
  },
  app_turn_seconds: {
    type: "histogram",
    help: "Time of these turns",
    values: {},
  },
  webhooks_received_total: {
    type: "counter",
    help: "Events at declared endpoints: accepted, repeated by their sender, refused, or failed by a fault of ours",
    values: { outcome: ["accepted", "repeated", "refused", "failed"] },
  },
  webhook_posts_total: {
    type: "counter",
    help: "Tries of outgoing webhooks: answered 2xx, answered otherwise, without an answer, or put off",
    values: { outcome: ["delivered", "refused", "unreachable", "deferred"] },
  },
  webhook_post_seconds: {
    type: "histogram",
    help: "Time of a try that left, to the end of the answer",
    values: {},
  },
  webhook_post_wait_seconds: {
    type: "histogram",
    help: "Time from when a try was due until it began: until its account had a place, and then in the lane and the worker",
    values: {},
  },
  crawl_pages_total: {
    type: "counter",
    help: "Pages of crawls by their outcome",
    values: {
      outcome: ["fetched", "redirected", "disallowed", "skipped", "failed", "out_of_time"],
    },
  },
  crawl_page_seconds: {
    type: "histogram",
    help: "Time to load a page, by HTTP alone or in a browser",
    values: { way: ["http", "browser"] },
  },
  git_operations_total: {
    type: "counter",
    help: "Fetches and pushes of git clients; a push whose refs its rules refuse is done, and a client that hangs up has left",
    values: { operation: ["fetch", "push"], outcome: ["done", "left", "refused", "failed"] },
  },
  git_operation_seconds: {
    type: "histogram",
    help: "Time of these operations",
    values: { operation: ["fetch", "push"] },
  },
  git_processes_running: { type: "gauge", help: "Processes of git that work", values: {} },
  git_processes_max: {
    type: "gauge",
    help: "Processes of git that may work at a time; more requests wait",
    values: {},
  },
  git_requests_waiting: {
    type: "gauge",
    help: "Requests that wait for a process of git; 128 at most",
    values: {},
  },
  sockets: {
    type: "gauge",
    help: "Open WebSockets; 10,000 at most, 7,500 of them for one account",
    values: {},
  },
  socket_upgrades_total: {
    type: "counter",
    help: "Requests for a WebSocket: opened, refused, refused because the account has its share, or because all are in use",
    values: { outcome: ["opened", "refused", "share", "full"] },
  },
  logins_total: {
    type: "counter",
    help: "Sign-ins by password: good, wrong, refused after too many tries, or failed by a fault of ours",
    values: { outcome: ["good", "wrong", "limited", "failed"] },
  },
  login_seconds: { type: "histogram", help: "Time of a sign-in by password", values: {} },
  gateway_messages_total: {
    type: "counter",
    help: "Tasks that gateways' workers handled: upkeep and imports of repositories",
    labels: COUNTED,
  },
  gateway_refusals_total: {
    type: "counter",
    help: "Tasks that gateways' workers refused or failed at",
    labels: COUNTED,
  },
  gateway_seconds_total: {
    type: "counter",
    help: "Time of these tasks from arrival to answer",
    labels: COUNTED,
  },
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
    help: "Bytes at which a stream refuses writes; left out where it has no such bound, or drops its oldest",
    labels: ["stream"],
  },
  tasks_waiting: { type: "gauge", help: "Tasks that no worker has taken", labels: OF_LANE },
  tasks_running: { type: "gauge", help: "Tasks that a worker has taken", labels: OF_LANE },
  tasks_in_fullest_queue: {
    type: "gauge",
    help: "Tasks of a lane's fullest queue; some kinds have a queue for each account",
    labels: OF_LANE,
  },
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

/** The prefix of each name, so that our metrics never have the same name as metrics of other programs. */
const METRIC_PREFIX = "trunkline_";

/** Returns the name, help text and labels of a metric in the form that the library prom-client expects. */
export function declaredMetric(name: MetricName) {
  const { help, values = {}, labels = Object.keys(values) }: Metric = METRICS[name];
  return { name: `${METRIC_PREFIX}${name}`, help, labelNames: [...labels] };
}
