/**
 * Serves this process's metrics to Prometheus. A bearer token is needed because metrics name routes, kinds and loads.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { Router } from "express";
import { collectDefaultMetrics, type Registry } from "prom-client";
import { ActorError } from "../../schemas/errors.ts";
import { methodNotAllowed } from "../http/middleware/method-not-allowed.ts";
import type { MetricsToken } from "./metrics-token.ts";

/**
 * Interval at which a process measures the delay of its event loop. The library's default of 10 ms would wake an idle
 * process 100 times a second, for a large part of its processor time.
 */
const LOOP_DELAY_SAMPLE_MS = 100;

/** Adds metrics of this process: its memory, processor time, descriptors and event loop. */
export function collectProcessMetrics(registry: Registry): void {
  const eventLoopMonitoringPrecision = LOOP_DELAY_SAMPLE_MS;
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision });
}

export function metricsRouter(registry: Registry, token: MetricsToken): Router {
  const router = Router({ caseSensitive: true });
  router.get("/metrics", async (request, response) => {
    const shown = /^Bearer +(\S+)$/i.exec(request.get("authorization") ?? "")?.[1];
    const wanted = await token();
    if (shown === undefined || wanted === undefined || !isSame(shown, wanted)) {
      response.set("WWW-Authenticate", "Bearer");
      const text = "Cannot show metrics: expected the bearer token TRUNKLINE_METRICS_TOKEN";
      throw new ActorError("unauthenticated", `${text}, or metrics_token of credentials.json`);
    }
    const text = await registry.metrics();
    response.set({ "Content-Type": registry.contentType, "Cache-Control": "no-store" }).send(text);
  });
  router.all("/metrics", methodNotAllowed(["GET"]));
  return router;
}

/** Compares in constant time. */
const isSame = (one: string, other: string) => timingSafeEqual(hashOf(one), hashOf(other));

const hashOf = (text: string) => createHash("sha256").update(text).digest();
