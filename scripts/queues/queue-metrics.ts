/**
 * Exposes to Prometheus the waiting work on the bus, and whether the bus and all replicas of its streams are
 * available. Every process shows the same figures, if its bus user may read them.
 */
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import type { Bus } from "../../actors/runtime/bus/bus.ts";
import type { Clock } from "../../actors/runtime/lib/clock.ts";
import { exposeGauge } from "../../actors/runtime/observe/metrics.ts";
import { declaredMetric, type MetricName } from "../../schemas/metrics.ts";
import { type Lane, type Queues, readQueues, type StreamFigures } from "./queues.ts";

/**
 * How long figures of the bus are cached. This limits the requests to the bus, however many clients read the metrics.
 */
export const QUEUE_FIGURES_KEPT_MS = 5_000;
/** Timeout for the figures of the bus. After it, the metrics are shown without these figures. */
export const QUEUE_FIGURES_MS_MAX = 2_000;

interface QueueMetricsParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  registry: Registry;
  /** False if the bus user may not read tasks. The age of the oldest task is then unknown. */
  readsTasks?: boolean;
}

/**
 * Reads the figures when a client requests the metrics, and caches them for a few seconds. Omits them while the bus
 * is unavailable.
 */
export function exposeQueues({
  bus,
  clock,
  logger,
  registry,
  readsTasks = true,
}: QueueMetricsParts): void {
  let asked: { at: number; queues: Promise<Queues | undefined> } | undefined;
  const registers = [registry];

  exposeGauge(registry, "bus_connected", () => Number(bus.connected));
  expose("mail_waiting", ({ mail }) => mail);
  expose("dead_letters", ({ deadLetters }) => deadLetters);
  exposeStreams("stream_copies_behind", ({ behind }) => behind);
  exposeStreams("stream_bytes", ({ info }) => info?.state.bytes);
  exposeStreams("stream_bytes_max", ({ refusesAtBytes }) => refusesAtBytes);
  exposeLanes("tasks_waiting", ({ waiting }) => waiting);
  exposeLanes("tasks_running", ({ running }) => running);
  exposeLanes("tasks_in_fullest_queue", ({ fullest }) => fullest);
  if (readsTasks) {
    exposeLanes("tasks_oldest_seconds", ({ oldestAt }) =>
      oldestAt === undefined ? 0 : Math.max(0, clock.now() - oldestAt.getTime()) / 1_000,
    );
  }

  function expose(name: MetricName, value: (queues: Queues) => number): void {
    new Gauge({
      ...declaredMetric(name),
      registers,
      async collect() {
        const queues = await figures();
        if (queues) this.set(value(queues));
        else this.remove();
      },
    });
  }

  function exposeStreams(
    name: MetricName,
    value: (figures: StreamFigures) => number | undefined,
  ): void {
    new Gauge({
      ...declaredMetric(name),
      registers,
      async collect() {
        const queues = await figures();
        this.reset();
        for (const figures of queues?.streams ?? []) {
          const found = value(figures);
          if (found !== undefined) this.set({ stream: figures.stream }, found);
        }
      },
    });
  }

  function exposeLanes(name: MetricName, value: (lane: Lane) => number): void {
    new Gauge({
      ...declaredMetric(name),
      registers,
      async collect() {
        const queues = await figures();
        this.reset();
        for (const lane of queues?.lanes ?? []) {
          this.set({ kind: lane.kind, lane: lane.lane }, value(lane));
        }
      },
    });
  }

  function figures(): Promise<Queues | undefined> {
    const now = clock.monotonic();
    if (!asked || now - asked.at >= QUEUE_FIGURES_KEPT_MS) asked = { at: now, queues: read() };
    return asked.queues;
  }

  async function read(): Promise<Queues | undefined> {
    if (!bus.connected) return undefined;
    const answered = new AbortController();
    const late = clock.wait(QUEUE_FIGURES_MS_MAX, answered.signal).then(() => undefined);
    const queues = readQueues(bus, { readsTasks }).catch((error: unknown) => {
      logger.warn({ err: error }, "queues not read");
      return undefined;
    });
    return await Promise.race([queues, late]).finally(() => answered.abort());
  }
}
