/** The roles an instance can have, in the order in which they start; they stop in the reverse. */
import { Registry } from "prom-client";
import { openSecretBox } from "../actors/apps/lib/app-secrets/open-secret-box.ts";
import { type RunningPart, startActors, startBrowserWorkers, TASKS } from "../actors/main.ts";
import { Bus, type Listeners } from "../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../actors/runtime/lib/clock.ts";
import { exposeGauge } from "../actors/runtime/observe/metrics.ts";
import { exposeQueues } from "../actors/runtime/observe/queue-metrics.ts";
import { declareStreams } from "../deploy/streams.ts";
import { metricsTokenOf } from "../gateway/platform/metrics-token.ts";
import type { Config } from "./config.ts";
import { startHealthServer } from "./health-server.ts";
import { DRAIN_SHARE, type RoleContext, type RoleStart, type RunningRole } from "./program.ts";
import { checkNatsServer, findChromium } from "./tools.ts";
import { version } from "./version.ts";

/** State streams. One carries one machine; the number stays with a store for its life. */
const BUCKETS = 1;
/** What the parts of this process that are not the gateway still need, for /healthz. */
const parts: Pick<RunningPart, "missing">[] = [];
/** Metrics of this process, whatever roles it has. */
const registry = new Registry();
/** Calls from one role to another stay in the process. */
const listeners: Listeners = new Map();
/** By the role that starts first, which is the last to close its connection. */
let queuesExposed = false;

export const roles: readonly RoleStart[] = [
  {
    role: "actors",
    start: (context) =>
      startPart(context, "actors", async (shared) =>
        startActors(shared, {
          ...context.config,
          buckets: BUCKETS,
          secrets: await openSecretBox(context.config),
        }),
      ),
  },
  {
    role: "browser",
    check: browserOf,
    start: (context) =>
      startPart(context, "browser", async (shared) =>
        startBrowserWorkers(shared, {
          ...context.config,
          buckets: BUCKETS,
          chromium: browserOf(context.config),
          secrets: await openSecretBox(context.config),
        }),
      ),
  },
  {
    role: "gateway",
    // A process without it has no use for what only it needs, a quarter of what there is to load.
    async start(context) {
      const { startGatewayRole } = await import("./gateway-role.ts");
      return startGatewayRole(context, {
        bus: await connect(context, "gateway"),
        buckets: BUCKETS,
        registry,
        missing: () => missingParts(context),
      });
    },
  },
  { role: "health", start: startHealthRole },
];

function browserOf({ chromium }: Config): string {
  return findChromium({ ...process.env, TRUNKLINE_CHROMIUM: chromium });
}

async function startPart(
  context: RoleContext,
  name: string,
  start: (shared: Parameters<typeof startActors>[0]) => Promise<RunningPart>,
): Promise<RunningRole> {
  const bus = await connect(context, name);
  const part = await start({ bus, clock, registry, logger: context.logger, version: version() });
  parts.push({ missing: () => (bus.connected ? part.missing() : ["the bus"]) });
  return {
    name,
    async stop() {
      await part.stop(context.config.shutdownSeconds * 1_000 * DRAIN_SHARE);
      await bus.close();
    },
  };
}

/** Probes and Prometheus ask every process alike; one without a gateway answers them here. */
async function startHealthRole(context: RoleContext): Promise<RunningRole> {
  const { config, logger } = context;
  const { host, port } = config;
  const missing = () => missingParts(context);
  const metricsToken = metricsTokenOf(config);
  const { stop } = await startHealthServer({
    ...{ host, port, logger, registry },
    ...{ missing, metricsToken },
  });
  return { name: "health", stop };
}

/** Each once, though several parts may lack the same. */
function missingParts({ disk }: RoleContext): string[] {
  const shortage = disk?.shortage;
  const missing = parts.flatMap((part) => part.missing());
  return [...new Set(shortage === undefined ? missing : [shortage, ...missing])];
}

/** Connections of this process that are lost now. They are lost together, and one line says so. */
const lostBuses = new Set<Bus>();

function watchBus(bus: Bus, logger: RoleContext["logger"]): void {
  bus.onDisconnect(() => {
    if (lostBuses.size === 0) logger.warn({}, "bus lost, trying to reach it again");
    lostBuses.add(bus);
  });
  bus.onReconnect(() => {
    lostBuses.delete(bus);
    if (lostBuses.size === 0) logger.info({}, "bus is back");
  });
}

function exposeDisk({ disk }: RoleContext): void {
  if (!disk) return;
  const help = "Bytes left on the disk of the embedded bus";
  exposeGauge(registry, "disk_free_bytes", help, () => disk.freeBytes);
}

/** A connection of its own for each role, so that large answers of one hold up no other; calls among them need none. */
async function connect(context: RoleContext, role: string): Promise<Bus> {
  const { natsUrl, natsCredentials, config, logger } = context;
  const bus = await Bus.connect({
    url: natsUrl,
    name: `trunkline-${role}`,
    listeners,
    ...(natsCredentials !== undefined && { credentials: natsCredentials }),
  });
  watchBus(bus, logger);
  // An older one would start well, and fail at the first thing it does not know.
  checkNatsServer(bus.connection.getServer(), bus.connection.info?.version ?? "0");
  const { replicas } = config;
  await declareStreams(bus.jetstream, { replicas, buckets: BUCKETS, tasks: TASKS });
  if (!queuesExposed) {
    exposeQueues({ bus, clock, logger, registry });
    exposeDisk(context);
  }
  queuesExposed = true;
  return bus;
}
