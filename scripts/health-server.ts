/**
 * Small HTTP servers of a process: one for health and metrics in a process without a gateway, and one for metrics on
 * a separate port.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import express, { type Router } from "express";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { listen } from "../gateway/http/listen.ts";
import { handleError } from "../gateway/http/middleware/handle-error.ts";
import { notFound } from "../gateway/http/middleware/not-found.ts";
import { requestId } from "../gateway/http/middleware/request-id.ts";
import { healthRouter } from "../gateway/platform/health.ts";
import { collectProcessMetrics, metricsRouter } from "../gateway/platform/metrics.ts";
import type { MetricsToken } from "../gateway/platform/metrics-token.ts";

interface MetricsServerParts {
  host: string;
  port: number;
  /** The setting that chose the port. The error names it if the port is in use. */
  setting: string;
  logger: Logger;
  registry: Registry;
  metricsToken: MetricsToken;
}

interface HealthServerParts extends Omit<MetricsServerParts, "setting"> {
  /** Returns what this process still lacks before it can work. */
  missing(): readonly string[];
  /** False if /metrics has a separate port. Default: true. */
  hasMetrics?: boolean;
}

interface HealthServer {
  port: number;
  stop(): Promise<void>;
}

/**
 * Serves /healthz and /livez of a process without a gateway. Serves also its metrics, unless they have a separate
 * port.
 */
export function startHealthServer(parts: HealthServerParts): Promise<HealthServer> {
  const { registry, missing, metricsToken, hasMetrics = true } = parts;
  collectProcessMetrics(registry);
  const metrics = hasMetrics ? [metricsRouter(registry, metricsToken)] : [];
  return startServer({ ...parts, setting: "TRUNKLINE_PORT" }, [healthRouter(missing), ...metrics]);
}

/** Serves only /metrics, so that a load balancer in front of the other port cannot expose the metrics. */
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
      // Open connections are closed immediately: a client of these pages can simply retry.
      server.closeAllConnections();
      await closed;
    },
  };
}
