/** Lists the actor kinds and task kinds of this program, and starts the roles that run them. */
import { availableParallelism, hostname } from "node:os";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { appPurge } from "../schemas/apps/app-purge.ts";
import type { AgentLimits } from "../schemas/apps/app-usage.ts";
import { webhookPost } from "../schemas/apps/outgoing-webhook.ts";
import type { Contract, TaskContract } from "../schemas/contract.ts";
import { crawlPage } from "../schemas/crawl/crawl-page.ts";
import { dnsCheck } from "../schemas/oauth/dns-check.ts";
import { logoFetch } from "../schemas/oauth/logo-fetch.ts";
import { render } from "../schemas/rendering/render.ts";
import { gitUpkeep } from "../schemas/repositories/git-upkeep.ts";
import { repoImport } from "../schemas/repositories/repo-import.ts";
import { callSubject, taskSubject } from "../schemas/subjects.ts";
import { accountActor } from "./account/account/account.ts";
import { apiTokenActor } from "./account/api-token/api-token.ts";
import { installationActor } from "./account/installation/installation.ts";
import { loginGuardActor } from "./account/login-guard/login-guard.ts";
import { requestLimitActor } from "./account/request-limit/request-limit.ts";
import { sessionActor } from "./account/session/session.ts";
import { userActor } from "./account/user/user.ts";
import { agentAlarmActor } from "./apps/agent-alarm/agent-alarm.ts";
import { agentInboxActor } from "./apps/agent-inbox/agent-inbox.ts";
import { appActor } from "./apps/app/app.ts";
import { appListActor } from "./apps/app-list/app-list.ts";
import { appPortsActor } from "./apps/app-ports/app-ports.ts";
import { appUsageActor } from "./apps/app-usage/app-usage.ts";
import { endpointBreakerActor } from "./apps/endpoint-breaker/endpoint-breaker.ts";
import type { SecretBox } from "./apps/lib/app-secrets/secret-box.ts";
import { openAgents } from "./apps/open-agents.ts";
import { outgoingPlacesActor } from "./apps/outgoing-places/outgoing-places.ts";
import { outgoingWebhookActor } from "./apps/outgoing-webhook/outgoing-webhook.ts";
import { processArguments } from "./apps/process/arguments.ts";
import { appPurgeWorker } from "./apps/workers/app-purge/app-purge.ts";
import { webhookPostWorker } from "./apps/workers/webhook-post/webhook-post.ts";
import { crawlJobActor } from "./crawl/crawl-job/crawl-job.ts";
import { crawlListActor } from "./crawl/crawl-list/crawl-list.ts";
import { siteActor } from "./crawl/site/site.ts";
import {
  type CrawlWorkerParts,
  openCrawlWorker,
} from "./crawl/workers/crawl-page/open-crawl-worker.ts";
import { createAddressPolicy, type EgressRanges } from "./egress/address-policy.ts";
import { createEgressGuard } from "./egress/egress-guard.ts";
import { EgressProxy } from "./egress/egress-proxy.ts";
import { clientLogoActor } from "./oauth/client-logo/client-logo.ts";
import { grantListActor } from "./oauth/grant-list/grant-list.ts";
import { interactionActor } from "./oauth/interaction/interaction.ts";
import { oauthClientActor } from "./oauth/oauth-client/oauth-client.ts";
import { oauthClientListActor } from "./oauth/oauth-client-list/oauth-client-list.ts";
import { oauthGrantActor } from "./oauth/oauth-grant/oauth-grant.ts";
import { oauthKeysActor } from "./oauth/oauth-keys/oauth-keys.ts";
import { dnsCheckWorker } from "./oauth/workers/dns-check/dns-check.ts";
import { logoFetchWorker } from "./oauth/workers/logo-fetch/logo-fetch.ts";
import { browserTimeActor } from "./rendering/browser-time/browser-time.ts";
import { devtoolsSessionsActor } from "./rendering/devtools-sessions/devtools-sessions.ts";
import { BrowserPool } from "./rendering/lib/browser/browser-pool.ts";
import { answerRequestKeys } from "./rendering/render-jobs/answer-request-keys.ts";
import { renderJobsActor } from "./rendering/render-jobs/render-jobs.ts";
import { DevtoolsWorker } from "./rendering/workers/devtools/devtools-worker.ts";
import { openRenderWorker } from "./rendering/workers/render/open-render-worker.ts";
import { gitStorageActor } from "./repositories/git-storage/git-storage.ts";
import { namespaceActor } from "./repositories/namespace/namespace.ts";
import { namespaceListActor } from "./repositories/namespace-list/namespace-list.ts";
import { packSweepActor } from "./repositories/pack-sweep/pack-sweep.ts";
import { repoActor } from "./repositories/repo/repo.ts";
import { repoEventsActor } from "./repositories/repo-events/repo-events.ts";
import { repoTokenActor } from "./repositories/repo-token/repo-token.ts";
import { ActorHost } from "./runtime/actor-host.ts";
import type { Bus } from "./runtime/bus/bus.ts";
import { BusActorClient } from "./runtime/calls/actor-client.ts";
import type { AnyActorDefinition } from "./runtime/kinds/define-actor.ts";
import type { Clock } from "./runtime/lib/clock.ts";
import { exposeCounts, exposeGauge } from "./runtime/observe/metrics.ts";
import { Service } from "./runtime/observe/service.ts";
import { ServiceCounts } from "./runtime/observe/service-counts.ts";
import { BlobStore } from "./runtime/store/blob-store.ts";
import { WorkerHost } from "./runtime/workers/worker-host.ts";

export const ACTORS: readonly AnyActorDefinition[] = [
  accountActor,
  agentAlarmActor,
  agentInboxActor,
  apiTokenActor,
  appActor,
  appListActor,
  appPortsActor,
  appUsageActor,
  browserTimeActor,
  clientLogoActor,
  crawlListActor,
  crawlJobActor,
  devtoolsSessionsActor,
  endpointBreakerActor,
  gitStorageActor,
  grantListActor,
  installationActor,
  interactionActor,
  loginGuardActor,
  namespaceActor,
  namespaceListActor,
  oauthClientActor,
  oauthClientListActor,
  oauthGrantActor,
  oauthKeysActor,
  outgoingPlacesActor,
  outgoingWebhookActor,
  packSweepActor,
  renderJobsActor,
  repoActor,
  repoEventsActor,
  repoTokenActor,
  requestLimitActor,
  sessionActor,
  siteActor,
  userActor,
];

/** All task kinds. Each has at least one lane in the stream of tasks. */
export const TASKS: readonly TaskContract[] = [
  appPurge,
  crawlPage,
  dnsCheck,
  gitUpkeep,
  logoFetch,
  render,
  repoImport,
  webhookPost,
];

/**
 * When a host stops, it waits at most this long for the webhooks that it is posting. If a webhook takes longer,
 * another host posts it again under the same id.
 */
const WEBHOOK_STOP_MS = 3_000;
/**
 * Limits the interactive tasks that render pages at the same time. More than two pages per core make each page slower
 * without a higher throughput (17 pages a second with 2 as with 8).
 */
const INTERACTIVE_SLOTS_MAX = 6;

interface ActorsContext {
  bus: Bus;
  clock: Clock;
  logger: Logger;
  /** The Prometheus registry of this process. */
  registry: Registry;
  version: string;
}

export interface RunningPart {
  /** Returns the names of the parts that are not ready yet; empty when all are ready. */
  missing(): readonly string[];
  /** Stops the part. Within this time it finishes its work or hands it over. */
  stop(withinMs: number): Promise<void>;
}

/** Runs actors in this process: the role `actors`. */
export async function startActors(
  context: ActorsContext,
  {
    buckets,
    egress,
    secrets,
    agentLimits,
  }: {
    buckets: number;
    egress: EgressRanges;
    secrets: SecretBox;
    agentLimits: AgentLimits;
  },
): Promise<RunningPart> {
  const { bus, clock, logger, registry, version } = context;
  const guard = createEgressGuard({ policy: createAddressPolicy(egress) });
  const agents = await openAgents({
    ...{ bus, clock, logger, secrets, guard },
    limits: agentLimits,
    program: processArguments,
  });
  const blobs = new BlobStore(bus, clock);
  // These workers do not run in the role `browser`, because the purge worker deletes state and the webhook worker
  // decrypts secrets.
  const workers = [
    appPurgeWorker({ bus, buckets, blobs }),
    webhookPostWorker({ guard, blobs, secrets, clock }),
  ];
  const leaveRequestKeys = answerRequestKeys({ bus, logger, secrets });
  const counts = new ServiceCounts(namesOf([...ACTORS, ...agents.definitions, ...workers]));
  const host = new ActorHost({
    bus,
    clock,
    logger,
    counts,
    buckets,
    definitions: ACTORS,
    hosted: agents.definitions,
    hostName: hostName(),
  });
  await host.start();
  const work = new WorkerHost({ bus, clock, logger, counts, definitions: workers });
  work.start();
  exposeCounts(registry, "actors", counts);
  exposeGauge(registry, "actors_shards", () => host.placement.openShards);
  exposeGauge(registry, "shards", () => bus.layout.shards);
  exposeGauge(registry, "actors_activations", () => host.activations);
  exposeGauge(registry, "actors_calls_in_flight", () => host.callsInFlight);
  exposeGauge(registry, "app_processes", () => agents.processes.count);
  const service = new Service({
    bus,
    clock,
    version,
    name: "trunkline-actors",
    description: "Runs actors: one place for each key",
    metadata: () => ({
      host: host.placement.hostId,
      shards: String(host.placement.openShards),
      activations: String(host.activations),
    }),
    endpoints: () => endpointsOf(counts),
  });
  return {
    missing: () => [
      ...(host.placement.isComplete ? [] : ["an owner for every shard"]),
      ...agents.processes.missing(),
    ],
    async stop(withinMs) {
      service.stop();
      await work.stop(Math.min(withinMs, WEBHOOK_STOP_MS));
      await host.stop();
      // Jobs may begin until the host has stopped, and their workers need the keys. So the keys are available until
      // here.
      leaveRequestKeys();
      await agents.close();
    },
  };
}

/** Runs browsers in this process: the role `browser`. */
export async function startBrowserWorkers(
  context: ActorsContext,
  {
    egress,
    chromium,
    browserSecondsPerDay,
    browserIdleSeconds,
    ai,
    dnsServers,
  }: {
    egress: EgressRanges;
    chromium: string;
    browserSecondsPerDay: number;
    /** A browser that no task has used for this long is closed; 0 means never. */
    browserIdleSeconds: number;
    ai: CrawlWorkerParts["ai"];
    dnsServers: readonly string[];
  },
): Promise<RunningPart> {
  const { bus, clock, logger, registry, version } = context;
  const guard = createEgressGuard({ policy: createAddressPolicy(egress) });
  const pool = new BrowserPool({
    clock,
    openEgress: () => EgressProxy.open({ guard }),
    executablePath: chromium,
    limits: { idleMs: browserIdleSeconds * 1_000 },
  });
  const cores = availableParallelism();
  const interactive = Math.min(2 * cores, INTERACTIVE_SLOTS_MAX);
  const rendering = openRenderWorker(
    { bus, clock, guard, pool, ai },
    { interactive, batch: cores, browserMsPerDay: browserSecondsPerDay * 1_000 },
  );
  const crawling = openCrawlWorker({
    ...{ bus, clock, logger, guard, pool, renders: interactive, ai },
    browserMsPerDay: browserSecondsPerDay * 1_000,
  });
  const lookups = dnsCheckWorker({ servers: dnsServers });
  const logos = logoFetchWorker({ guard });
  const definitions = [rendering.definition, crawling.definition, lookups, logos];
  const counts = new ServiceCounts(namesOf(definitions));
  const host = new WorkerHost({ bus, clock, logger, counts, definitions });
  host.start();
  const devtools = new DevtoolsWorker({
    ...{ bus, clock, logger, guard, executablePath: chromium },
    actors: new BusActorClient(bus, clock),
    browserMsPerDay: browserSecondsPerDay * 1_000,
  });
  exposeCounts(registry, "browser", counts);
  exposeGauge(registry, "browsers", () => pool.pids.length);
  exposeGauge(registry, "browser_contexts_in_use", () => pool.contextsInUse);
  exposeGauge(registry, "devtools_sessions", () => devtools.count);
  const service = new Service({
    bus,
    clock,
    version,
    name: "trunkline-browser",
    description: "Renders pages in headless Chromium, and fetches for crawls",
    metadata: () => ({
      slots: `interactive ${interactive}, batch ${cores}`,
      browsers: String(pool.pids.length),
      contextsInUse: String(pool.contextsInUse),
    }),
    endpoints: () => endpointsOf(counts),
  });
  return {
    missing: () => [],
    async stop(withinMs) {
      service.stop();
      await devtools.stop();
      await host.stop(withinMs);
      await Promise.all([rendering.close(), crawling.close()]);
      await pool.close();
    },
  };
}

/** Returns the message names of each kind, for the message counts. */
const namesOf = (definitions: readonly { contract: Contract | TaskContract }[]) =>
  new Map(
    definitions.map(({ contract: { kind, messages } }) => [kind, new Set(Object.keys(messages))]),
  );

/** Returns the counts of each kind of message, as operators of the bus see them. */
const endpointsOf = (counts: ServiceCounts) =>
  counts.all().map(({ kind, message, ...counted }) => ({
    ...counted,
    name: `${kind}_${message}`,
    subject: subjectOf(kind, message),
  }));

/**
 * Returns the subject of a message for lists. For a task it is the subject of its lane, with `*` if the task kind
 * does not have this message.
 */
function subjectOf(kind: string, message: string): string {
  const task = TASKS.find((one) => one.kind === kind);
  if (!task) return callSubject("*", `${kind}.>`);
  return taskSubject(kind, task.messages[message]?.lane ?? "*");
}

/**
 * Returns the host's name, which operators see in leases: the names of the machine and the process, with only
 * characters that a key may contain.
 */
const hostName = () =>
  `${hostname()
    .replace(/[^A-Za-z0-9-]/g, "-")
    .slice(0, 40)}-${process.pid}`;
