/** The role `gateway`: serves HTTP, and runs the workers whose tools only the gateway has. */

import type { Registry } from "prom-client";
import { AgentLogKeys } from "../actors/apps/agent/agent-keys.ts";
import {
  leaveAnswerStream,
  readAnswerStream,
} from "../actors/apps/lib/app-bodies/read-answer-stream.ts";
import { openSecretBox } from "../actors/apps/lib/app-secrets/open-secret-box.ts";
import { createAddressPolicy } from "../actors/egress/address-policy.ts";
import { EgressAgents, egressFetch } from "../actors/egress/egress-fetch.ts";
import { createEgressGuard } from "../actors/egress/egress-guard.ts";
import { FrameLink } from "../actors/rendering/lib/frame-link/frame-link.ts";
import { answerOn } from "../actors/runtime/bus/answer.ts";
import { ask } from "../actors/runtime/bus/ask.ts";
import type { Bus } from "../actors/runtime/bus/bus.ts";
import { BusLiveUpdates } from "../actors/runtime/bus/live.ts";
import { BusActorClient } from "../actors/runtime/calls/actor-client.ts";
import { RowNames } from "../actors/runtime/commit/stored-subjects.ts";
import { systemClock as clock } from "../actors/runtime/lib/clock.ts";
import { exposeCounts } from "../actors/runtime/observe/metrics.ts";
import { Service } from "../actors/runtime/observe/service.ts";
import { ServiceCounts } from "../actors/runtime/observe/service-counts.ts";
import { BlobStore } from "../actors/runtime/store/blob-store.ts";
import { ObjectStore } from "../actors/runtime/store/object-store.ts";
import { BusLines } from "../actors/runtime/store/stored-lines.ts";
import type { AnyWorkerDefinition } from "../actors/runtime/workers/define-worker.ts";
import { WorkerHost, type WorkerHostParts } from "../actors/runtime/workers/worker-host.ts";
import type { StreamReader } from "../gateway/apps/app-router.ts";
import { type RunningGateway, startGateway } from "../gateway/main.ts";
import { TokenFinder } from "../gateway/oauth/tokens/token-finder.ts";
import type { DevtoolsBus } from "../gateway/rendering/devtools/devtools-bus.ts";
import { gitService } from "../gateway/repositories/git/git-service.ts";
import { readAuthorities } from "../gateway/repositories/import/git-authorities.ts";
import { importWorker } from "../gateway/repositories/import/import-worker.ts";
import { openRepositories } from "../gateway/repositories/open-repositories.ts";
import { upkeepWorker } from "../gateway/repositories/upkeep/upkeep-worker.ts";
import { gitUpkeep } from "../schemas/repositories/git-upkeep.ts";
import { PACK_SWEEP, packSweep } from "../schemas/repositories/pack-sweep.ts";
import { repoImport } from "../schemas/repositories/repo-import.ts";
import { RENDER_JOBS_STORE, STREAMS } from "../schemas/subjects.ts";
import { agentLimitsOn, crawlBytesOn, gitBytesOn } from "./account-limits.ts";
import { ActorHosts } from "./actor-hosts.ts";
import { operationsOn, requestTraces } from "./operations-on-bus.ts";
import { DRAIN_SHARE, type RoleContext, type RunningRole } from "./program.ts";
import { version } from "./version.ts";

/**
 * How long a stopping gateway waits for an import. An import may take much longer; another gateway then starts it
 * again.
 */
const IMPORT_STOP_MS = 1_000;

function devtoolsOn(bus: Bus): DevtoolsBus {
  return {
    async ask(subject, payload, timeoutMs) {
      const asked = await ask(bus, subject, payload, { timeoutMs });
      return typeof asked === "string" ? asked : { answer: asked.answer.string() };
    },
    openLink: (options) => new FrameLink({ bus, clock, ...options }),
  };
}

/** Starts the gateway in this process, with the workers for repositories. */
export async function startGatewayRole(
  { config, logger, signal, disk }: RoleContext,
  {
    bus,
    buckets,
    registry,
    missing,
  }: {
    /** The role's own connection. The role closes it. */
    bus: Bus;
    buckets: number;
    registry: Registry;
    /** Returns what the parts of this process still lack before they can work. */
    missing: () => readonly string[];
  },
): Promise<RunningRole> {
  const actors = new BusActorClient(bus, clock);
  const blobs = new BlobStore(bus, clock);
  const { publicUrl, dataDir, gitSizes: sizes } = config;
  const live = new BusLiveUpdates(bus);
  const tokens = new TokenFinder({ actors, live, now: clock.now });
  const ofGit = { actors, blobs, dataDir, now: clock.now, tokens, publicUrl, sizes };
  const accountBytes = await gitBytesOn({ bus, logger, config });
  const git = await gitService({ ...ofGit, accountBytes });
  const rows = new RowNames(bus, { buckets });
  const shared = { bus, clock, logger, counts: taskCounts(registry) };
  const upkeep = startWorker(shared, upkeepWorker(git.parts, { blobs, rows }));
  // If no actors run yet, the bus stores this message until they do.
  await actors.send(packSweep, PACK_SWEEP, "begin", {});
  const authorities = readAuthorities(config.gitCa);
  const guard = createEgressGuard({ policy: createAddressPolicy(config.egress) });
  const agents = new EgressAgents({ guard, ...(authorities !== undefined && { ca: authorities }) });
  const imports = startWorker(
    shared,
    importWorker({
      ...git.parts,
      resolve: (target, signal, owner) => guard.check(target, { signal, owner }),
      authorities,
      fetch: (url, options) => egressFetch(url, { agents, ...options }),
    }),
  );
  const { repositories, close } = openRepositories({ ...git.parts, publicUrl, now: clock.now });
  const secrets = await openSecretBox(config);
  const hosts = ActorHosts.watch({ bus, clock, logger, signal });
  const gateway = await startGateway({
    actors,
    blobs,
    secrets,
    crawlBytesMax: await crawlBytesOn({ bus, logger, config }),
    jobs: { objects: new ObjectStore(bus, clock, RENDER_JOBS_STORE), secrets },
    git: git.router,
    repositories,
    apps: {
      blobs,
      secrets,
      appsDomain: config.appsDomain,
      lines: new BusLines(bus, STREAMS.appLogs),
      agents: new AgentLogKeys(bus),
      limits: await agentLimitsOn({ bus, logger, config }),
      answerOn: (...question) => answerOn({ bus, logger }, ...question),
      answerBelow: (name, answer) => bus.answerBelow(name, answer),
      streams: answerStreams(bus),
      onReconnect: (listener) => bus.onReconnect(listener),
    },
    devtools: devtoolsOn(bus),
    live,
    traces: requestTraces,
    operations: operationsOn(bus, disk),
    config,
    logger,
    registry,
    signal,
    missing: () => (bus.isMissing ? ["the bus"] : [...hosts.missing, ...missing()]),
    isDiskFull: () => disk?.shortage !== undefined,
  });
  const service = countService(bus, gateway);
  return {
    name: "gateway",
    leave: () => gateway.leave(),
    async stop() {
      git.leave();
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

const answerStreams = (bus: Bus): StreamReader => ({
  read: (rest, signal) => readAnswerStream({ bus, clock }, rest, signal),
  leave: (rest) => leaveAnswerStream(bus, rest),
});

/** Creates counters for the tasks of this role's workers, and exposes the counts as metrics. */
function taskCounts(registry: Registry): ServiceCounts {
  const named = [gitUpkeep, repoImport].map(
    ({ kind, messages }) => [kind, new Set(Object.keys(messages))] as const,
  );
  const counts = new ServiceCounts(new Map(named));
  exposeCounts(registry, "gateway", counts);
  return counts;
}

/** Starts a worker of one kind of task. */
function startWorker(
  shared: Omit<WorkerHostParts, "definitions">,
  definition: AnyWorkerDefinition,
): WorkerHost {
  const host = new WorkerHost({ ...shared, definitions: [definition] });
  host.start();
  return host;
}

/** Exposes the request counts of each route to operators of the bus (`nats service stats`). */
function countService(bus: Bus, gateway: RunningGateway): Service {
  return new Service({
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
}
