/**
 * The gateway as an Express application: its middleware, in the order in which a request passes through it, and the
 * route table.
 */
import express, { type Express, type RequestHandler, Router } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { SecretBox } from "../actors/apps/lib/app-secrets/secret-box.ts";
import type { AnswerOn } from "../actors/runtime/bus/answer.ts";
import type { LiveUpdates } from "../actors/runtime/bus/live.ts";
import type { ActorClient } from "../actors/runtime/calls/actor-client.ts";
import type { BlobStore } from "../actors/runtime/store/blob-store.ts";
import type { StoredLines } from "../actors/runtime/store/stored-lines.ts";
import type { AgentLimits } from "../schemas/apps/app-usage.ts";
import { accountRoutes } from "./account/routes/accounts.ts";
import { administratorRoutes } from "./account/routes/administrators.ts";
import { memberRoutes } from "./account/routes/members.ts";
import { sessionRoutes } from "./account/routes/sessions.ts";
import { tokenRoutes } from "./account/routes/tokens.ts";
import { SessionCallers } from "./account/session-callers.ts";
import { AccountRoom } from "./apps/account-room.ts";
import { type AppAddresses, originOf, readAppRequest } from "./apps/app-addresses.ts";
import type { AppPorts } from "./apps/app-ports.ts";
import { appRouter, type StreamReader } from "./apps/app-router.ts";
import type { AnswerBelow } from "./apps/begun-requests.ts";
import { type AgentKeys, agentRoutes } from "./apps/routes/agents.ts";
import { appRoutes } from "./apps/routes/apps.ts";
import { deliveryRoutes } from "./apps/routes/deliveries.ts";
import { ServingApps } from "./apps/serving-apps.ts";
import { consoleRouter } from "./console/console-router.ts";
import { crawlRoutes } from "./crawl/crawls.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import { localsOf } from "./http/locals.ts";
import { endStalledBodies } from "./http/middleware/end-stalled-bodies.ts";
import { handleError } from "./http/middleware/handle-error.ts";
import { notFound } from "./http/middleware/not-found.ts";
import { type RequestTraces, recordRequest } from "./http/middleware/record-request.ts";
import { isWriting, refuseWhenFull, storesMuchExcept } from "./http/middleware/refuse-when-full.ts";
import { requestId } from "./http/middleware/request-id.ts";
import { requestLog } from "./http/middleware/request-log.ts";
import { requestMetrics } from "./http/middleware/request-metrics.ts";
import { securityHeaders } from "./http/middleware/security-headers.ts";
import { traceRequests } from "./http/middleware/trace-requests.ts";
import type { RequestCounts } from "./http/request-counts.ts";
import type { Route } from "./http/route.ts";
import { oauthRouter } from "./oauth/oauth-router.ts";
import { oauthClientRoutes } from "./oauth/routes/oauth-clients.ts";
import { docsRouter } from "./platform/docs.ts";
import { healthRouter } from "./platform/health.ts";
import { landingRouter, notFoundPage } from "./platform/landing.ts";
import { metricsRouter } from "./platform/metrics.ts";
import { metricsTokenOf } from "./platform/metrics-token.ts";
import type { Operations } from "./platform/operations.ts";
import { operationsRoutes } from "./platform/operations-routes.ts";
import { leadToOwnHost } from "./platform/own-host.ts";
import { traceRoutes } from "./platform/trace-routes.ts";
import type { DevtoolsBus } from "./rendering/devtools/devtools-bus.ts";
import { devtoolsRoutes } from "./rendering/devtools/devtools-routes.ts";
import type { DevtoolsParts } from "./rendering/devtools/devtools-sessions.ts";
import { liveViewRouter } from "./rendering/devtools/live-view.ts";
import { jobRoutes } from "./rendering/jobs/job-routes.ts";
import type { JobsParts } from "./rendering/jobs/start-job.ts";
import { renderingRoutes } from "./rendering/rendering.ts";
import { refuseGit } from "./repositories/git/git-router.ts";
import type { Repositories } from "./repositories/repositories.ts";
import { artifactRoutes } from "./repositories/routes/artifacts.ts";
import { artifactContentRoutes } from "./repositories/routes/artifacts-content.ts";
import { artifactNamespaceRoutes } from "./repositories/routes/artifacts-namespaces.ts";
import { artifactTokenRoutes } from "./repositories/routes/artifacts-tokens.ts";
import { routeRouter } from "./route-router.ts";

export interface GatewayParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get" | "remove">;
  live: LiveUpdates;
  /** Seals the keys of stored requests of crawls. */
  secrets: Pick<SecretBox, "seal">;
  /** Returns the bytes that an account's crawls may store. 0, or no function: no limit. */
  crawlBytesMax?: () => number;
  /** The router of repositories. Its paths begin with /git. */
  git?: Router;
  /** Repositories for the REST API. */
  repositories?: Repositories;
  /** The parts that serve apps. */
  apps?: AppsParts;
  /** The bus for DevTools sessions. */
  devtools?: DevtoolsBus;
  /** The parts that rendering jobs need. */
  jobs?: JobsParts;
  /** Records requests; if absent, the gateway records none. */
  traces?: RequestTraces;
  /** The operations that the operators' routes use. */
  operations?: Operations;
  /** The ports of apps, on a single machine only. */
  appPorts?: AppPorts | undefined;
  config: GatewayConfig;
  logger: Logger;
  registry: Registry;
  /** Counts the requests of this process, for operators who use the nats CLI. */
  counts: RequestCounts;
  /** True while the disk is too full to store more data of clients. */
  isDiskFull?: () => boolean;
  /** Returns the names of the parts that this process still needs before it can handle requests. */
  missing: () => readonly string[];
  now: () => number;
  /**
   * True after this process has announced its stop: it wants no more requests, but still answers requests that
   * arrive.
   */
  isStopping?: () => boolean;
  /** Aborts when this process begins to stop, which ends endless answers. */
  stopping: AbortSignal;
  /** Time limit of an answer with the records of a crawl; defaults to CRAWL_READ_MS_MAX. */
  readMs?: number;
}

export interface AppsParts {
  secrets: SecretBox;
  /** The parent domain of apps, see AppAddresses. */
  appsDomain: string;
  blobs: Pick<BlobStore, "put" | "get" | "remove" | "messagesBeneath" | "streamUse">;
  answerOn: AnswerOn;
  answerBelow: AnswerBelow;
  streams: StreamReader;
  /** Calls `listener` when the bus is available again after an outage. Returns a function that unsubscribes. */
  onReconnect(listener: () => void): () => void;
  /** The log lines of apps. */
  lines: StoredLines;
  agents: AgentKeys;
  /** The limits for the agents of one account. */
  limits: AgentLimits;
}

export function buildApp(
  parts: GatewayParts,
  routes: readonly Route[] = routeTable(parts),
): Express {
  const { actors, config, logger, registry, counts, missing, now, apps } = parts;
  const { isDiskFull = () => false } = parts;
  for (const route of routes) counts.add(route);
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.set("query parser", "simple");
  if (config.trustProxy !== undefined) app.set("trust proxy", config.trustProxy);

  app.use(requestId(logger));
  app.use(endStalledBodies());
  app.use(securityHeaders(config.publicUrl));
  // Requests to apps are handled before the platform's own paths, because at the origin of an app every path belongs
  // to the app.
  const measures = [
    requestMetrics(registry, counts),
    ...(parts.traces ? [recordRequest(parts.traces)] : []),
    ...(config.otlpEndpoint === undefined ? [] : [traceRequests]),
  ];
  if (apps) app.use(ofApps(parts, apps, measures));
  if (parts.appPorts) app.use(leadToOwnHost(config.publicUrl));
  app.use(healthRouter(missing, parts.isStopping));
  if (config.metricsPort === undefined) {
    app.use(metricsRouter(registry, metricsTokenOf(config)));
  }
  app.use(requestLog);
  app.use(measures);
  app.use(refuseWhenFull(isDiskFull, storesMuchExcept(routes)));
  app.use(landingRouter(config));
  app.use(docsRouter(routes, config.publicUrl));
  const { live } = parts;
  const { requestsPerWindow, publicUrl } = config;
  const sessions = new SessionCallers({ actors, publicUrl });
  // Before the other routers: Express would try each of their paths for each request.
  app.use("/v4", routeRouter(routes, { actors, live, requestsPerWindow, now, sessions }));
  if (parts.git) app.use("/git", parts.git, refuseGit);
  app.use(oauthRouter(parts));
  if (parts.devtools) app.use(liveViewRouter(devtoolsOf(parts, parts.devtools)));
  app.use(consoleRouter({ isSignedIn: (request) => sessions.welcome(request), publicUrl }));
  app.use(notFoundPage(config.publicUrl));
  app.use(notFound);
  app.use(handleError);
  return app;
}

/** Returns the routes of all endpoints below /v4. */
export function routeTable(
  parts: Pick<
    GatewayParts,
    | "actors"
    | "blobs"
    | "live"
    | "secrets"
    | "crawlBytesMax"
    | "repositories"
    | "apps"
    | "devtools"
    | "jobs"
    | "operations"
    | "appPorts"
    | "config"
    | "now"
    | "stopping"
    | "readMs"
  >,
): Route[] {
  const { actors, config, now, repositories, apps, devtools, jobs, operations } = parts;
  const pace = {
    pollMs: config.dnsPollSeconds * 1_000,
    windowMs: config.dnsWindowSeconds * 1_000,
  };
  const browserMsPerDay = config.browserSecondsPerDay * 1_000;
  return [
    ...accountRoutes(actors),
    ...memberRoutes(actors, config.publicUrl),
    ...tokenRoutes(actors, now),
    ...sessionRoutes(actors),
    ...administratorRoutes(actors),
    ...(operations ? [...traceRoutes(operations), ...operationsRoutes(operations)] : []),
    ...renderingRoutes(actors, { browserMsPerDay, now, jobs }),
    ...(jobs ? jobRoutes({ actors, jobs }) : []),
    ...(devtools ? devtoolsRoutes(devtoolsOf(parts, devtools)) : []),
    ...crawlRoutes({ ...parts, browserMsPerDay, hasModel: config.ai !== undefined }),
    ...(repositories
      ? [
          ...artifactNamespaceRoutes(repositories),
          ...artifactRoutes(repositories),
          ...artifactContentRoutes(repositories),
          ...artifactTokenRoutes(repositories),
        ]
      : []),
    ...oauthClientRoutes({ actors, pace }),
    ...(apps
      ? [
          ...appRoutes({ actors, ...apps, addresses: addressesOf(parts, apps) }),
          ...agentRoutes({ actors, agents: apps.agents }),
          ...deliveryRoutes({
            ...{ actors, blobs: parts.blobs },
            room: new AccountRoom({ actors, limits: apps.limits, now }),
          }),
        ]
      : []),
  ];
}

const devtoolsOf = (
  { actors, config, now }: Pick<GatewayParts, "actors" | "config" | "now">,
  bus: DevtoolsBus,
): DevtoolsParts => ({
  ...{ actors, bus, now, publicUrl: config.publicUrl },
  browserMsPerDay: config.browserSecondsPerDay * 1_000,
});

/** The paths of WebSockets that routes of the application serve. */
export const SOCKET_PATHS =
  /^\/v4\/accounts\/[^/]+\/browser-(?:rendering|run)\/devtools\/|^\/live-view\//;

export const addressesOf = (
  { config, appPorts: ports }: Pick<GatewayParts, "config" | "appPorts">,
  { appsDomain }: AppsParts,
): AppAddresses => ({ publicUrl: config.publicUrl, appsDomain, ports });

function ofApps(
  parts: GatewayParts,
  apps: AppsParts,
  measures: readonly RequestHandler[],
): RequestHandler {
  const { secrets, blobs, limits, answerBelow, streams } = apps;
  const serving = new ServingApps({ ...parts, secrets });
  const addresses = addressesOf(parts, apps);
  const { isDiskFull = () => false } = parts;
  const ofRouter = { ...parts, blobs, serving, addresses, limits, answerBelow, streams };
  const router = Router();
  router.use([...measures, refuseWhenFull(isDiskFull, isWriting)], appRouter(ofRouter));
  return (request, response, next) => {
    const { headers, url, socket } = request;
    const port = socket.localPort;
    const asked = readAppRequest(addresses, { host: headers.host, url, port });
    const atPort = asked && asked.app === "" ? addresses.ports?.appAt(port) : undefined;
    // The request reached an app's port under another host name than `localhost`: redirect it to the app's own
    // origin.
    if (atPort) return void response.redirect(308, originOf(addresses, atPort) + url);
    if (!asked) return next();
    localsOf(response).appTarget = asked;
    router(request, response, next);
  };
}

/**
 * Returns the handler of requests that the code of apps sends to these routes. `authenticated` finds their caller.
 */
export function routesOfApps(
  { actors, live, config, now }: GatewayParts,
  routes: readonly Route[],
  authenticated: RequestHandler,
): RequestHandler {
  const { requestsPerWindow } = config;
  return routeRouter(routes, { actors, live, now, requestsPerWindow, authenticated });
}
