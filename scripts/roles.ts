/** The roles of an instance, in the order in which they start. They stop in reverse order. */
import { Registry } from "prom-client";
import { openSecretBox } from "../actors/apps/lib/app-secrets/open-secret-box.ts";
import { type RunningPart, startActors, startBrowserWorkers, TASKS } from "../actors/main.ts";
import { Bus, type Listeners } from "../actors/runtime/bus/bus.ts";
import { systemClock as clock } from "../actors/runtime/lib/clock.ts";
import { exposeGauge, exposeMeter } from "../actors/runtime/observe/metrics.ts";
import { StepRecorder } from "../actors/runtime/observe/request-steps.ts";
import { awaitData } from "../deploy/await-data.ts";
import { openData } from "../deploy/open-data.ts";
import { metricsTokenOf } from "../gateway/platform/metrics-token.ts";
import { readAuthorities } from "../gateway/repositories/import/git-authorities.ts";
import type { DataLayout } from "../schemas/data-layout.ts";
import { agentLimitsOn, storeSizesOn } from "./account-limits.ts";
import type { Config } from "./config.ts";
import { startHealthServer, startMetricsServer } from "./health-server.ts";
import { DRAIN_SHARE, type RoleContext, type RoleStart, type RunningRole } from "./program.ts";
import { exposeQueues } from "./queues/queue-metrics.ts";
import type { Role } from "./settings.ts";
import { checkNatsServer, findChromium } from "./tools.ts";
import { version } from "./version.ts";

/** The parts of this process other than the gateway. /healthz reports what they lack. */
const parts: Pick<RunningPart, "missing">[] = [];
/** The metrics of all roles of this process. */
const registry = new Registry();
/** Handlers for calls between roles of this process, which do not use the bus. */
const listeners: Listeners = new Map();
/** Only the first role exposes the metrics of the queues, because it closes its bus connection last. */
let queuesExposed = false;

export const roles: readonly RoleStart[] = [
  {
    role: "actors",
    start: (context) =>
      startPart(context, "actors", async (shared) =>
        startActors(shared, {
          ...context.config,
          agentLimits: await agentLimitsOn({ ...shared, config: context.config }),
          buckets: shared.bus.layout.stateStreams,
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
          chromium: browserOf(context.config),
        }),
      ),
  },
  {
    role: "gateway",
    check: ({ gitCa }) => void readAuthorities(gitCa),
    // The gateway is imported only here: it has a quarter of all modules, and processes without a gateway do not need
    // them.
    async start(context) {
      const { startGatewayRole } = await import("./gateway-role.ts");
      const bus = await connect(context, "gateway");
      return startGatewayRole(context, {
        bus,
        buckets: bus.layout.stateStreams,
        registry,
        missing: () => missingParts(context),
      });
    },
  },
  { role: "health", start: startHealthRole },
  { role: "metrics", start: startMetricsRole },
];

function browserOf({ chromium }: Config): string {
  return findChromium({ ...process.env, TRUNKLINE_CHROMIUM: chromium });
}

async function startPart(
  context: RoleContext,
  name: Role,
  start: (shared: Parameters<typeof startActors>[0]) => Promise<RunningPart>,
): Promise<RunningRole> {
  const bus = await connect(context, name);
  const part = await start({ bus, clock, registry, logger: context.logger, version: version() });
  parts.push({ missing: () => (bus.isMissing ? ["the bus"] : part.missing()) });
  return {
    name,
    async stop() {
      await part.stop(context.config.shutdownSeconds * 1_000 * DRAIN_SHARE);
      await bus.close();
    },
  };
}

/** Serves health checks and metrics in a process without a gateway. */
async function startHealthRole(context: RoleContext): Promise<RunningRole> {
  const { config, logger } = context;
  const { host, port } = config;
  const missing = () => missingParts(context);
  const metricsToken = metricsTokenOf(config);
  const { stop } = await startHealthServer({
    ...{ host, port, logger, registry },
    ...{ missing, metricsToken, hasMetrics: config.metricsPort === undefined },
  });
  return { name: "health", stop };
}

/** Serves the metrics of all roles of this process on the port TRUNKLINE_METRICS_PORT. */
async function startMetricsRole({ config, logger }: RoleContext): Promise<RunningRole> {
  const { host, metricsPort: port = 0 } = config;
  const metricsToken = metricsTokenOf(config);
  const setting = "TRUNKLINE_METRICS_PORT";
  const { stop } = await startMetricsServer({
    host,
    port,
    setting,
    logger,
    registry,
    metricsToken,
  });
  return { name: "metrics", stop };
}

/** Returns the names of what this process lacks, without duplicates. */
function missingParts({ disk }: RoleContext): string[] {
  const shortage = disk?.shortage;
  const missing = parts.flatMap((part) => part.missing());
  return [...new Set(shortage === undefined ? missing : [shortage, ...missing])];
}

/**
 * Bus connections of this process that are lost now. Usually all are lost together, so one log line reports all of
 * them.
 */
const lostBuses = new Set<Bus>();

function watchBus(bus: Bus, logger: RoleContext["logger"]): void {
  bus.onDisconnect(() => {
    if (lostBuses.size === 0) logger.warn({}, "connection to the bus lost, connecting again");
    lostBuses.add(bus);
  });
  bus.onReconnect(() => {
    lostBuses.delete(bus);
    if (lostBuses.size === 0) logger.info({}, "bus is back");
  });
}

function exposeDisk({ disk }: RoleContext): void {
  if (!disk) return;
  exposeGauge(registry, "disk_free_bytes", () => disk.freeBytes);
}

/**
 * Connects a role to the bus. Each role has its own connection, so that large replies to one role do not delay
 * another role. Calls between roles of the same process use no connection.
 */
async function connect(context: RoleContext, role: Role): Promise<Bus> {
  const { access, logger } = context;
  const login = access(role);
  const bus = await Bus.connect({ ...login, name: `trunkline-${role}`, listeners });
  watchBus(bus, logger);
  // Refuses an old server now. Otherwise the role would start, and fail at the first request that the server does not
  // support.
  checkNatsServer(bus.connection.getServer(), bus.connection.info?.version ?? "0");
  bus.layout = await prepareData(bus, context, role);
  if (!queuesExposed) {
    const readsTasks = login.role === undefined || role === "actors";
    exposeMeter(registry);
    exposeQueues({ bus, clock, logger, registry, readsTasks });
    const recorder = new StepRecorder({ bus, clock, registry });
    void bus.connection.closed().then(() => recorder.stop());
    exposeDisk(context);
  }
  queuesExposed = true;
  return bus;
}

/**
 * Prepares the streams and the data. With a bus user for each role, only the role `actors` may create streams and
 * upgrade data, and the other roles wait for it. Returns the layout of the data.
 */
async function prepareData(
  bus: Bus,
  { access, config, disk, logger, signal }: RoleContext,
  role: Role,
): Promise<DataLayout> {
  const shared = { wanted: config.layout, version: version() };
  if (access(role).role === undefined || role === "actors") {
    const { replicas } = config;
    const sizes = () => storeSizesOn(bus, config, disk);
    return await openData(bus.jetstream, { ...shared, replicas, sizes, tasks: TASKS });
  }
  const missing = (names: readonly string[]) =>
    logger.warn(
      { streams: names },
      "waiting for streams: a process with the role actors creates them",
    );
  // The bus user of browsers has no permission to read states.
  const readsState = role !== "browser";
  return await awaitData(bus.jetstream, { ...shared, signal, missing, readsState });
}
