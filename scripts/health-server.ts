/** Small HTTP servers of a process: health and metrics without a gateway, and metrics on a port of their own. */
import { once } from "node:events";
import { createServer } from "node:http";
import express, { type Router } from "express";
import type { Logger } from "pino";
import { collectDefaultMetrics, type Registry } from "prom-client";
import { listen } from "../gateway/http/listen.ts";
import { handleError } from "../gateway/http/middleware/handle-error.ts";
import { notFound } from "../gateway/http/middleware/not-found.ts";
import { requestId } from "../gateway/http/middleware/request-id.ts";
import { healthRouter } from "../gateway/platform/health.ts";
import { metricsRouter } from "../gateway/platform/metrics.ts";
import type { MetricsToken } from "../gateway/platform/metrics-token.ts";

interface MetricsServerParts {
  host: string;
  port: number;
  /** The setting that chose the port, for the error when it is in use. */
  setting: string;
  logger: Logger;
  registry: Registry;
  metricsToken: MetricsToken;
}

interface HealthServerParts extends Omit<MetricsServerParts, "setting"> {
  /** Names what this process still needs to do its work. */
  missing(): readonly string[];
  /** False when /metrics has a port of its own. Defaults to true. */
  hasMetrics?: boolean;
}

interface HealthServer {
  port: number;
  stop(): Promise<void>;
}

/** Serves /healthz, /livez and, unless they have a port of their own, the metrics of a process without a gateway. */
export function startHealthServer(parts: HealthServerParts): Promise<HealthServer> {
  const { registry, missing, metricsToken, hasMetrics = true } = parts;
  collectDefaultMetrics({ register: registry });
  const metrics = hasMetrics ? [metricsRouter(registry, metricsToken)] : [];
  return startServer({ ...parts, setting: "TRUNKLINE_PORT" }, [healthRouter(missing), ...metrics]);
}

/** Serves /metrics alone, so that a load balancer in front of the other port cannot expose them. */
export function startMetricsServer(parts: MetricsServerParts): Promise<HealthServer> {
  return startServer(parts, [metricsRouter(parts.registry, parts.metricsToken)]);
}

async function startServer(
  { host, port, setting, logger }: Pick<MetricsServerParts, "host" | "port" | "setting" | "logger">,
  routers: readonly Router[],
): Promise<HealthServer> {
  const app = express();
  app.disable("x-powered-by");
  app.use(requestId(logger));
  for (const router of routers) app.use(router);
  app.use(notFound);
  app.use(handleError);
  const server = createServer(app);
  return {
    port: await listen(server, { host, port, setting }),
    async stop() {
      const closed = once(server, "close");
      server.close();
      // Clients of these pages need no drain.
      server.closeAllConnections();
      await closed;
    },
  };
}
