/** The gateway as an Express application: middleware in the order a request meets it, and the route table. */
import express, { type Express, type Router } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { ActorClient } from "../actors/runtime/actor-client.ts";
import type { BlobStore } from "../actors/runtime/blob-store.ts";
import type { LiveUpdates } from "../actors/runtime/live.ts";
import type { GatewayConfig } from "./gateway-config.ts";
import type { Repositories } from "./git/repositories.ts";
import { handleError } from "./middleware/handle-error.ts";
import { notFound } from "./middleware/not-found.ts";
import { requestId } from "./middleware/request-id.ts";
import { requestLog } from "./middleware/request-log.ts";
import { requestMetrics } from "./middleware/request-metrics.ts";
import { securityHeaders } from "./middleware/security-headers.ts";
import { traceRequests } from "./middleware/trace-requests.ts";
import { oauthRouter } from "./oauth/oauth-service.ts";
import type { RequestCounts } from "./request-counts.ts";
import type { Route } from "./route.ts";
import { routeRouter } from "./route-router.ts";
import { accountRoutes } from "./routes/accounts.ts";
import { artifactRoutes } from "./routes/artifacts.ts";
import { artifactContentRoutes } from "./routes/artifacts-content.ts";
import { artifactTokenRoutes } from "./routes/artifacts-tokens.ts";
import { crawlRoutes } from "./routes/crawls.ts";
import { docsRouter } from "./routes/docs.ts";
import { healthRouter } from "./routes/health.ts";
import { memberRoutes } from "./routes/members.ts";
import { metricsRouter } from "./routes/metrics.ts";
import { oauthClientRoutes } from "./routes/oauth-clients.ts";
import { renderingRoutes } from "./routes/rendering.ts";
import { tokenRoutes } from "./routes/tokens.ts";

export interface GatewayParts {
  actors: ActorClient;
  blobs: Pick<BlobStore, "put" | "get">;
  live: LiveUpdates;
  /** Serves repositories below /git. */
  git?: Router;
  /** What the REST API has of them. */
  repositories?: Repositories;
  config: GatewayConfig;
  logger: Logger;
  registry: Registry;
  /** Of this process, for the operators of the bus. */
  counts: RequestCounts;
  /** Names what this process still needs before it can serve. */
  missing: () => readonly string[];
  now: () => number;
  /** Aborts when this process begins to stop: answers without an end of their own then have one. */
  stopping: AbortSignal;
}

export function buildApp(parts: GatewayParts): Express {
  const { actors, config, logger, registry, counts, missing, now } = parts;
  const routes = routeTable(parts);
  for (const route of routes) counts.add(route);
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  app.set("query parser", "simple");
  if (config.trustProxy !== undefined) app.set("trust proxy", config.trustProxy);

  app.use(requestId(logger));
  app.use(securityHeaders(config.publicUrl));
  app.use(healthRouter(missing));
  app.use(metricsRouter(registry));
  app.use(requestLog);
  app.use(requestMetrics(registry, counts));
  if (config.otlpEndpoint !== undefined) app.use(traceRequests);
  app.use(docsRouter(routes, config.publicUrl));
  if (parts.git) app.use("/git", parts.git);
  app.use(oauthRouter(parts));
  const { requestsPerWindow } = config;
  app.use("/v4", routeRouter(routes, { actors, live: parts.live, requestsPerWindow, now }));
  app.use(notFound);
  app.use(handleError);
  return app;
}

/** Every endpoint below /v4. */
export function routeTable(
  parts: Pick<
    GatewayParts,
    "actors" | "blobs" | "live" | "repositories" | "config" | "now" | "stopping"
  >,
): Route[] {
  const { actors, config, now, repositories } = parts;
  const pace = {
    pollMs: config.dnsPollSeconds * 1_000,
    windowMs: config.dnsWindowSeconds * 1_000,
  };
  const browserMsPerDay = config.browserSecondsPerDay * 1_000;
  return [
    ...accountRoutes(actors),
    ...memberRoutes(actors, config.publicUrl),
    ...tokenRoutes(actors, now),
    ...renderingRoutes(actors, { browserMsPerDay, now }),
    ...crawlRoutes({ ...parts, browserMsPerDay, hasModel: config.ai !== undefined }),
    ...(repositories
      ? [
          ...artifactRoutes(repositories),
          ...artifactContentRoutes(repositories),
          ...artifactTokenRoutes(repositories),
        ]
      : []),
    ...oauthClientRoutes({ actors, pace }),
  ];
}
