/**
 * Shows to Prometheus what waits on the bus, and whether the bus and all copies of its streams are there. Every process
 * shows the same figures.
 */
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { QUEUE_FIGURES_KEPT_MS, QUEUE_FIGURES_MS_MAX } from "../../../schemas/limits.ts";
import type { Bus } from "../bus/bus.ts";
import type { Clock } from "../lib/clock.ts";
import { exposeGauge } from "./metrics.ts";
import { type Lane, type Queues, readQueues } from "./queues.ts";

interface QueueMetricsParts {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  registry: Registry;
}

/**
 * Reads the figures when the metrics are requested, and keeps them a few seconds. Leaves them out while the bus is
 * away.
 */
export function exposeQueues({ bus, clock, logger, registry }: QueueMetricsParts): void {
  let asked: { at: number; queues: Promise<Queues | undefined> } | undefined;
  const registers = [registry];

  exposeGauge(registry, "bus_connected", "1 while the bus is there", () => Number(bus.connected));
  expose("mail_waiting", "Messages from actor to actor on their way", ({ mail }) => mail);
  expose("dead_letters", "Messages nobody could handle", ({ deadLetters }) => deadLetters);
  exposeCopies();
  exposeLanes("tasks_waiting", "Tasks no worker has taken", ({ waiting }) => waiting);
  exposeLanes("tasks_running", "Tasks a worker has taken", ({ running }) => running);
  exposeLanes("tasks_oldest_seconds", "Age of a lane's first task", ({ oldestAt }) =>
    oldestAt === undefined ? 0 : Math.max(0, clock.now() - oldestAt.getTime()) / 1_000,
  );

  function expose(name: string, help: string, value: (queues: Queues) => number): void {
    new Gauge({
      name: `trunkline_${name}`,
      help,
      registers,
      async collect() {
        const queues = await figures();
        if (queues) this.set(value(queues));
        else this.remove();
      },
    });
  }

  function exposeCopies(): void {
    new Gauge({
      name: "trunkline_stream_copies_behind",
      help: "Copies of a stream that are not current: their server is away, catching up or broken",
      labelNames: ["stream"] as const,
      registers,
      async collect() {
        const queues = await figures();
        this.reset();
        for (const { stream, behind } of queues?.copies ?? []) this.set({ stream }, behind);
      },
    });
  }

  function exposeLanes(name: string, help: string, value: (lane: Lane) => number): void {
    new Gauge({
      name: `trunkline_${name}`,
      help,
      labelNames: ["kind", "lane"] as const,
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
    const queues = readQueues(bus).catch((error: unknown) => {
      logger.warn({ err: error }, "queues not read");
      return undefined;
    });
    return await Promise.race([queues, late]).finally(() => answered.abort());
  }
}
