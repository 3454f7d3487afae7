/** The roles an instance can have, in the order in which they start; they stop in the reverse. */
import { Registry } from "prom-client";
import { openSecretBox } from "../actors/app-secrets/open-secret-box.ts";
import { createAddressPolicy } from "../actors/egress/address-policy.ts";
import { EgressAgents, egressFetch } from "../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../actors/egress/egress-guard.ts";
import { createResolver } from "../actors/egress/resolver.ts";
import { type RunningPart, startActors, startBrowserWorkers, TASKS } from "../actors/main.ts";
import { BusActorClient } from "../actors/runtime/actor-client.ts";
import { answerOn } from "../actors/runtime/answer.ts";
import { BlobStore } from "../actors/runtime/blob-store.ts";
import { Bus, type Listeners } from "../actors/runtime/bus.ts";
import { systemClock as clock } from "../actors/runtime/clock.ts";
import { BusLiveUpdates } from "../actors/runtime/live.ts";
import { exposeQueues } from "../actors/runtime/queue-metrics.ts";
import { Service } from "../actors/runtime/service.ts";
import { ServiceCounts } from "../actors/runtime/service-counts.ts";
import { BusLines } from "../actors/runtime/stored-lines.ts";
import { RowNames } from "../actors/runtime/stored-subjects.ts";
import { WorkerHost } from "../actors/runtime/worker-host.ts";
import { declareStreams } from "../deploy/streams.ts";
import { gitService } from "../gateway/git/git-router.ts";
import { importWorker } from "../gateway/git/import-worker.ts";
import { openRepositories } from "../gateway/git/open-repositories.ts";
import { upkeepWorker } from "../gateway/git/upkeep-worker.ts";
import { startGateway } from "../gateway/main.ts";
import { gitUpkeep } from "../schemas/git-upkeep.ts";
import { PACK_SWEEP, packSweep } from "../schemas/pack-sweep.ts";
import { repoImport } from "../schemas/repo-import.ts";
import { STREAMS } from "../schemas/subjects.ts";
import type { Config } from "./config.ts";
import { startHealthServer } from "./health-server.ts";
import type { RoleContext, RoleStart, RunningRole } from "./program.ts";
import { checkNatsServer, findChromium } from "./tools.ts";
import { version } from "./version.ts";

/** State streams. One carries one machine; the number stays with a store for its life. */
const BUCKETS = 1;
/** What a role keeps of the drain's time for what comes after it. */
const DRAIN_SHARE = 0.5;

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
  { role: "gateway", start: startGatewayRole },
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

/** One that is under way is begun anew elsewhere: it may take far longer than a stop. */
const IMPORT_STOP_MS = 1_000;

async function startGatewayRole(context: RoleContext): Promise<RunningRole> {
  const { config, logger, signal } = context;
  const bus = await connect(context, "gateway");
  const actors = new BusActorClient(bus, clock);
  const blobs = new BlobStore(bus, clock);
  const { publicUrl, dataDir, gitSizes: sizes } = config;
  const git = await gitService({ actors, blobs, dataDir, now: clock.now, publicUrl, sizes });
  const rows = new RowNames(bus, { buckets: BUCKETS });
  const upkeep = new WorkerHost({
    ...{ bus, clock, logger },
    counts: new ServiceCounts(
      new Map([[gitUpkeep.kind, new Set(Object.keys(gitUpkeep.messages))]]),
    ),
    definitions: [upkeepWorker(git.parts, { blobs, rows })],
  });
  upkeep.start();
  // It is kept by the bus until there are actors.
  await actors.send(packSweep, PACK_SWEEP, "begin", {});
  const policy = createAddressPolicy({ allow: config.egressAllow });
  const agents = new EgressAgents({ guard: createEgressGuard({ policy }) });
  const imports = new WorkerHost({
    ...{ bus, clock, logger },
    counts: new ServiceCounts(
      new Map([[repoImport.kind, new Set(Object.keys(repoImport.messages))]]),
    ),
    definitions: [
      importWorker({
        ...git.parts,
        resolve: createResolver({ policy }),
        fetch: (url, options) => egressFetch(url, { agents, ...options }),
      }),
    ],
  });
  imports.start();
  const { repositories, close } = openRepositories({ ...git.parts, publicUrl, now: clock.now });
  const gateway = await startGateway({
    actors,
    blobs,
    git: git.router,
    repositories,
    apps: {
      blobs,
      secrets: await openSecretBox(config),
      appsDomain: config.appsDomain,
      lines: new BusLines(bus, STREAMS.appLogs),
      limits: config.agentLimits,
      answerOn: (...question) => answerOn({ bus, logger }, ...question),
      onReconnect: (listener) => bus.onReconnect(listener),
    },
    live: new BusLiveUpdates(bus),
    config,
    logger,
    registry,
    signal,
    missing: () => (bus.connected ? missingParts() : ["the bus"]),
  });
  const service = new Service({
    bus,
    clock,
    version: version(),
    name: "trunkline-gateway",
    description: "Answers HTTP requests, an endpoint a route",
    endpoints: () =>
      gateway.counts().map(({ id, endpoint, ...counted }) => ({
        ...counted,
        name: id,
        subject: endpoint,
      })),
  });
  return {
    name: "gateway",
    async stop() {
      await gateway.stop();
      await upkeep.stop(config.shutdownSeconds * 1_000 * DRAIN_SHARE);
      await imports.stop(IMPORT_STOP_MS);
      agents.close();
      await git.stop();
      await close();
      service.stop();
      await bus.close();
    },
  };
}

/** Probes and Prometheus ask every process alike; one without a gateway answers them here. */
async function startHealthRole({ config, logger }: RoleContext): Promise<RunningRole> {
  const { host, port } = config;
  const { stop } = await startHealthServer({ host, port, logger, registry, missing: missingParts });
  return { name: "health", stop };
}

/** Each once, though several parts may lack the same. */
const missingParts = () => [...new Set(parts.flatMap((part) => part.missing()))];

/** A connection of its own for each role, so that large answers of one hold up no other; calls among them need none. */
async function connect(context: RoleContext, role: string): Promise<Bus> {
  const { natsUrl, natsCredentials, config, logger } = context;
  const bus = await Bus.connect({
    url: natsUrl,
    name: `trunkline-${role}`,
    listeners,
    ...(natsCredentials !== undefined && { credentials: natsCredentials }),
  });
  // An older one would start well, and fail at the first thing it does not know.
  checkNatsServer(bus.connection.getServer(), bus.connection.info?.version ?? "0");
  const { replicas } = config;
  await declareStreams(bus.jetstream, { replicas, buckets: BUCKETS, tasks: TASKS });
  if (!queuesExposed) exposeQueues({ bus, clock, logger, registry });
  queuesExposed = true;
  return bus;
}
