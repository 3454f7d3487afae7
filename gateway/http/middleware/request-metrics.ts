/** Counts and times requests by method, route and status. All labels come from fixed lists. */
import type { RequestHandler } from "express";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { declaredMetric } from "../../../schemas/metrics.ts";
import { statusOf } from "../answered-status.ts";
import { localsOf } from "../locals.ts";
import type { RequestCounts } from "../request-counts.ts";

const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export function requestMetrics(registry: Registry, counts: RequestCounts): RequestHandler {
  const registers = [registry];
  const requests = new Counter({
    ...declaredMetric("http_requests_total"),
    registers,
  });
  const durations = new Histogram({
    ...declaredMetric("http_request_seconds"),
    buckets: [0.005, 0.02, 0.1, 0.5, 1, 2, 5, 15, 60],
    registers,
  });
  const inFlight = new Gauge({
    ...declaredMetric("http_requests_in_flight"),
    registers,
  });

  return (request, response, next) => {
    const startedAt = performance.now();
    inFlight.inc();
    response.once("close", () => {
      inFlight.dec();
      const method = METHODS.has(request.method) ? request.method : "other";
      const { route, appTarget } = localsOf(response);
      const path = route?.path ?? (appTarget ? "app" : "other");
      const ms = performance.now() - startedAt;
      const status = statusOf(response);
      requests.inc({ method, route: path, status });
      durations.observe({ method, route: path }, ms / 1_000);
      counts.count(route?.id, status, ms);
    });
    next();
  };
}
