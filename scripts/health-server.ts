/** Answers /healthz and /metrics of a process without a gateway: probes and Prometheus ask every process alike. */
import { once } from "node:events";
import { createServer } from "node:http";
import express from "express";
import type { Logger } from "pino";
import { collectDefaultMetrics, type Registry } from "prom-client";
import { listen } from "../gateway/http/listen.ts";
import { handleError } from "../gateway/http/middleware/handle-error.ts";
import { notFound } from "../gateway/http/middleware/not-found.ts";
import { requestId } from "../gateway/http/middleware/request-id.ts";
import { healthRouter } from "../gateway/platform/health.ts";
import { metricsRouter } from "../gateway/platform/metrics.ts";
import type { MetricsToken } from "../gateway/platform/metrics-token.ts";

export interface HealthServerParts {
  host: string;
  port: number;
  logger: Logger;
  registry: Registry;
  metricsToken: MetricsToken;
  /** Names what this process still needs to do its work. */
  missing(): readonly string[];
}

export interface HealthServer {
  port: number;
  stop(): Promise<void>;
}

export async function startHealthServer(parts: HealthServerParts): Promise<HealthServer> {
  const { host, port, logger, registry, missing, metricsToken } = parts;
  collectDefaultMetrics({ register: registry });
  const app = express();
  app.disable("x-powered-by");
  app.use(requestId(logger));
  app.use(healthRouter(missing));
  app.use(metricsRouter(registry, metricsToken));
  app.use(notFound);
  app.use(handleError);
  const server = createServer(app);
  return {
    port: await listen(server, { host, port }),
    async stop() {
      const closed = once(server, "close");
      server.close();
      // Nobody waits for more than the figures of a process that is leaving.
      server.closeAllConnections();
      await closed;
    },
  };
}
